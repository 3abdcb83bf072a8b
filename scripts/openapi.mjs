// `node scripts/openapi.mjs` writes src/api/openapi.json from the parts in openapi/; `npm run check` fails if it was forgotten.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { lines, openapi } from "../openapi/document.mjs";
import { StepFailed } from "./terminal.mjs";
import { root } from "./toolchain.mjs";

const PATH = "src/api/openapi.json";

function text() {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  return `${lines(openapi(version))}\n`;
}

/** Fails if the file is older than its parts. */
export async function checkContract() {
  if (readFileSync(join(root, PATH), "utf8") !== text()) throw new StepFailed(`${PATH} is not what openapi/ says: run node scripts/openapi.mjs`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(join(root, PATH), text());
