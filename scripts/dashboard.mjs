// The build of the dashboard: esbuild bundles dashboard/ into build/dashboard, which the Worker serves as static assets. File names have
// the hash of their content, so that browsers keep them for good. Nothing is done when the result is up to date.
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join, parse, resolve } from "node:path";
import { engineWasm } from "./engine_wasm.mjs";
import { holdingLock } from "./lock.mjs";
import { step } from "./terminal.mjs";
import { root } from "./toolchain.mjs";

const source = join(root, "dashboard");
export const dashboardOutput = join(root, "build", "dashboard");
const targetDirectory = resolve(root, process.env.CARGO_TARGET_DIR ?? "target");
const stampFile = join(targetDirectory, "curfew-dashboard-stamp");
const staging = join(targetDirectory, "curfew-dashboard");

/** Every answer of the assets has these. The API sends its own. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "worker-src 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

/** The script of the web worker that compiles the engine. A worker has a policy of its own: no page may compile wasm. */
const ENGINE_POLICY = ["default-src 'none'", "script-src 'self' 'wasm-unsafe-eval'", "connect-src 'self'"].join("; ");

const HEADERS = `/*
  Content-Security-Policy: ${POLICY}
  X-Content-Type-Options: nosniff
  Referrer-Policy: no-referrer
  Cross-Origin-Opener-Policy: same-origin
/assets/*
  Cache-Control: public, max-age=31536000, immutable
/assets/engine_worker-*
  ! Content-Security-Policy
  Content-Security-Policy: ${ENGINE_POLICY}
`;

/** Brings build/dashboard up to date. The npm packages have to be installed, and the engine's wasm has to be there. */
export async function buildDashboard() {
  mkdirSync(targetDirectory, { recursive: true });
  await holdingLock(join(targetDirectory, "curfew-dashboard.lock"), async () => {
    const stamp = stampOf(["scripts/dashboard.mjs", "package-lock.json", "engine/engine.mjs", "engine/engine.wasm", ...filesIn("dashboard"), ...filesIn("client")]);
    const isCurrent = existsSync(join(dashboardOutput, "index.html")) && existsSync(stampFile) && readFileSync(stampFile, "utf8") === stamp;
    await step("dashboard", async () => {
      if (isCurrent) return "up to date";
      await bundle();
      writeFileSync(stampFile, stamp);
      return undefined;
    });
  });
}

async function bundle() {
  // Not at the top: set-up imports this file before the packages are installed.
  const { build } = await import("esbuild");
  rmSync(staging, { recursive: true, force: true });
  const assets = join(staging, "assets");
  /** @satisfies {import("esbuild").BuildOptions} */
  const common = {
    absWorkingDir: root,
    bundle: true,
    format: "esm",
    minify: true,
    target: "es2022",
    jsx: "automatic",
    jsxImportSource: "preact",
    outdir: assets,
    entryNames: "[name]-[hash]",
    chunkNames: "[name]-[hash]",
    assetNames: "[name]-[hash]",
    metafile: true,
    legalComments: "none",
    logLevel: "warning",
    loader: { ".svg": "file" },
  };
  // A worker is a script of its own, whose address the pages have to know.
  const workerAt = async (/** @type {string} */ entry, /** @type {Record<string, string>} */ define = {}) => {
    const { metafile } = await build({ ...common, entryPoints: [entry], define });
    return JSON.stringify(`/assets/${basename(Object.keys(metafile.outputs)[0] ?? "")}`);
  };
  const engine = copyWithHash(engineWasm, assets);
  const [graphWorker, engineWorker] = await Promise.all([
    workerAt("dashboard/graph_worker.ts"),
    workerAt("dashboard/engine_worker.ts", { ENGINE_WASM: JSON.stringify(`/assets/${engine}`) }),
  ]);
  const pages = await build({
    ...common,
    entryPoints: ["dashboard/main.tsx"],
    splitting: true,
    define: { GRAPH_WORKER: graphWorker, ENGINE_WORKER: engineWorker },
  });
  const icon = copyWithHash(join(source, "icon.svg"), assets);
  writeFileSync(join(staging, "index.html"), page(pages.metafile, icon));
  writeFileSync(join(staging, "_headers"), HEADERS);
  publish(assets);
}

/** Returns the name. @param {string} file @param {string} directory */
function copyWithHash(file, directory) {
  const hash = createHash("sha256").update(readFileSync(file)).digest("hex").slice(0, 8);
  const { name, ext } = parse(file);
  mkdirSync(directory, { recursive: true });
  copyFileSync(file, join(directory, `${name}-${hash}${ext}`));
  return `${name}-${hash}${ext}`;
}

/** Into the same directory, which `wrangler dev` watches: new files first, then the page that names them, then old files go. @param {string} assets */
function publish(assets) {
  const published = join(dashboardOutput, "assets");
  mkdirSync(published, { recursive: true });
  const names = readdirSync(assets);
  for (const name of names) copyFileSync(join(assets, name), join(published, name));
  for (const name of ["_headers", "index.html"]) copyFileSync(join(staging, name), join(dashboardOutput, name));
  for (const name of readdirSync(published)) if (!names.includes(name)) rmSync(join(published, name));
}

/** No script and no style stands in the page itself: the policy refuses them. @param {import("esbuild").Metafile} metafile @param {string} icon */
function page({ outputs }, icon) {
  const entry = Object.entries(outputs).find(([, output]) => output.entryPoint === "dashboard/main.tsx");
  if (!entry?.[1].cssBundle) throw new Error("esbuild made no script or no style of dashboard/main.tsx");
  const [script, { cssBundle, imports }] = entry;
  const address = (/** @type {string} */ path) => `/assets/${basename(path)}`;
  const first = imports.filter(({ kind }) => kind === "import-statement").map(({ path }) => `    <link rel="modulepreload" href="${address(path)}">\n`);
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <title>Curfew</title>
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <link rel="icon" href="/assets/${icon}">
    <link rel="stylesheet" href="${address(cssBundle)}">
${first.join("")}    <script type="module" src="${address(script)}"></script>
  </head>
  <body>
    <div id="app"></div>
    <noscript>The dashboard of Curfew needs JavaScript. The API is at /v1, its description at /openapi.json.</noscript>
  </body>
</html>
`;
}

/** Of contents, not of times: a checkout touches files that have not changed. @param {string[]} files */
function stampOf(files) {
  const hash = createHash("sha256");
  for (const file of files) hash.update(`\0${file}\0`).update(readFileSync(join(root, file)));
  return hash.digest("hex");
}

/** Tests are not part of it. @param {string} directory @returns {string[]} */
function filesIn(directory) {
  return readdirSync(join(root, directory), { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = `${directory}/${entry.name}`;
      if (entry.isDirectory()) return filesIn(path);
      return /\.test\.ts$/.test(entry.name) ? [] : [path];
    });
}
