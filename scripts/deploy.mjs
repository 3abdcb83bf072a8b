// `npm run deploy`: set-up, then both Workers. The executor comes first, because the coordinator is bound to it and to its
// breakers. The executor needs nothing of the coordinator but the queue, which both find by name.
import { setUp } from "./setup.mjs";
import { run, script, step } from "./terminal.mjs";
import { node22, root, wrangler } from "./toolchain.mjs";

await script(async () => {
  await setUp();
  /** @param {string[]} args */
  const call = (args) => run(node22(), [wrangler, ...args], { cwd: root });
  await step("D1 migrations", () => call(["d1", "migrations", "apply", "curfew", "--remote", "-c", "wrangler.toml"]));
  await step("curfew-executor", () => call(["deploy", "-c", "wrangler.executor.toml"]));
  await step("curfew", () => call(["deploy", "-c", "wrangler.toml"]));
});
