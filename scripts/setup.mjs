// Everything a fresh clone needs before it can run: npm packages (Node 22 among them), the wasm target, two cargo tools, the
// build. Each step looks first and does nothing when its result is there, so a second call takes a moment.
// Runs on Node 20: it is what brings Node 22.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { outputOf, run, script, step, StepFailed } from "./terminal.mjs";
import { cargoTools, node22, npmBinary, quietEnvironment, root, WASM_TARGET } from "./toolchain.mjs";

const development = process.env.CURFEW_BUILD === "dev";

/** What build/ was made of; next to it and not in it, because worker-build empties that directory. */
const stampFile = join(root, "target", "curfew-build-stamp");

export async function setUp() {
  await step("Rust", findRust);
  await step("npm packages", installPackages);
  await step(`Rust target ${WASM_TARGET}`, addWasmTarget);
  for (const tool of Object.values(cargoTools())) await step(`${tool.name} ${tool.version}`, () => installTool(tool));
  await step(`wasm build (${development ? "development" : "release"})`, buildWasm);
}

async function findRust() {
  const cargo = await outputOf("cargo", ["--version"]);
  const rustup = await outputOf("rustup", ["--version"]);
  if (!cargo || !rustup) {
    const missing = [!cargo && "cargo", !rustup && "rustup"].filter(Boolean).join(" and ");
    throw new StepFailed(`${missing} not found: install Rust from https://rustup.rs, open a new shell and try again`);
  }
  return cargo;
}

async function installPackages() {
  // npm writes this file at the end of every install, so an older one than the lock is an install of another lock.
  const installed = join(root, "node_modules", ".package-lock.json");
  const lock = join(root, "package-lock.json");
  const fresh = existsSync(installed) && modifiedAt(installed) >= modifiedAt(lock) && existsSync(npmBinary("wrangler"));
  if (fresh) return `there, Node ${await outputOf(node22(), ["--version"])}`;
  // Not `npm ci`: it wants the optional packages of every platform in the lock. --loglevel: on Node 20 npm warns at
  // length that wrangler needs 22, which this very install brings.
  await run("npm", ["install", "--no-fund", "--no-audit", "--loglevel=error"], { cwd: root });
  return `installed, Node ${await outputOf(node22(), ["--version"])}`;
}

async function addWasmTarget() {
  const installed = await outputOf("rustup", ["target", "list", "--installed"]);
  if (installed?.split(/\s+/).includes(WASM_TARGET)) return "there";
  await run("rustup", ["target", "add", WASM_TARGET], { cwd: root });
  return "added";
}

/** @param {{name: string, version: string, directory: string, binary: string}} tool */
async function installTool(tool) {
  if (existsSync(tool.binary)) return "there";
  console.log(`[curfew] installing ${tool.name} ${tool.version}, 2-4 minutes, once per machine`);
  // A debug build of the tool compiles three times as fast, and its own speed does not matter here.
  await run("cargo", ["install", "--locked", "--debug", `${tool.name}@${tool.version}`, "--root", tool.directory]);
  return "installed";
}

async function buildWasm() {
  const stamp = sourceStamp();
  const built = existsSync(join(root, "build", "index_bg.wasm")) && existsSync(stampFile);
  if (built && readFileSync(stampFile, "utf8") === stamp) return "up to date";
  const { workerBuild, wasmBindgen } = cargoTools();
  await run(workerBuild.binary, [development ? "--dev" : "--release"], {
    cwd: root,
    env: {
      ...quietEnvironment,
      // Without these worker-build downloads its own copies.
      WASM_BINDGEN_BIN: wasmBindgen.binary,
      WASM_OPT_BIN: npmBinary("wasm-opt"),
      ESBUILD_BIN: npmBinary("esbuild"),
    },
  });
  mkdirSync(join(root, "target"), { recursive: true });
  writeFileSync(stampFile, stamp);
  return "built";
}

/** A hash of all that goes into the wasm. Content, not time: a checkout touches files that have not changed. */
function sourceStamp() {
  const hash = createHash("sha256").update(development ? "development" : "release");
  for (const file of ["Cargo.toml", "Cargo.lock", ...rustFiles("src")]) {
    hash.update(`\0${file}\0`).update(readFileSync(join(root, file)));
  }
  return hash.digest("hex");
}

/** @param {string} directory @returns {string[]} */
function rustFiles(directory) {
  return readdirSync(join(root, directory), { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = `${directory}/${entry.name}`;
      if (entry.isDirectory()) return rustFiles(path);
      // entry.mjs is bundled by wrangler, not compiled in; everything else may be.
      return path === "src/worker/entry.mjs" ? [] : [path];
    });
}

/** @param {string} file */
const modifiedAt = (file) => statSync(file).mtimeMs;

// `npm run build` runs this file; the other scripts import it.
if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) await script(setUp);
