// `curfew init`: lays out a project: a configuration of wrangler, the Worker, a workflow in TypeScript, its test, notes for coding agents.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import type { Command, Invocation } from "../command.ts";
import { EXIT, type ExitCode } from "../exit_codes.ts";
import { CommandError } from "../failures.ts";
import { installedFrom } from "../local/installed_from.ts";
import { quoted } from "../output.ts";
import { packageRoot } from "../package_root.ts";
import { CONFIGURATIONS } from "./dev.ts";

export const init: Command = {
  name: "init",
  summary: "Lays out a project: wrangler.toml, the Worker, a workflow in TypeScript with a test, AGENTS.md.",
  positionals: [{ name: "directory", isOptional: true, candidates: "file" }],
  flags: [],
  examples: ["curfew init", "curfew init my-workflows"],
  run,
};

/** A project that has these already works with its own. */
const KEPT = [".gitignore", "tsconfig.json", "AGENTS.md"];

async function run({ words, output }: Invocation): Promise<ExitCode> {
  const directory = resolve(words[0] ?? ".");
  const files = new Map([...template(), ["wrangler.toml", configuration(basename(directory))]]);
  const isThere = (name: string) => existsSync(join(directory, name));
  const kept = KEPT.filter(isThere);
  const notIgnored = kept.includes(".gitignore") ? linesMissing(files.get(".gitignore")!, join(directory, ".gitignore")) : [];
  for (const name of kept) files.delete(name);
  const existing = [...files.keys(), ...CONFIGURATIONS.filter((name) => !files.has(name))].filter(isThere);
  if (existing.length > 0) {
    throw new CommandError(`${existing.join(", ")} ${existing.length === 1 ? "is" : "are"} there already; nothing was written`, {
      next: "name another directory, `curfew init <directory>`, or move what is in the way",
    });
  }
  // Before the files, because it may be the one that cannot be read.
  files.set("package.json", manifest(directory));
  for (const [name, text] of files) {
    const file = join(directory, name);
    try {
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, text);
    } catch (error) {
      throw new CommandError(`${file} cannot be written: ${(error as Error).message}`);
    }
  }
  const written = [...files.keys()].sort();
  if (output.isJson) {
    output.rawJson({ directory, files: written, kept });
    return EXIT.ok;
  }
  const { green, yellow } = output.colours;
  const shown = (name: string) => relative(".", join(directory, name));
  const advice = (name: string) => (name === ".gitignore" && notIgnored.length > 0 ? `, without ${notIgnored.join(", ")}: add them` : "");
  output.lines(...written.map((name) => `${green("wrote")} ${shown(name)}`), ...kept.map((name) => `${yellow("kept")}  ${shown(name)}${advice(name)}`), ...nextSteps(directory));
  return EXIT.ok;
}

/** The lines of `text` that a file does not have. */
function linesMissing(text: string, file: string): string[] {
  const present = readText(file).split("\n").map((line) => line.trim().replace(/^\/|\/$/g, ""));
  return text.split("\n").filter((line) => line !== "" && !present.includes(line));
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new CommandError(`${file} cannot be read: ${(error as Error).message}`);
  }
}

function* template(): Generator<[name: string, text: string]> {
  const from = join(packageRoot, existsSync(join(packageRoot, "template")) ? "template" : "package/template");
  for (const entry of readdirSync(from, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    const name = relative(from, path).split(/[\\/]/).join("/");
    // npm leaves a file with its real name out of packages.
    yield [name === "gitignore" ? ".gitignore" : name, readFileSync(path, "utf8")];
  }
}

/** A name that npm and Cloudflare take. */
const plainName = (name: string): string => name.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "") || "curfew";

/** That of Curfew, with the paths of a project. */
function configuration(name: string): string {
  const worker = plainName(name).slice(0, 54);
  return readFileSync(join(packageRoot, "wrangler.toml"), "utf8")
    .replace(/^# Curfew as one Worker[^\n]*\n#[^\n]*\n/, "# Curfew as one Worker: API, run objects, index of runs, executor, breakers.\n")
    .replace(/^name = .*$/m, `name = "${worker}"`)
    .replace(/^main = .*$/m, 'main = "src/worker.mts"')
    .replace(/^directory = .*$/m, 'directory = "node_modules/curfew/dashboard"')
    .replace(/^migrations_dir = .*$/m, 'migrations_dir = "node_modules/curfew/migrations"')
    .replace(/^# Compiles what has changed.*\n\[build\]\ncommand = .*\n\n/m, "")
    .replace('service = "curfew"', `service = "${worker}"`)
    .replaceAll("npm start", "curfew dev")
    .replaceAll("docs/security.md", "node_modules/curfew/docs/security.md");
}

/** package.json with what is missing. What the project has is kept. */
function manifest(directory: string): string {
  const file = join(directory, "package.json");
  const created: Manifest = { name: plainName(basename(directory)), private: true, type: "module" };
  const { scripts = {}, dependencies = {}, devDependencies = {}, ...rest } = existsSync(file) ? parsed(file) : created;
  // What `npm init` writes is no test.
  if (scripts["test"]?.includes("no test specified")) delete scripts["test"];
  const tools = {
    "@types/node": "^22.0.0",
    typescript: "^7.0.0",
    ...(runsTypeScript() ? {} : { node: NODE }),
    ...("curfew" in dependencies ? {} : { curfew: installedFrom(packageRoot, directory) }),
  };
  const all = {
    ...rest,
    scripts: { dev: "curfew dev", test: "node --test test/*.test.mts", check: "tsc", deploy: "curfew deploy", ...scripts },
    dependencies,
    devDependencies: { ...tools, ...devDependencies },
    allowScripts: { esbuild: true, node: true, workerd: true, ...rest.allowScripts },
  };
  return `${JSON.stringify(all, null, 2)}\n`;
}

/** For a project on a machine with an older Node, which cannot run tests in TypeScript: npm puts this one first for its scripts. */
const NODE = "^22.18.0";

function runsTypeScript(): boolean {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  return major > 22 || (major === 22 && minor >= 18);
}

interface Manifest {
  [field: string]: unknown;
  allowScripts?: Record<string, boolean>;
  scripts?: Record<string, string>;
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
}

function parsed(file: string): Manifest {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as Manifest;
  } catch (error) {
    throw new CommandError(`${file} is not JSON: ${(error as Error).message}`);
  }
}

function nextSteps(directory: string): string[] {
  const enter = relative(".", directory);
  return ["", ...(enter === "" ? [] : [`  cd ${quoted(enter)}`]), "  npm install", "  npm test", "  npm run dev"];
}
