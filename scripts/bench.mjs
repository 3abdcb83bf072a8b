// `npm run bench`: set-up, then the figures on the Node that can start workerd.
import { setUp } from "./setup.mjs";
import { run, script } from "./terminal.mjs";
import { node22, quietEnvironment, root } from "./toolchain.mjs";

await script(async () => {
  await setUp();
  const file = "bench/bench.ts";
  await run(node22(), ["--disable-warning=ExperimentalWarning", file], { cwd: root, env: quietEnvironment });
});
