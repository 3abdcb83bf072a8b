// `npm run check`: every lint. All of them run even when one fails, so that one call shows every problem.
import { setUp } from "./setup.mjs";
import { run, script, step, StepFailed } from "./terminal.mjs";
import { node22, quietEnvironment, root, WASM_TARGET } from "./toolchain.mjs";

const typescript = "node_modules/typescript/bin/tsc";

/** A function, because set-up installs Node 22. @returns {Array<[title: string, command: string, args: string[]]>} */
const checks = () => [
  ["rustfmt", "cargo", ["fmt", "--check"]],
  ["clippy, native", "cargo", ["clippy", "--all-targets", "--locked", "--", "-D", "warnings"]],
  ["clippy, wasm", "cargo", ["clippy", "--target", WASM_TARGET, "--lib", "--locked", "--", "-D", "warnings"]],
  ["TypeScript, Node side", node22(), [typescript, "--noEmit", "-p", "tsconfig.json"]],
  ["TypeScript, Worker side", node22(), [typescript, "--noEmit", "-p", "tsconfig.worker.json"]],
];

await script(async () => {
  await setUp();
  const failed = [];
  for (const [title, command, args] of checks()) {
    try {
      await step(title, () => run(command, args, { cwd: root, env: quietEnvironment }));
    } catch (error) {
      if (!(error instanceof StepFailed)) throw error;
      console.error(`[curfew] ${error.message}`);
      failed.push(title);
    }
  }
  if (failed.length > 0) throw new StepFailed(`failed: ${failed.join("; ")}`);
});
