// The files that come with the command line. The package and the repository have them in the same places.
import { fileURLToPath } from "node:url";

export const packageRoot = fileURLToPath(new URL("..", import.meta.url));

/** How a shell calls the command line. A checkout is no package that npx finds: it would look for another one of that name. */
export const shellProgram = import.meta.url.endsWith(".ts") ? "node_modules/.bin/node cli/main.ts" : "npx curfew";
