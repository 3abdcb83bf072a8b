// The version of the package. A bundle replaces the name with a constant; in the repository package.json has it.
import { readFileSync } from "node:fs";

declare const CURFEW_VERSION: string | undefined;

export const VERSION: string = typeof CURFEW_VERSION === "string" ? CURFEW_VERSION : versionOfRepository();

function versionOfRepository(): string {
  const text = readFileSync(new URL("../package.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}
