// `npm start`: set-up, then `curfew dev` with the Worker of this checkout and the documents in examples/. PORT sets another port.
import { setUp } from "./setup.mjs";
import { run, script } from "./terminal.mjs";
import { program } from "./toolchain.mjs";

await script(async () => {
  await setUp();
  // The terminal sends Ctrl-C to every process; a plain `kill` reaches this one only.
  const [command, args, options] = program("cli/main.ts");
  const dev = ["dev", "--documents", "examples", "--persist", ".dev", "--port", process.env.PORT || "8787"];
  await run(command, [...args, ...dev], options);
});
