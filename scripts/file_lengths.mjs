// The longest that files may be. A source file that has grown too long is split, a document is moved to docs/.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { outputOf, StepFailed } from "./terminal.mjs";
import { root } from "./toolchain.mjs";

const SOURCE_LINES_MAX = 600;
const SOURCE = /\.(rs|ts|tsx|mjs|sql|css)$/;
/** Written by programs, from files that are read. */
const GENERATED = ["client/api.ts", "client/documents.ts"];
/** @type {Record<string, number>} */
const DOCUMENT_LINES_MAX = { "README.md": 200, "ARCHITECTURE.md": 250 };

/**
 * One line for each file that is too long.
 * @param {{path: string, lines: number}[]} files
 * @returns {string[]}
 */
export function tooLong(files) {
  return files.flatMap(({ path, lines }) => {
    const limit = DOCUMENT_LINES_MAX[path] ?? (SOURCE.test(path) && !GENERATED.includes(path) ? SOURCE_LINES_MAX : undefined);
    return limit !== undefined && lines > limit ? [`${path} has ${lines} lines, limit ${limit}`] : [];
  });
}

/** Of the files that git knows, and of new ones that it would take. */
export async function checkFileLengths() {
  const listed = await outputOf("git", ["ls-files", "--cached", "--others", "--exclude-standard"], { cwd: root });
  if (listed === undefined) throw new StepFailed("git cannot list the files");
  const files = listed.split("\n").filter((path) => SOURCE.test(path) || path in DOCUMENT_LINES_MAX);
  const found = tooLong(files.map((path) => ({ path, lines: linesOf(path) })));
  if (found.length > 0) throw new StepFailed(found.join("; "));
}

/** @param {string} path */
function linesOf(path) {
  try {
    return readFileSync(join(root, path), "utf8").split("\n").length - 1;
  } catch {
    // Removed, but git still lists it.
    return 0;
  }
}
