// `npm run check`: every lint. All of them run even when one fails, so that one call shows every problem.
import { checkClientTypes } from "./client_types.mjs";
import { checkFileLengths } from "./file_lengths.mjs";
import { checkContract } from "./openapi.mjs";
import { setUp } from "./setup.mjs";
import { run, script, step, StepFailed } from "./terminal.mjs";
import { node22, quietEnvironment, root, WASM_TARGET } from "./toolchain.mjs";

const typescript = "node_modules/typescript/bin/tsc";

/** @param {string} command @param {string[]} args */
const command = (command, args) => () => run(command, args, { cwd: root, env: quietEnvironment });

/** A function, because set-up installs Node 22. @returns {Array<[title: string, check: () => Promise<void>]>} */
const checks = () => [
  ["file lengths", checkFileLengths],
  ["the OpenAPI document", checkContract],
  ["the types of the client", checkClientTypes],
  ["rustfmt", command("cargo", ["fmt", "--check"])],
  ["rustfmt, tools/bindgen", command("cargo", ["fmt", "--check", "--manifest-path", "tools/bindgen/Cargo.toml"])],
  ["clippy, native", command("cargo", ["clippy", "--all-targets", "--locked", "--", "-D", "warnings"])],
  ["clippy, wasm", command("cargo", ["clippy", "--target", WASM_TARGET, "--lib", "--locked", "--", "-D", "warnings"])],
  ["clippy, the engine's wasm", command("cargo", ["clippy", "--target", WASM_TARGET, "--lib", "--no-default-features", "--features", "engine", "--locked", "--", "-D", "warnings"])],
  ["TypeScript, Node side", command(node22(), [typescript, "--noEmit", "-p", "tsconfig.json"])],
  ["TypeScript, Worker side", command(node22(), [typescript, "--noEmit", "-p", "tsconfig.worker.json"])],
  ["TypeScript, dashboard", command(node22(), [typescript, "--noEmit", "-p", "tsconfig.dashboard.json"])],
  ["TypeScript, tests in the browser", command(node22(), [typescript, "--noEmit", "-p", "tsconfig.browser.json"])],
  ["TypeScript, client", command(node22(), [typescript, "--noEmit", "-p", "tsconfig.client.json"])],
];

await script(async () => {
  await setUp();
  const failed = [];
  for (const [title, check] of checks()) {
    try {
      await step(title, check);
    } catch (error) {
      if (!(error instanceof StepFailed)) throw error;
      console.error(`[curfew] ${error.message}`);
      failed.push(title);
    }
  }
  if (failed.length > 0) throw new StepFailed(`failed: ${failed.join("; ")}`);
});
