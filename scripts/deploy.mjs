// `npm run deploy`: set-up, then `curfew deploy`. Arguments are those of the command, such as --dry-run.
import { setUp } from "./setup.mjs";
import { run, script } from "./terminal.mjs";
import { program } from "./toolchain.mjs";

await script(async () => {
  await setUp();
  const [command, args, options] = program("cli/main.ts");
  await run(command, [...args, "deploy", ...process.argv.slice(2)], options);
});
