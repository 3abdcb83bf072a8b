// `node scripts/client_types.mjs` writes client/api.ts, the types of the API for the TypeScript client, from src/api/openapi.json;
// `npm run check` fails if it was forgotten.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { StepFailed } from "./terminal.mjs";
import { root } from "./toolchain.mjs";

const path = "client/api.ts";

const HEAD = "// The types of the API, written by scripts/client_types.mjs from src/api/openapi.json. Do not edit: change openapi/ instead.\n\n";

/** @returns {Promise<string>} */
async function text() {
  // Not at the top: set-up installs it.
  const { typesOf } = await import("../tools/api-types/generate.mjs");
  return HEAD + (await typesOf(readFileSync(join(root, "src/api/openapi.json"), "utf8")));
}

/** Fails if the types are older than the document. */
export async function checkClientTypes() {
  if (readFileSync(join(root, path), "utf8") !== (await text())) {
    throw new StepFailed(`${path} is not what src/api/openapi.json says: run node scripts/client_types.mjs`);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(join(root, path), await text());
