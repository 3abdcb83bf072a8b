// `npm test`: set-up, the native tests, the tests in workerd, then three kills under load. Arguments name test files of
// tests/workerd: `npm test -- auth` runs auth.test.ts only, and no native test; `npm test -- crash` only kills.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { setUp } from "./setup.mjs";
import { run, script, step, StepFailed } from "./terminal.mjs";
import { node22, program, quietEnvironment, root } from "./toolchain.mjs";

await script(async () => {
  const wanted = process.argv.slice(2);
  await setUp();
  if (wanted.length === 0) await step("native tests", () => run("cargo", ["test", "--locked"], { cwd: root }));

  const directory = join("tests", "workerd");
  const files = readdirSync(join(root, directory))
    .filter((name) => name.endsWith(".test.ts"))
    .filter((name) => wanted.length === 0 || wanted.some((word) => name.startsWith(word)))
    .map((name) => join(directory, name));
  const kills = wanted.length === 0 || wanted.some((word) => word.startsWith("crash"));
  if (files.length === 0 && !kills) throw new StepFailed(`no test file in ${directory} begins with ${wanted.join(" or ")}`);

  const options = [
    "--test",
    // Each file runs a workerd of its own: more of them than cores would make deadlines late for no reason.
    "--test-concurrency=2",
    "--test-timeout=180000",
    "--test-reporter=spec",
    "--disable-warning=ExperimentalWarning",
  ];
  if (files.length > 0) await step("workerd tests", () => run(node22(), [...options, ...files], { cwd: root, env: quietEnvironment }));
  if (kills) await step("kills under load", () => run(...program("tests/crash/crash.ts")));
});
