// The files that come with the command line. The package and the repository have them in the same places.
import { fileURLToPath } from "node:url";

export const packageRoot = fileURLToPath(new URL("..", import.meta.url));
