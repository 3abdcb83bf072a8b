// Documents of files: which kind each is, and in which order they are stored. A parent is refused as long as its children are missing.
import { execFile, type ExecFileException } from "node:child_process";
import { readFile, stat } from "node:fs/promises";
import { extname, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import type { DocumentKind } from "../client/index.ts";
import { EXIT } from "./exit_codes.ts";
import { CommandError } from "./failures.ts";
import { BYTES_MAX, parsedJson } from "./json_input.ts";
import { node22 } from "./local/node22.ts";

export interface FileDocument {
  file: string;
  kind: DocumentKind;
  id: string;
  document: { id: string } & Record<string, unknown>;
}

export const KINDS: readonly DocumentKind[] = ["actions", "tasks", "workflows"];
const MODULES = [".ts", ".mts", ".mjs", ".js"];
const IMPORTED_WITHIN_MS = 30_000;

/** A module that exports no document: in a project it may be one that others import. */
export class NoDocumentError extends CommandError {
  constructor(message: string) {
    super(message, { exitCode: EXIT.usage });
  }
}

export interface ReadOptions {
  /** What takes a while, for people. */
  note?: (line: string) => void;
  /** Called with each file that a module imports, also where the import fails. Those of packages are left out. */
  onImport?: (file: string) => void;
}

/** Whether a file of a directory may hold documents. */
export const isDocumentFile = (name: string): boolean => (extname(name) === ".json" || MODULES.includes(extname(name))) && !/\.test\.|\.d\.m?ts$/.test(name);

/** The documents of a file: one, or a list. */
export async function documentsOf(file: string, kind: DocumentKind | undefined, options: ReadOptions = {}): Promise<FileDocument[]> {
  const content = await contentOf(file, options);
  const found = Array.isArray(content) ? content : [content];
  if (found.length === 0) throw wrong(`${file} holds an empty list`);
  return found.map((document: unknown, index) => {
    const place = Array.isArray(content) ? `${file}, item ${index}` : file;
    if (typeof document !== "object" || document === null || Array.isArray(document)) throw wrong(`${place} is no document, but ${what(document)}`);
    const fields = document as Record<string, unknown>;
    if (typeof fields["id"] !== "string" || fields["id"] === "") throw wrong(`${place} has no "id"; add one of a-z 0-9 - _`);
    const recognised = kind ?? kindOf(fields);
    if (recognised === undefined) throw wrong(`${place} is neither a workflow (with "nodes"), nor a task ("steps"), nor an action ("kind"); name it with --kind`);
    return { file: place, kind: recognised, id: fields["id"], document: fields as FileDocument["document"] };
  });
}

const wrong = (message: string) => new CommandError(message, { exitCode: EXIT.usage });
const what = (value: unknown) => (value === null ? "null" : Array.isArray(value) ? "a list" : `a ${typeof value}`);

async function contentOf(file: string, options: ReadOptions): Promise<unknown> {
  const found = await stat(file).catch(() => undefined);
  if (found === undefined) throw wrong(`there is no file ${file}`);
  if (found.isDirectory()) throw wrong(`${file} is a directory; name its files: ${file.replace(/\/$/, "")}/*.json`);
  if (found.size > BYTES_MAX) throw wrong(`${file} has ${found.size} bytes; the API takes 1 MiB (${BYTES_MAX})`);
  if (MODULES.includes(extname(file))) return defaultExport(file, options);
  const text = await readFile(file, "utf8").catch((error: Error) => {
    throw wrong(`${file} cannot be read: ${error.message}`);
  });
  try {
    return parsedJson(text);
  } catch (error) {
    throw wrong(`${file} ${(error as Error).message}`);
  }
}

/** What the process below runs. The stack of a syntax error begins with its place; of other errors the first place in it is enough. */
const IMPORTING = `
  import module from "node:module";
  const imports = new Set();
  const note = (url) => url.startsWith("file:") && !url.includes("/node_modules/") && imports.add(url);
  // Node has it since 22.15.
  module.registerHooks?.({
    resolve(specifier, context, next) {
      // Also of a file that is missing.
      if (/^(\\.|\\/|file:)/.test(specifier)) note(new URL(specifier, context.parentURL).href);
      const resolved = next(specifier, context);
      note(resolved.url);
      return resolved;
    },
  });
  let result;
  try {
    const { default: value } = await import(process.argv[1]);
    // Fails here for what is no JSON.
    JSON.stringify(value);
    result = { value, type: typeof value };
  } catch (error) {
    const place = /(file:(?!\\S*\\[eval)[^\\s)]+:\\d+)/.exec(error?.stack)?.[1];
    result = { error: error?.message ?? String(error), place };
  }
  imports.delete(process.argv[1]);
  // A timer or a connection of the module would keep the process alive.
  process.stdout.write("\\n" + JSON.stringify({ ...result, imports: [...imports] }), () => process.exit());`;

interface Imported {
  value?: unknown;
  type?: string;
  error?: string;
  place?: string;
  imports: string[];
}

/** Read by a process of its own: an older Node cannot run TypeScript, and this process would not see a later change of the module. */
async function defaultExport(file: string, { note = () => {}, onImport = () => {} }: ReadOptions): Promise<unknown> {
  const node = await node22(note);
  const args = ["--disable-warning=ExperimentalWarning", "--input-type=module", "--eval", IMPORTING, pathToFileURL(resolve(file)).href];
  const { stdout } = await promisify(execFile)(node, args, { maxBuffer: 16 * BYTES_MAX, timeout: IMPORTED_WITHIN_MS }).catch((error: ExecFileException) => {
    // The message of the error is the whole program.
    const reason = error.killed ? `it did not end within ${IMPORTED_WITHIN_MS / 1_000} s, or printed too much` : error.stderr?.trim() || `its process ended (exit code ${error.code})`;
    throw new CommandError(`${file} cannot be imported: ${reason}`);
  });
  // The module may print, too.
  const last = stdout.slice(stdout.lastIndexOf("\n") + 1);
  if (!last.startsWith("{")) throw new CommandError(`${file} cannot be imported: it ended the process`);
  const result = JSON.parse(last) as Imported;
  for (const url of result.imports) onImport(fileURLToPath(url));
  if (result.error !== undefined) throw new CommandError(`${file} cannot be imported: ${result.error}${result.place ? ` (${fileURLToPath(result.place)})` : ""}`);
  if (result.type === "undefined") throw new NoDocumentError(`${file} has no default export; write \`export default defineWorkflow({...})\``);
  if (result.value === undefined) throw new NoDocumentError(`the default export of ${file} is no document, but a ${result.type}`);
  return result.value;
}

/** By `$schema`, else by the fields that only one kind has. */
function kindOf(document: Record<string, unknown>): DocumentKind | undefined {
  const schema = typeof document["$schema"] === "string" ? /\/(workflow|task|action)\.json$/.exec(document["$schema"])?.[1] : undefined;
  if (schema !== undefined) return `${schema}s` as DocumentKind;
  if (Array.isArray(document["nodes"])) return "workflows";
  if (Array.isArray(document["steps"])) return "tasks";
  return typeof document["kind"] === "string" ? "actions" : undefined;
}

const keyOf = ({ kind, id }: { kind: DocumentKind; id: string }) => `${kind} ${id}`;

/** The documents that one refers to, by their keys. */
function referencesOf(parent: FileDocument): Set<string> {
  const wanted = new Set<string>();
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) return value.forEach(visit);
    if (typeof value !== "object" || value === null) return;
    for (const [name, field] of Object.entries(value)) {
      const kind = KINDS.find((one) => name === `${one.slice(0, -1)}_id`);
      if (kind !== undefined && typeof field === "string") wanted.add(keyOf({ kind, id: field }));
      else visit(field);
    }
  };
  visit(parent.document);
  return wanted;
}

