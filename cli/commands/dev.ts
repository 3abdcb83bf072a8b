// `curfew dev`: Curfew on this machine, with the documents of the project, which are stored again when they change.
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { createClient, type Client } from "../../client/index.ts";
import { UsageError, type Flags } from "../arguments.ts";
import type { Command, Invocation } from "../command.ts";
import { addressOf, tokenOf } from "../connection.ts";
import type { FileDocument } from "../documents.ts";
import { EXIT, type ExitCode } from "../exit_codes.ts";
import { CommandError } from "../failures.ts";
import { ProjectDocuments } from "../local/project_documents.ts";
import { logFile, makeStore, startLocal, type LocalServer } from "../local/server.ts";
import { commandFor, type Output } from "../output.ts";
import { packageRoot, shellProgram } from "../package_root.ts";
import { startWords } from "../start_words.ts";

const PORT = 8787;
/** What is stored and run where there is nothing of the user. */
const HELLO = join(packageRoot, "examples", "hello.json");

export const dev: Command = {
  name: "dev",
  summary: "Runs Curfew on this machine, stores the documents in `workflows/`, and again when they change.",
  positionals: [],
  flags: [
    { name: "port", value: "port", summary: `The port; by default ${PORT}, 0 for any free one.` },
    { name: "config", value: "file", summary: "A file of wrangler; by default `wrangler.toml` (or .jsonc, .json) here, or else one that comes with Curfew.", candidates: "file" },
    { name: "documents", value: "directory", summary: "Where workflows, tasks and actions are; by default `workflows/`.", candidates: "file" },
    { name: "logs", summary: "Prints what wrangler and the Worker print; by default it is in `.curfew/dev.log`." },
    { name: "persist", value: "directory", summary: "Where everything is stored; by default `.curfew/`." },
  ],
  examples: ["curfew dev", "curfew dev --port 8788"],
  run,
};

async function run({ flags, output, terminal, environment }: Invocation): Promise<ExitCode> {
  if (flags.has("logs") && output.isJson) throw new UsageError("--logs and --json exclude each other: standard output would hold both", dev);
  const configuration = configurationOf(flags);
  const documents = documentsIn(flags, configuration.isProject);
  const token = tokenOf(flags, environment);
  const persistTo = resolve(flags.text("persist") ?? ".curfew");
  const interruption = new AbortController();
  const { signal } = interruption;
  const interrupted = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
  const stopListening = terminal.onInterrupt(() => interruption.abort());
  let server: LocalServer | undefined;
  let stored: ProjectDocuments | undefined;
  try {
    const startedAt = terminal.now();
    const starting = startLocal({
      configuration: configuration.isProject ? configuration.file : packagedConfiguration(persistTo),
      port: flags.whole("port", 0, 65_535) ?? PORT,
      persistTo,
      showsLogs: flags.has("logs"),
      note: (line) => output.note(line),
      signal,
    });
    server = await starting.catch((error: Error) => {
      if (signal.aborted) return undefined;
      throw error instanceof CommandError ? error : new CommandError(error.message);
    });
    if (server === undefined) return EXIT.ok;
    const client = createClient({ url: server.url, token });
    output.note(`Curfew runs on ${server.url} (${((terminal.now() - startedAt) / 1_000).toFixed(1)} s)`);
    const over = Promise.race([interrupted, server.ended]).catch((error: Error) => {
      throw new CommandError(error.message);
    });
    stored = new ProjectDocuments(documents, client, output, signal);
    await Promise.race([over, storeAndTry(stored, documents, client, output, signal)]);
    if (signal.aborted) return EXIT.ok;
    const command = commandFor(server.url === addressOf(flags, environment) ? undefined : server.url, shellProgram);
    if (output.isJson) output.jsonLine({ url: server.url });
    else output.note(...nextSteps(server.url, command, persistTo, startOf(documents, stored.workflows), configuration.isProject));
    stored.watch();
    await over;
    return EXIT.ok;
  } finally {
    stopListening();
    stored?.stop();
    await server?.stop();
  }
}

/** In the order in which wrangler looks for them. */
export const CONFIGURATIONS = ["wrangler.jsonc", "wrangler.json", "wrangler.toml"];

/** The file of wrangler, and whether it belongs to a project of the user. */
export function configurationOf(flags: Flags): { file: string; isProject: boolean } {
  const named = flags.text("config");
  if (named !== undefined && !existsSync(named)) throw new UsageError(`--config: there is no file ${named}`);
  const file = named ?? CONFIGURATIONS.find((name) => existsSync(name));
  return file === undefined ? { file: join(packageRoot, "wrangler.toml"), isProject: false } : { file: resolve(file), isProject: true };
}

/**
 * That of the package, beside what is stored: wrangler writes into the directory of its configuration, and the one of the package may belong
 * to another user.
 */
function packagedConfiguration(persistTo: string): string {
  const file = join(packageRoot, "wrangler.toml");
  // In a checkout it has a build command, which needs its place.
  if (existsSync(join(packageRoot, "cli", "main.ts"))) return file;
  const text = readFileSync(file, "utf8").replace(/^(main|directory|migrations_dir) = "(.*)"$/gm, (_, name, path) => `${name} = ${JSON.stringify(join(packageRoot, path))}`);
  const copy = join(persistTo, "wrangler.toml");
  makeStore(persistTo);
  // A server that runs starts again when its configuration is written.
  if (!existsSync(copy) || readFileSync(copy, "utf8") !== text) writeFileSync(copy, text);
  return copy;
}

/** A directory, or the one example where there is no project. */
function documentsIn(flags: Flags, isProject: boolean): string {
  const named = flags.text("documents");
  if (named !== undefined && !(existsSync(named) && statSync(named).isDirectory())) throw new UsageError(`--documents: ${named} is no directory`);
  const directory = resolve(named ?? "workflows");
  return named !== undefined || isProject || existsSync(directory) ? directory : HELLO;
}

async function storeAndTry(stored: ProjectDocuments, documents: string, client: Client, output: Output, signal: AbortSignal): Promise<void> {
  await stored.store();
  if (documents === HELLO) await runHello(client, output, signal);
}

/** Shows that all of it works, where there is nothing else to run. */
async function runHello(client: Client, output: Output, signal: AbortSignal): Promise<void> {
  const run = await client.start("hello", { input: { name: "Ada" } }, { wait_ms: 20_000, signal });
  output.note(`ran    workflow hello: ${run.status}, ${JSON.stringify(run.output)}`);
  if (run.status !== "completed") throw new CommandError(`the first run ended as ${run.status}: ${run.error?.message ?? "without an error"}`);
}

/** Of a workflow that is stored, where there is one. */
function startOf(documents: string, [first]: readonly FileDocument["document"][]): string {
  if (documents === HELLO) return `start hello --input '{"name": "Ada"}' --watch`;
  return first === undefined ? "start <workflow> --input '{}' --watch" : startWords(first);
}

function nextSteps(url: string, command: Output["command"], persistTo: string, start: string, isProject: boolean): string[] {
  return [
    "",
    `  ${url}/  is the dashboard: runs with their deadlines, and what waits for a person`,
    "",
    `  ${command(start)}`,
    `  ${command("runs")}`,
    ...(isProject ? [] : ["  npx curfew init    # a project of your own, in this directory"]),
    "",
    `Its log is ${relative(".", logFile(persistTo))}. Ctrl-C ends it; what it stored is kept in ${relative(".", persistTo) || "."}/ for the next time.`,
  ];
}
