// `npm run deploy`: set-up, then migrations, then the Worker, which may read what the migrations add.
import { setUp } from "./setup.mjs";
import { run, script, step } from "./terminal.mjs";
import { node22, root, wrangler } from "./toolchain.mjs";

await script(async () => {
  await setUp();
  /** @param {string[]} args */
  const call = (args) => run(node22(), [wrangler, ...args], { cwd: root });
  await step("D1 migrations", () => call(["d1", "migrations", "apply", "curfew", "--remote", "-c", "wrangler.toml"]));
  await step("curfew", () => call(["deploy", "-c", "wrangler.toml"]));
});
