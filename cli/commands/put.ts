// `curfew put`: stores documents, children before parents.
import { CurfewError, type DocumentKind, type StoredDocument } from "../../client/index.ts";
import type { Command, Invocation } from "../command.ts";
import { checkUnique, childrenOf, documentsOf, inOrder, KINDS, type FileDocument } from "../documents.ts";
import { EXIT, type ExitCode } from "../exit_codes.ts";
import { detailLines, headline } from "../failures.ts";
import { escaped, escapedLines, inOneLine } from "../terminal_text.ts";

interface Result {
  file: string;
  kind: DocumentKind;
  id: string;
  version?: number;
  warnings?: StoredDocument["warnings"];
  error?: { code: string; message: string; pointer?: string | undefined; details?: unknown };
  /** Not sent, because one that it refers to was refused. */
  skipped?: string;
}

export const put: Command = {
  name: "put",
  summary: "Stores documents: workflows, tasks and actions, children before parents.",
  positionals: [{ name: "file", isRepeated: true, candidates: "file" }],
  flags: [{ name: "kind", value: "kind", summary: "`workflow`, `task` or `action`, for all files. By default it follows from the content.", candidates: ["workflow", "task", "action"] }],
  examples: ["curfew put order.json", "curfew put examples/*.json", "curfew put research.ts"],
  run,
};

async function run(invocation: Invocation): Promise<ExitCode> {
  const { words, flags, output } = invocation;
  const singular = flags.choice("kind", KINDS.map((kind) => kind.slice(0, -1)));
  const kind = singular === undefined ? undefined : (`${singular}s` as DocumentKind);
  // Everything is read before anything is sent: a wrong file leaves nothing half stored.
  const documents = (await Promise.all(words.map((file) => documentsOf(file, kind, output)))).flat();
  checkUnique(documents);

  const results = new Map<FileDocument, Result>();
  for (const document of inOrder(documents)) {
    const { file, kind, id } = document;
    const missing = childrenOf(document, documents).find((child) => results.get(child)?.version === undefined && results.has(child));
    const result: Result = { file, kind, id };
    if (missing !== undefined) result.skipped = `${missing.kind.slice(0, -1)} ${missing.id} was refused`;
    else Object.assign(result, await stored(document, invocation));
    results.set(document, result);
    if (!output.isJson) printResult(result, invocation);
  }
  if (output.isJson) output.json([...results.values()]);
  return [...results.values()].every(({ version }) => version !== undefined) ? EXIT.ok : EXIT.refused;
}

async function stored({ kind, document }: FileDocument, { client }: Invocation): Promise<Partial<Result>> {
  try {
    const { version, warnings } = await client().put(kind, document);
    return { version, warnings };
  } catch (error) {
    // Only a refusal is about this document; a lost connection ends the command.
    if (!(error instanceof CurfewError) || ![400, 409, 413, 422].includes(error.status)) throw error;
    return { error: { code: error.code, message: error.message, pointer: error.pointer, details: error.details } };
  }
}

function printResult({ file, kind, id, version, warnings = [], error, skipped }: Result, { output }: Invocation): void {
  const { green, red, yellow, dim } = output.colours;
  const name = `${kind.slice(0, -1)} ${escaped(id)}`;
  if (version !== undefined) {
    output.lines(`${green("stored")}  ${name} v${version}  ${dim(escaped(file))}`);
    output.lines(...warnings.map(({ pointer, message }) => `  ${yellow("warning")} ${inOneLine(pointer)}: ${inOneLine(message)}`));
  } else if (error !== undefined) {
    const [first = ""] = escapedLines(headline(error));
    output.problem(`${output.errorColours.red("refused")} ${name} (${escaped(file)}): ${first}`, ...detailLines(error));
  } else {
    output.problem(`${red("not sent")} ${name} (${escaped(file)}): ${escaped(skipped ?? "")}`);
  }
}
