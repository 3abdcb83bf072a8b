// `npm run coverage`: which lines the native tests run, as one table with a line per room. src/worker is not in it: that room only
// compiles to wasm, and the tests in workerd cover it. Arguments choose tests: `npm run coverage -- run::fan`.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { cargoTool, LLVM_COV } from "./cargo_tool.mjs";
import { outputOf, run, script, step, StepFailed } from "./terminal.mjs";
import { root } from "./toolchain.mjs";
import { roomsOf, table } from "./coverage_table.mjs";

await script(async () => {
  await step("llvm-tools", addLlvmTools);
  const binary = await cargoTool(LLVM_COV);
  const directory = mkdtempSync(join(tmpdir(), "curfew-coverage-"));
  try {
    const report = join(directory, "coverage.json");
    const args = ["llvm-cov", "--locked", "--lib", "--tests", "--json", "--summary-only", "--output-path", report, "--", ...process.argv.slice(2)];
    await step("native tests", () => run(binary, args, { cwd: root }), "compiling and running the native tests with counters: usually 3 to 6 minutes");
    const [{ files }] = JSON.parse(readFileSync(report, "utf8")).data;
    const inRepository = files.map((/** @type {any} */ file) => ({ path: relative(root, file.filename), ...file.summary }));
    for (const line of table(roomsOf(inRepository))) console.log(line);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});

/** LLVM_COV and LLVM_PROFDATA name tools of the same LLVM version where rustup cannot install its own. */
async function addLlvmTools() {
  if (process.env.LLVM_COV && process.env.LLVM_PROFDATA) return process.env.LLVM_COV;
  const installed = await outputOf("rustup", ["component", "list", "--installed"], { cwd: root });
  if (installed?.includes("llvm-tools")) return "installed before";
  try {
    await run("rustup", ["component", "add", "llvm-tools"], { cwd: root });
  } catch {
    throw new StepFailed("rustup cannot install llvm-tools: set LLVM_COV and LLVM_PROFDATA to those of another LLVM installation");
  }
  return "installed";
}
