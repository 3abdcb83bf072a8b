// `node scripts/openapi.mjs` writes src/api/openapi.json and schema/*.json from the parts in openapi/; `npm run check` fails if it was
// forgotten.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { lines, openapi } from "../openapi/document.mjs";
import { documentSchemas } from "../openapi/document_schemas.mjs";
import { StepFailed } from "./terminal.mjs";
import { root } from "./toolchain.mjs";

/** The text of each file. @returns {[path: string, text: string][]} */
function files() {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const schemas = Object.entries(documentSchemas());
  return [
    ["src/api/openapi.json", `${lines(openapi(version))}\n`],
    ...schemas.map(([name, schema]) => /** @type {[string, string]} */ ([`schema/${name}.json`, `${lines(schema, 4)}\n`])),
  ];
}

/** Fails if a file is older than its parts. */
export async function checkContract() {
  const old = files().filter(([path, text]) => readFileSync(join(root, path), "utf8") !== text);
  if (old.length > 0) throw new StepFailed(`${old.map(([path]) => path).join(", ")} is not what openapi/ says: run node scripts/openapi.mjs`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [path, text] of files()) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
}
