// The package from an empty directory to a completed run, as `npm run package -- --check` has it.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makePackage } from "../scripts/package.mjs";
import { environmentIn, firstRun, Shell } from "../tests/package/installed.ts";
import { rounded } from "./figures.ts";

export async function firstRunFigures() {
  const tarball = await makePackage();
  const directory = mkdtempSync(join(tmpdir(), "curfew-bench-"));
  try {
    const { took_ms } = await firstRun(new Shell(join(directory, "first"), environmentIn(directory)), tarball);
    return { seconds: rounded(took_ms / 1_000, 1) };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
