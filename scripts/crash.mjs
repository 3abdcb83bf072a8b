// `npm run crash`: set-up, then kills workerd twenty times under load. CURFEW_CRASH_KILLS sets another number, CURFEW_CRASH_SEED
// another random sequence.
import { setUp } from "./setup.mjs";
import { run, script } from "./terminal.mjs";
import { program } from "./toolchain.mjs";

await script(async () => {
  await setUp();
  await run(...program("tests/crash/crash.ts", { CURFEW_CRASH_KILLS: process.env.CURFEW_CRASH_KILLS ?? "20" }));
});
