// `npm test`: set-up, the tests of scripts, bench, client, command line and dashboard, the native tests, the tests in workerd, then three kills
// under load. Arguments
// choose test files of tests/workerd by the beginning of their names: `npm test -- auth` runs auth.test.ts and nothing else, `npm
// test -- crash` only kills.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { setUp } from "./setup.mjs";
import { run, script, step, StepFailed } from "./terminal.mjs";
import { node22, program, quietEnvironment, root } from "./toolchain.mjs";

const OPTIONS = [
  "--test",
  // Each file of tests/workerd starts a workerd: with more of them than cores deadlines would be late.
  "--test-concurrency=2",
  "--test-timeout=180000",
  "--test-reporter=spec",
  "--disable-warning=ExperimentalWarning",
];

await script(async () => {
  const wanted = process.argv.slice(2);
  await setUp();
  if (wanted.length === 0) {
    const directories = ["scripts", "bench", "cli", join("cli", "watch"), join("tests", "client"), "dashboard", join("dashboard", "logic")];
    const files = directories.flatMap((directory) => testFilesIn(directory));
    await step("tests of scripts, bench, client, command line and dashboard", () => run(node22(), [...OPTIONS, ...files], { cwd: root, env: quietEnvironment }));
    await step("native tests", () => run("cargo", ["test", "--locked"], { cwd: root }));
  }

  const directory = join("tests", "workerd");
  const files = testFilesIn(directory, wanted);
  const withKills = wanted.length === 0 || wanted.some((prefix) => prefix.startsWith("crash"));
  if (files.length === 0 && !withKills) throw new StepFailed(`no test file in ${directory} begins with ${wanted.join(" or ")}`);
  if (files.length > 0) await step("workerd tests", () => run(node22(), [...OPTIONS, ...files], { cwd: root, env: quietEnvironment }));
  if (withKills) await step("kills under load", () => run(...program("tests/crash/crash.ts")));
});

/** Those whose names begin with one of `prefixes`, or all. @param {string} directory @param {string[]} [prefixes] */
function testFilesIn(directory, prefixes = []) {
  return readdirSync(join(root, directory))
    .filter((name) => /\.test\.(ts|mjs)$/.test(name))
    .filter((name) => prefixes.length === 0 || prefixes.some((prefix) => name.startsWith(prefix)))
    .map((name) => join(directory, name));
}
