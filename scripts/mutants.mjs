// `npm run mutants -- src/run/fan`: changes one expression at a time in that room, and reports the changes that no native test
// notices. Arguments after `--` go to cargo-mutants: `npm run mutants -- src/run/fan -- --shard 0/8` takes an eighth of them.
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { cargoTool, MUTANTS } from "./cargo_tool.mjs";
import { run, script, StepFailed } from "./terminal.mjs";
import { root } from "./toolchain.mjs";

/** A mutant may loop for ever. The native tests take two minutes on two busy cores. */
const TIMEOUT_S = 300;

await script(async () => {
  const given = process.argv.slice(2);
  const end = given.includes("--") ? given.indexOf("--") : given.length;
  const [paths, more] = [given.slice(0, end), given.slice(end + 1)];
  if (paths.length === 0) throw new StepFailed("which room? For example: npm run mutants -- src/run/fan");
  const missing = paths.find((path) => !existsSync(join(root, path)));
  if (missing) throw new StepFailed(`${missing} does not exist`);
  const files = paths.flatMap((path) => ["--file", statSync(join(root, path)).isDirectory() ? `${path.replace(/\/$/, "")}/**/*.rs` : path]);
  const binary = await cargoTool(MUTANTS);
  // The tests in workerd need a build each: the native ones decide. A copy of the tree is mutated, not the checkout.
  const options = ["--output", "target", "--timeout", String(TIMEOUT_S), "--gitignore=true", "--no-shuffle"];
  await run(binary, ["mutants", ...options, ...files, ...more, "--", "--locked", "--lib", "--test", "native"], { cwd: root });
});
