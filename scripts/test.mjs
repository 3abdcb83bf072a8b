// `npm test`: set-up, the native tests, then the tests in workerd. Arguments name test files of tests/workerd:
// `npm test -- auth` runs auth.test.ts only, and no native test.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { setUp } from "./setup.mjs";
import { run, script, step, StepFailed } from "./terminal.mjs";
import { node22, quietEnvironment, root } from "./toolchain.mjs";

await script(async () => {
  const wanted = process.argv.slice(2);
  await setUp();
  if (wanted.length === 0) await step("native tests", () => run("cargo", ["test", "--locked"], { cwd: root }));

  const directory = join("tests", "workerd");
  const files = readdirSync(join(root, directory))
    .filter((name) => name.endsWith(".test.ts"))
    .filter((name) => wanted.length === 0 || wanted.some((word) => name.startsWith(word)))
    .map((name) => join(directory, name));
  if (files.length === 0) throw new StepFailed(`no test file in ${directory} begins with ${wanted.join(" or ")}`);

  const options = [
    "--test",
    // Each file runs a workerd of its own: more of them than cores would make deadlines late for no reason.
    "--test-concurrency=2",
    "--test-timeout=180000",
    "--test-reporter=spec",
    "--disable-warning=ExperimentalWarning",
  ];
  await step("workerd tests", () => run(node22(), [...options, ...files], { cwd: root, env: quietEnvironment }));
});
