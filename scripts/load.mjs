// `npm run load`: set-up, then many runs at once for five minutes. CURFEW_LOAD_SECONDS sets another time, CURFEW_LOAD_RUNS another
// number of runs.
import { setUp } from "./setup.mjs";
import { run, script } from "./terminal.mjs";
import { program } from "./toolchain.mjs";

await script(async () => {
  await setUp();
  await run(...program("tests/crash/load.ts"));
});
