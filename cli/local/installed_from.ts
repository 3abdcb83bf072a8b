// Where the package that runs came from, so that a project which it lays out installs the same one.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { VERSION } from "../version.ts";

const NAME = "curfew";

/** What a package.json in `directory` has as the version of Curfew. `root` is the directory of the package that runs. */
export function installedFrom(root: string, directory: string): string {
  // In a checkout `npm run package` makes it.
  if (existsSync(join(root, "cli", "main.ts"))) return fileIn(directory, join(root, "dist", `${NAME}-${VERSION}.tgz`));
  for (let parent = dirname(resolve(root)); parent !== dirname(parent); parent = dirname(parent)) {
    const manifest = read(join(parent, "package.json"));
    // What npm wrote for `npm install --no-save`, which is in no package.json.
    const locked = read(join(parent, "node_modules", ".package-lock.json"))?.packages?.[`node_modules/${NAME}`]?.resolved;
    const written = manifest?.dependencies?.[NAME] ?? manifest?.devDependencies?.[NAME] ?? manifest?.optionalDependencies?.[NAME];
    const found = written ?? (locked?.startsWith("file:") ? locked : undefined);
    if (found === undefined) continue;
    if (found.startsWith("file:")) return fileIn(directory, resolve(parent, found.slice("file:".length)));
    // An address or a repository. A range means the registry.
    return /[:/]/.test(found) ? found : `^${VERSION}`;
  }
  return `^${VERSION}`;
}

/** Relative, as npm writes it. */
const fileIn = (directory: string, file: string): string => `file:${relative(directory, file).split("\\").join("/")}`;

interface Manifest {
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  packages?: Record<string, { resolved?: string }>;
}

function read(file: string): Manifest | undefined {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as Manifest;
  } catch {
    // There is none, or it is not one of npm.
    return undefined;
  }
}
