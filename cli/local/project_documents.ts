// The documents of a project: stored when `curfew dev` starts, and again when one of their files changes, or one that they import.
import { existsSync, readdirSync, realpathSync, statSync, watch, type FSWatcher } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { AuthError, CurfewError, type Client } from "../../client/index.ts";
import { checkUnique, documentsOf, inOrder, isDocumentFile, NoDocumentError, type FileDocument } from "../documents.ts";
import { CommandError, detailLines, headline, nextSteps } from "../failures.ts";
import type { Output } from "../output.ts";
import { escaped, inOneLine } from "../terminal_text.ts";

/** An editor may write a file several times when it saves it once. */
const SETTLED_MS = 100;

export class ProjectDocuments {
  readonly #place: string;
  readonly #client: Client;
  readonly #output: Output;
  readonly #signal: AbortSignal;
  /** What was printed of each document last: one that has not changed is not printed again. */
  readonly #printed = new Map<string, string>();
  readonly #watchers = new Map<string, FSWatcher>();
  /** Files that modules of the last pass imported. */
  #imported = new Set<string>();
  #isWatching = false;
  #timer: NodeJS.Timeout | undefined;
  /** Passes follow each other: two of them at once could store the older content last. */
  #last: Promise<void> = Promise.resolve();
  /** The workflows that the last pass stored. */
  workflows: FileDocument["document"][] = [];

  /** `place` is a directory, or a file. It need not exist. */
  constructor(place: string, client: Client, output: Output, signal: AbortSignal) {
    this.#place = place;
    this.#client = client;
    this.#output = output;
    this.#signal = signal;
  }

  /** A refused document is printed and does not end the server: the next change may be its correction. */
  async store(): Promise<void> {
    const documents = await this.#read();
    this.workflows = [];
    for (const document of documents) await this.#put(document);
  }

  watch(): void {
    this.#isWatching = true;
    this.#watchPlaces();
  }

  stop(): void {
    this.#isWatching = false;
    clearTimeout(this.#timer);
    for (const watcher of this.#watchers.values()) watcher.close();
  }

  /** A file that cannot be read is printed, and the others are stored. */
  async #read(): Promise<FileDocument[]> {
    if (!existsSync(this.#place)) return [];
    const files = statSync(this.#place).isDirectory() ? readdirSync(this.#place).filter(isDocumentFile).sort().map((name) => join(this.#place, name)) : [this.#place];
    const imported = new Set<string>();
    const failures = new Map<string, CommandError>();
    const read = async (file: string): Promise<FileDocument[]> => {
      try {
        return await documentsOf(file, undefined, { note: this.#output.note, onImport: (other) => imported.add(other) });
      } catch (error) {
        if (!(error instanceof CommandError)) throw error;
        failures.set(file, error);
        return [];
      }
    };
    const documents = (await Promise.all(files.map(read))).flat();
    this.#imported = imported;
    for (const [file, error] of failures) {
      // Code that documents share stands among them.
      if (error instanceof NoDocumentError && imported.has(realpathSync(file))) continue;
      this.#output.problem(`${this.#output.errorColours.red("not stored")} ${escaped(error.message)}`);
    }
    checkUnique(documents);
    return inOrder(documents);
  }

  async #put({ kind, id, document, file }: FileDocument): Promise<void> {
    const { note, problem, errorColours } = this.#output;
    const name = `${kind.slice(0, -1)} ${id}`;
    try {
      const { version, warnings } = await this.#client.put(kind, document, { signal: this.#signal });
      if (kind === "workflows") this.workflows.push(document);
      const lines = [
        `${errorColours.green("stored")} ${escaped(name)} v${version}`,
        ...warnings.map(({ pointer, message }) => `  ${errorColours.yellow("warning")} ${inOneLine(pointer)}: ${inOneLine(message)}`),
      ];
      if (this.#printed.get(name) !== lines.join("\n")) note(...lines);
      this.#printed.set(name, lines.join("\n"));
    } catch (error) {
      if (!(error instanceof CurfewError)) throw error;
      this.#printed.delete(name);
      // With tokens in .dev.vars the project needs one of them.
      const next = error instanceof AuthError ? nextSteps(error, this.#output).map((step) => `  ${step}`) : [];
      problem(`${errorColours.red("refused")} ${escaped(name)} (${escaped(relative(".", file))}): ${inOneLine(headline(error))}`, ...detailLines(error), ...next);
    }
  }

  async #pass(): Promise<void> {
    try {
      await this.store();
    } catch (error) {
      if (!this.#signal.aborted) this.#output.problem(escaped((error as Error).message));
    }
    if (this.#isWatching) this.#watchPlaces();
  }

  /** Directories instead of files, because an editor may put a new file in the place of the old one. */
  #watchPlaces(): void {
    const wanted = new Set([this.#place, ...[...this.#imported].map(dirname)].filter((path) => existsSync(path)));
    for (const [path, watcher] of this.#watchers) {
      if (wanted.has(path)) continue;
      watcher.close();
      this.#watchers.delete(path);
    }
    for (const path of wanted) {
      if (this.#watchers.has(path)) continue;
      const watcher = watch(path, (_, name) => {
        // Where the system does not say which file it was, it may be one of ours.
        if (path === this.#place || name === null || this.#imported.has(join(path, basename(name)))) this.#request();
      });
      watcher.on("error", (error) => this.#output.problem(`changes in ${path} are not noticed any more: ${error.message}`));
      this.#watchers.set(path, watcher);
    }
  }

  #request(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => (this.#last = this.#last.then(() => this.#pass())), SETTLED_MS);
  }
}
