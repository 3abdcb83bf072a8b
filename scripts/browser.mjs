// `npm run browser`: set-up, then the tests of the dashboard in chromium. `-- --screenshots` makes screenshots of every page instead, into
// dist/screenshots; `-- --pictures` makes those of README and docs. Other arguments choose test files of tests/browser by the beginning of their names.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { setUp } from "./setup.mjs";
import { outputOf, run, script, step, StepFailed } from "./terminal.mjs";
import { node22, program, quietEnvironment, root } from "./toolchain.mjs";

const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";

await script(async () => {
  const wanted = process.argv.slice(2);
  await setUp();
  await step("chromium", findChromium);
  if (wanted.includes("--screenshots")) {
    await step("screenshots", () => run(...program("tests/browser/screenshots.ts")));
    return;
  }
  if (wanted.includes("--pictures")) {
    await step("pictures", () => run(...program("tests/browser/pictures.ts")));
    return;
  }
  const directory = join("tests", "browser");
  const files = readdirSync(join(root, directory)).filter((name) => name.endsWith(".test.ts") && (wanted.length === 0 || wanted.some((prefix) => name.startsWith(prefix))));
  if (files.length === 0) throw new StepFailed(`no test file in ${directory} begins with ${wanted.join(" or ")}`);
  // One at a time: each has a server and a browser, and frames are measured. The timeout is also that of a whole file.
  const options = ["--test", "--test-concurrency=1", "--test-timeout=600000", "--test-reporter=spec", "--disable-warning=ExperimentalWarning"];
  await step("tests in the browser", () => run(node22(), [...options, ...files.map((name) => join(directory, name))], { cwd: root, env: quietEnvironment }));
});

/** That of Debian: installed where it is missing and this may be done. */
async function findChromium() {
  if (!existsSync(CHROMIUM)) {
    const isRoot = process.getuid?.() === 0;
    if (!isRoot || (await outputOf("apt-get", ["--version"])) === undefined) throw new StepFailed(`${CHROMIUM} is missing: install chromium (Debian: apt-get install chromium), or set CHROMIUM to its path`);
    console.log("[curfew] installing chromium ...");
    const install = () => run("apt-get", ["install", "--yes", "--no-install-recommends", "chromium"]);
    await install().catch(async () => {
      await run("apt-get", ["update"]);
      await install();
    });
  }
  return outputOf(CHROMIUM, ["--version"]);
}
