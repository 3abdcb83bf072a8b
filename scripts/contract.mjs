// `npm run contract`: set-up, then two minutes of generated requests against a local Curfew. It needs Python 3.10 or newer.
// CURFEW_CONTRACT_SECONDS sets another time, CURFEW_CONTRACT_SEED another seed.
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setUp } from "./setup.mjs";
import { run, script, step, StepFailed } from "./terminal.mjs";
import { program, toolCache } from "./toolchain.mjs";

const VERSION = "4.32.5";

/** A virtual environment of its own, installed on first use. Returns the path of its program. */
async function schemathesis() {
  const directory = join(toolCache, `schemathesis-${VERSION}`);
  const isWindows = process.platform === "win32";
  const binaries = join(directory, isWindows ? "Scripts" : "bin");
  const binary = join(binaries, isWindows ? "schemathesis.exe" : "schemathesis");
  if (existsSync(binary)) return binary;
  const install = async () => {
    try {
      await run(isWindows ? "python" : "python3", ["-m", "venv", directory]);
      await run(join(binaries, "python"), ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", `schemathesis==${VERSION}`]);
    } catch (error) {
      // Half an installation would look like a whole one.
      rmSync(directory, { recursive: true, force: true });
      if (!(error instanceof StepFailed)) throw error;
      throw new StepFailed(`${error.message}: \`npm run contract\` needs Python 3.10 or newer with venv and pip`);
    }
  };
  await step(`schemathesis ${VERSION} installed`, install, `installing schemathesis ${VERSION}: usually half a minute, once per machine`);
  return binary;
}

await script(async () => {
  await setUp();
  await run(...program("tests/contract/contract.ts", { CURFEW_SCHEMATHESIS: await schemathesis() }));
});
