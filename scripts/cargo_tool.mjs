// Cargo tools that only a few scripts need: installed on first use, into a cache outside the checkout.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { run, step } from "./terminal.mjs";
import { toolCache } from "./toolchain.mjs";

/** @typedef {{name: string, version: string, usually: string}} CargoTool */

/** @type {CargoTool} */
export const LLVM_COV = { name: "cargo-llvm-cov", version: "0.9.1", usually: "1 minute" };
/** @type {CargoTool} */
export const MUTANTS = { name: "cargo-mutants", version: "27.1.0", usually: "2 to 4 minutes" };

/** The path of its binary. @param {CargoTool} tool */
export async function cargoTool({ name, version, usually }) {
  const directory = join(toolCache, `${name}-${version}`);
  const binary = join(directory, "bin", process.platform === "win32" ? `${name}.exe` : name);
  if (existsSync(binary)) return binary;
  // A debug build compiles three times as fast, and the tool's own speed does not matter.
  const args = ["install", "--locked", "--debug", "--quiet", `${name}@${version}`, "--root", directory];
  await step(`${name} ${version} installed`, () => run("cargo", args), `installing ${name} ${version}: usually ${usually}, once per machine`);
  return binary;
}
