// `npm run simulate` and `npm run fuzz`: the native tests whose length can be chosen. `npm run simulate -- 50000` runs so many
// seeds, `npm run fuzz -- 10` so many seconds per target.
import { run, script, step, StepFailed } from "./terminal.mjs";
import { root } from "./toolchain.mjs";

const COMMANDS = {
  simulate: { variable: "CURFEW_SIM_SEEDS", byDefault: "1000000", tests: "sim::" },
  fuzz: { variable: "CURFEW_FUZZ_SECONDS", byDefault: "60", tests: "fuzz::" },
};

await script(async () => {
  const [name = "", amount] = process.argv.slice(2);
  const command = COMMANDS[/** @type {keyof typeof COMMANDS} */ (name)];
  if (command === undefined) throw new StepFailed(`expected one of ${Object.keys(COMMANDS).join(", ")}`);
  const { variable, byDefault, tests } = command;
  const env = { ...process.env, [variable]: amount ?? byDefault };
  const args = ["test", "--locked", "--profile", "long", "--test", "native", tests, "--", "--nocapture"];
  await step(`${name}, ${variable}=${env[variable]}`, () => run("cargo", args, { cwd: root, env }));
});
