// `npm run monitoring`: set-up, then Prometheus against Curfew, with the rules and the dashboard of examples/monitoring. Takes the
// programs of Prometheus from the PATH, or unpacks Debian's package: installing it would start a service.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setUp } from "./setup.mjs";
import { outputOf, run, script, step, StepFailed } from "./terminal.mjs";
import { program, toolCache } from "./toolchain.mjs";

await script(async () => {
  await setUp();
  const binaries = await prometheus();
  await run(...program("tests/monitoring/monitoring.ts", { CURFEW_PROMETHEUS: binaries }));
});

/** The directory of `prometheus` and `promtool`; empty if they are on the PATH. */
async function prometheus() {
  if ((await outputOf("promtool", ["--version"])) !== undefined && (await outputOf("prometheus", ["--version"])) !== undefined) return "";
  const unpacked = join(toolCache, "prometheus");
  const binaries = join(unpacked, "usr", "bin");
  if (!existsSync(join(binaries, "promtool"))) {
    await step("Prometheus unpacked", () => unpack(unpacked), "fetching Debian's package of Prometheus");
  }
  return binaries;
}

/** @param {string} target */
async function unpack(target) {
  mkdirSync(toolCache, { recursive: true });
  const directory = mkdtempSync(join(toolCache, "unpack-"));
  const download = () => run("apt-get", ["download", "prometheus"], { cwd: directory });
  try {
    if ((await outputOf("apt-get", ["--version"])) === undefined) {
      throw new StepFailed("Prometheus is missing: put prometheus and promtool on the PATH (on Debian this script fetches them)");
    }
    // The lists of packages may be missing on a fresh machine.
    await download().catch(async () => {
      await run("apt-get", ["update"]);
      await download();
    });
    const [archive] = readdirSync(directory).filter((name) => name.endsWith(".deb"));
    if (archive === undefined) throw new StepFailed("apt-get download prometheus left no package");
    await run("dpkg", ["-x", archive, "unpacked"], { cwd: directory });
    rmSync(target, { recursive: true, force: true });
    renameSync(join(directory, "unpacked"), target);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
