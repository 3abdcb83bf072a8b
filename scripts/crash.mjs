// `npm run crash`: set-up, then twenty kills under load; CURFEW_CRASH_KILLS and CURFEW_CRASH_SEED have it otherwise.
import { setUp } from "./setup.mjs";
import { run, script } from "./terminal.mjs";
import { program } from "./toolchain.mjs";

await script(async () => {
  await setUp();
  await run(...program("tests/crash/crash.ts", { CURFEW_CRASH_KILLS: process.env.CURFEW_CRASH_KILLS ?? "20" }));
});
