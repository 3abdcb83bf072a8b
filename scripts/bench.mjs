// `npm run bench`: set-up, then the measurement on the Node that can start workerd. `-- --check` fails when a limit is missed.
import { setUp } from "./setup.mjs";
import { run, script } from "./terminal.mjs";
import { program } from "./toolchain.mjs";

await script(async () => {
  await setUp();
  const [command, args, options] = program("bench/bench.ts");
  await run(command, [...args, ...process.argv.slice(2)], options);
});
