// The build of the Worker: cargo, wasm-bindgen, esbuild. The result is build/index.js and build/index_bg.wasm, which
// src/worker/entry.mjs imports. Nothing is done when build/ is up to date.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { holdingLock } from "./lock.mjs";
import { run, step } from "./terminal.mjs";
import { npmBinary, quietEnvironment, root, toolCache, WASM_TARGET } from "./toolchain.mjs";
import { orderFunctions } from "./wasm_order.mjs";

/** The development build compiles in a fraction of the time, and its code is slow and large. */
const isDevelopment = process.env.CURFEW_BUILD === "dev";
const profile = isDevelopment ? "development" : "release";

const targetDirectory = resolve(root, process.env.CARGO_TARGET_DIR ?? "target");
const stampFile = join(targetDirectory, "curfew-build-stamp");
/** What cargo makes, with the names of all functions. */
export const compiled = join(targetDirectory, WASM_TARGET, isDevelopment ? "debug" : "release", "curfew.wasm");
const BUILD_SCRIPTS = ["scripts/build.mjs", "scripts/wasm_order.mjs", "scripts/wasm_bytes.mjs"];
/** Where the parts are put together. build/ is replaced as a whole, so no reader sees half of one build. */
const staging = join(targetDirectory, "curfew-build");

/**
 * Installs the npm packages and brings build/ up to date, at the same time where possible.
 * @param {() => Promise<unknown>} installPackages
 */
export async function buildWorker(installPackages) {
  mkdirSync(targetDirectory, { recursive: true });
  // `wrangler dev` with a separate executor runs the build command of both configurations at the same moment.
  await holdingLock(join(targetDirectory, "curfew-build.lock"), async () => {
    const stamp = stampOf(profile, ["Cargo.toml", "Cargo.lock", ...BUILD_SCRIPTS, ...filesIn("tools/bindgen"), ...filesIn("src")]);
    const isBuilt = existsSync(join(root, "build", "index_bg.wasm")) && existsSync(stampFile);
    if (isBuilt && readFileSync(stampFile, "utf8") === stamp) {
      await installPackages();
      await step(`Worker (${profile})`, () => "up to date");
      return;
    }
    // Cargo compiles the Worker's last crate on one core: there is one left for everything else.
    await Promise.all([installPackages(), bindgen(), compile()]);
    await step("wasm-bindgen and esbuild", bundle);
    writeFileSync(stampFile, stamp);
  });
}

function compile() {
  const usually = isDevelopment ? "1 minute the first time" : "2 to 5 minutes the first time";
  const args = ["build", "--locked", "--lib", "--target", WASM_TARGET, ...(isDevelopment ? [] : ["--release"])];
  return step(`Worker compiled (${profile})`, () => run("cargo", args, { cwd: root }), `compiling the Worker, ${profile}: usually ${usually}`);
}

async function bundle() {
  rmSync(staging, { recursive: true, force: true });
  const bindings = join(staging, "bindings");
  await run(await bindgen(), [compiled, bindings, ...(isDevelopment ? ["--debug"] : [])]);
  const generated = join(bindings, "index.js");
  // workerd knows no source phase imports; a plain import of a wasm file gives the same module.
  writeFileSync(generated, readFileSync(generated, "utf8").replace("import source ", "import "));
  const output = join(staging, "build");
  const options = [
    "--bundle",
    "--format=esm",
    "--minify",
    `--alias:curfew:wasm=${generated}`,
    "--external:./index_bg.wasm",
    "--external:cloudflare:*",
    "--log-level=warning",
    // A function that the wasm does not export must not be found by the first call.
    "--log-override:import-is-undefined=error",
    `--outfile=${join(output, "index.js")}`,
  ];
  await run(npmBinary("esbuild"), ["src/worker/wasm_instance.mjs", ...options], { cwd: root, env: quietEnvironment });
  const wasm = readFileSync(join(bindings, "index_bg.wasm"));
  // A development build keeps the names of its functions and need not be small.
  writeFileSync(join(output, "index_bg.wasm"), isDevelopment ? wasm : orderFunctions(wasm));
  // TypeScript reads the types of the source instead of guessing them from the bundle.
  const source = "../src/worker/wasm_instance.mjs";
  writeFileSync(join(output, "index.d.ts"), `export * from "${source}";\nexport { default } from "${source}";\n`);
  rmSync(join(root, "build"), { recursive: true, force: true });
  renameSync(output, join(root, "build"));
}

/** @type {Promise<string> | undefined} */
let bindgenBinary;

/** The path of tools/bindgen, which is compiled once per machine and version. */
export function bindgen() {
  bindgenBinary ??= (async () => {
    const directory = join(toolCache, `bindgen-${stampOf("debug", filesIn("tools/bindgen")).slice(0, 16)}`);
    const binary = join(directory, process.platform === "win32" ? "curfew-bindgen.exe" : "curfew-bindgen");
    if (existsSync(binary)) return binary;
    mkdirSync(directory, { recursive: true });
    const announcement = "compiling tools/bindgen: usually half a minute, once per machine";
    await holdingLock(join(directory, "lock"), () => step("tools/bindgen compiled", () => compileBindgen(directory, binary), announcement));
    return binary;
  })();
  return bindgenBinary;
}

/** @param {string} directory @param {string} binary */
async function compileBindgen(directory, binary) {
  if (existsSync(binary)) return;
  const target = join(directory, "target");
  await run("cargo", ["build", "--locked", "--quiet", "--manifest-path", "tools/bindgen/Cargo.toml", "--target-dir", target], { cwd: root });
  renameSync(join(target, "debug", basename(binary)), binary);
  rmSync(target, { recursive: true, force: true });
}

/** A hash of contents, not of times: a checkout touches files that have not changed. @param {string} kind @param {string[]} files */
function stampOf(kind, files) {
  const hash = createHash("sha256").update(kind);
  for (const file of files) hash.update(`\0${file}\0`).update(readFileSync(join(root, file)));
  return hash.digest("hex");
}

/** What wrangler bundles itself; everything else in src/ may be compiled in. */
const NOT_COMPILED = ["src/worker/entry.mjs"];

/** @param {string} directory @returns {string[]} */
function filesIn(directory) {
  return readdirSync(join(root, directory), { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = `${directory}/${entry.name}`;
      if (entry.isDirectory()) return entry.name === "target" ? [] : filesIn(path);
      return NOT_COMPILED.includes(path) ? [] : [path];
    });
}
