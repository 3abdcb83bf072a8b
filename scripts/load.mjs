// `npm run load`: set-up, then many runs at once for five minutes; CURFEW_LOAD_SECONDS and CURFEW_LOAD_RUNS have it otherwise.
import { setUp } from "./setup.mjs";
import { run, script } from "./terminal.mjs";
import { program } from "./toolchain.mjs";

await script(async () => {
  await setUp();
  await run(...program("tests/crash/load.ts"));
});