/** The documents among `all` that this one refers to. */
export function childrenOf(parent: FileDocument, all: readonly FileDocument[]): FileDocument[] {
  const wanted = referencesOf(parent);
  return all.filter((other) => other !== parent && wanted.has(keyOf(other)));
}

/** Whether a workflow refers to nothing but the tasks and actions in itself. */
export function isSelfContained(workflow: FileDocument): boolean {
  const own = new Set<string>();
  for (const kind of KINDS) {
    const inside = workflow.document[kind];
    if (Array.isArray(inside)) for (const one of inside) own.add(keyOf({ kind, id: String((one as { id?: unknown } | null)?.id) }));
  }
  return [...referencesOf(workflow)].every((key) => own.has(key));
}

/** Children before parents; otherwise as given. Workflows that call each other stay in their order, and the API says what is missing. */
export function inOrder(documents: readonly FileDocument[]): FileDocument[] {
  const ordered: FileDocument[] = [];
  const visited = new Set<FileDocument>();
  const visit = (document: FileDocument): void => {
    if (visited.has(document)) return;
    visited.add(document);
    childrenOf(document, documents).forEach(visit);
    ordered.push(document);
  };
  documents.forEach(visit);
  return ordered;
}

/** Two files with one id would be two versions in an order that cannot be foreseen. */
export function checkUnique(documents: readonly FileDocument[]): void {
  const seen = new Map<string, FileDocument>();
  for (const document of documents) {
    const other = seen.get(keyOf(document));
    if (other !== undefined) throw wrong(`${document.kind.slice(0, -1)} ${document.id} is in ${other.file} and in ${document.file}`);
    seen.set(keyOf(document), document);
  }
}
