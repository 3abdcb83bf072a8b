// Everything a fresh clone needs before it can run: npm packages (Node 22 among them), the wasm target, the build. Each step
// does nothing when its result exists, so a second call takes a moment. `wrangler dev` and `wrangler deploy` run this file as
// their build command. It runs on Node 20, because it installs Node 22.
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { buildWorker } from "./build.mjs";
import { buildDashboard } from "./dashboard.mjs";
import { engineForDashboard } from "./engine_wasm.mjs";
import { outputOf, run, script, step, StepFailed } from "./terminal.mjs";
import { node22, npmBinary, root, WASM_TARGET } from "./toolchain.mjs";

export async function setUp() {
  await step("Rust", findRust);
  await step(`Rust target ${WASM_TARGET}`, addWasmTarget);
  // At the same time: each compiles its last crate on one core.
  await Promise.all([buildWorker(() => step("npm packages", installPackages)), engineForDashboard()]);
  // Afterwards: a new build of the Worker replaces the whole of build/.
  await buildDashboard();
}

async function findRust() {
  const rustup = await outputOf("rustup", ["--version"], { cwd: root });
  const cargo = await outputOf("cargo", ["--version"], { cwd: root });
  if (rustup && cargo) return cargo;
  if (rustup) throw new StepFailed("rustup has no stable toolchain: `rustup toolchain install stable`, then try again");
  throw new StepFailed("rustup not found: install Rust from https://rustup.rs, open a new shell and try again");
}

async function installPackages() {
  // npm writes this file at the end of every install: one that is older than the lock belongs to another lock.
  const installed = join(root, "node_modules", ".package-lock.json");
  const lock = join(root, "package-lock.json");
  const isCurrent = existsSync(installed) && modifiedAt(installed) >= modifiedAt(lock) && existsSync(npmBinary("wrangler"));
  if (!isCurrent) {
    console.log("[curfew] installing npm packages: usually less than a minute ...");
    // Not `npm ci`, which requires the optional packages of every platform in the lock. --loglevel: on Node 20 npm warns at
    // length that wrangler needs Node 22, which this install brings.
    await run("npm", ["install", "--no-fund", "--no-audit", "--loglevel=error"], { cwd: root });
  }
  return `${isCurrent ? "installed before" : "installed"}, Node ${await outputOf(node22(), ["--version"])}`;
}

/** rust-toolchain.toml names the target, but rustup installs nothing by itself where RUSTUP_AUTO_INSTALL is 0. */
async function addWasmTarget() {
  const installed = await outputOf("rustup", ["target", "list", "--installed"], { cwd: root });
  if (installed?.split(/\s+/).includes(WASM_TARGET)) return "installed before";
  await run("rustup", ["target", "add", WASM_TARGET], { cwd: root });
  return "installed";
}

/** @param {string} file */
const modifiedAt = (file) => statSync(file).mtimeMs;

// `npm run build` and wrangler run this file; the other scripts import it.
if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) await script(setUp);
