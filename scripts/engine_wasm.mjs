// `npm run engine-wasm`: the engine as its own wasm, engine/engine.wasm, and its tests. Not part of the build: the Worker does not
// need it.
import { copyFileSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { run, script, step } from "./terminal.mjs";
import { node22, root, WASM_TARGET } from "./toolchain.mjs";

const PROFILE = "engine";

/** Compiles the engine and returns the path of its wasm. Cargo does nothing where nothing changed. */
export async function buildEngine() {
  const features = ["--no-default-features", "--features", "engine"];
  const args = ["build", "--locked", "--lib", "--target", WASM_TARGET, "--profile", PROFILE, ...features];
  await step("engine's wasm compiled", () => run("cargo", args, { cwd: root }), "compiling the engine's wasm: usually 1 to 3 minutes the first time");
  const targetDirectory = resolve(root, process.env.CARGO_TARGET_DIR ?? "target");
  const wasm = join(root, "engine", "engine.wasm");
  copyFileSync(join(targetDirectory, WASM_TARGET, PROFILE, "curfew.wasm"), wasm);
  return wasm;
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  await script(async () => {
    const wasm = readFileSync(await buildEngine());
    const kib = (/** @type {number} */ bytes) => `${Math.round(bytes / 1024)} KiB`;
    console.log(`[curfew] engine/engine.wasm: ${kib(wasm.length)}, gzipped ${kib(gzipSync(wasm, { level: 9 }).length)}`);
    await run(node22(), ["--test", "engine/engine.test.mjs"], { cwd: root });
  });
}
