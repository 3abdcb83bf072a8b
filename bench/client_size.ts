// The size of the TypeScript client as an application ships it: bundled for a browser, minified and compressed.
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { root } from "../tests/workerd/harness.ts";
import { rounded } from "./figures.ts";

/** `code` is the entry; without it everything that the client exports is bundled. A built-in module of Node is an error. */
export async function bundledClient(code?: string): Promise<string> {
  const { outputFiles } = await build({
    ...(code === undefined ? { entryPoints: [join(root, "client/index.ts")] } : { stdin: { contents: code, resolveDir: join(root, "client"), loader: "ts" } }),
    bundle: true,
    minify: true,
    write: false,
    format: "esm",
    platform: "browser",
    target: "es2022",
    logLevel: "silent",
  });
  return outputFiles[0]!.text;
}

/** KiB. */
export const clientSize = async (): Promise<number> => rounded(gzipSync(await bundledClient(), { level: 9 }).length / 1024);
