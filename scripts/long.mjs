// `npm run simulate` and `npm run fuzz`: the native tests that go on for as long as they are told. A number says how long:
// `npm run simulate -- 50000` seeds, `npm run fuzz -- 10` seconds for each target.
import { run, script, step, StepFailed } from "./terminal.mjs";
import { root } from "./toolchain.mjs";

const COMMANDS = {
  simulate: { variable: "CURFEW_SIM_SEEDS", usual: "1000000", tests: "sim::" },
  fuzz: { variable: "CURFEW_FUZZ_SECONDS", usual: "60", tests: "fuzz::" },
};

await script(async () => {
  const [name = "", amount] = process.argv.slice(2);
  const command = COMMANDS[/** @type {keyof typeof COMMANDS} */ (name)];
  if (command === undefined) throw new StepFailed(`one of ${Object.keys(COMMANDS).join(", ")}`);
  const { variable, usual, tests } = command;
  const env = { ...process.env, [variable]: amount ?? usual };
  const args = ["test", "--locked", "--profile", "long", "--test", "native", tests, "--", "--nocapture"];
  await step(`${name}, ${variable}=${env[variable]}`, () => run("cargo", args, { cwd: root, env }));
});
