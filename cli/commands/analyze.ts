// `curfew analyze`: what will go wrong in runs of a workflow, and what a run can take at most, before it is stored or started.
import { statSync } from "node:fs";
import type { Command, Invocation } from "../command.ts";
import { documentsOf, type FileDocument } from "../documents.ts";
import { formatDuration } from "../durations.ts";
import { EXIT, type ExitCode } from "../exit_codes.ts";
import { CommandError } from "../failures.ts";
import type { Output } from "../output.ts";
import { escaped, inOneLine } from "../terminal_text.ts";
import { optional } from "./controls.ts";

export const analyze: Command = {
  name: "analyze",
  summary: "Says what will go wrong in runs of a workflow, and what a run can take at most. Nothing is stored.",
  positionals: [{ name: "file-or-workflow", candidates: "file" }],
  flags: [{ name: "version", value: "n", summary: "A version of the stored workflow; the newest by default." }],
  examples: ["curfew analyze order.json", "curfew analyze order --version 3"],
  run,
};

async function run({ words, flags, output, client }: Invocation): Promise<ExitCode> {
  const file = await workflowOf(words[0]!, output);
  const version = flags.whole("version", 1, Number.MAX_SAFE_INTEGER);
  const analysis = await client().request("POST", "/v1/workflows/{workflow_id}/analyze", {
    path: { workflow_id: file?.id ?? words[0]! },
    query: optional("version", version),
    body: file === undefined ? {} : { document: file.document },
  });
  if (output.isJson) output.rawJson(analysis);
  else print(analysis, output);
  return analysis.errors.length === 0 ? EXIT.ok : EXIT.refused;
}

/** The workflow in a file. Undefined for a word that names no file: it is the id of a stored one. A directory may have the same name. */
export async function workflowOf(word: string, output: Output): Promise<FileDocument | undefined> {
  if (!isFile(word) && !/[./\\]/.test(word)) return undefined;
  const [document, ...others] = await documentsOf(word, undefined, output);
  if (others.length > 0) throw new CommandError(`${word} holds ${others.length + 1} documents; name a file with one workflow`, { exitCode: EXIT.usage });
  if (document!.kind !== "workflows") throw new CommandError(`${word} holds no workflow, but one of ${document!.kind}`, { exitCode: EXIT.usage });
  return document;
}

const isFile = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() === false;

interface Problem {
  code: string;
  pointer: string;
  message: string;
}

interface Facts {
  ends: { surely: boolean; reason: string };
  duration_max_ms: number | null;
  tokens_alive_max: number;
  rows_written: { happy: number | null; worst: number | null };
  dollars: { happy: number | null; worst: number | null };
  longest_wait: { ms: number | null; pointer?: string | undefined };
}

function print({ errors, warnings, facts }: { errors: Problem[]; warnings: Problem[]; facts: Facts | null }, output: Output): void {
  const { red, yellow, green } = output.colours;
  const line = (what: string, { code, pointer, message }: Problem) => `${what} ${escaped(pointer)}: ${inOneLine(message)} [${escaped(code)}]`;
  output.lines(...errors.map((problem) => line(red("error"), problem)), ...warnings.map((problem) => line(yellow("warning"), problem)));
  if (errors.length + warnings.length === 0) output.lines(green("no problem was found"));
  if (facts === null) return;
  const duration = (ms: number | null) => (ms === null ? "no bound" : formatDuration(ms));
  const both = ({ happy, worst }: { happy: number | null; worst: number | null }, text: (value: number) => string) =>
    `${happy === null ? "unknown" : text(happy)} if all goes well, ${worst === null ? "no bound" : text(worst)} at most`;
  output.lines(
    `ends      ${facts.ends.surely ? "surely" : "not surely"}: ${inOneLine(facts.ends.reason)}`,
    `duration  ${duration(facts.duration_max_ms)} at most; longest wait ${duration(facts.longest_wait.ms)}${facts.longest_wait.pointer ? ` (${escaped(facts.longest_wait.pointer)})` : ""}`,
    `tokens    ${facts.tokens_alive_max} alive at once at most`,
    `rows      ${both(facts.rows_written, String)}`,
    `dollars   ${both(facts.dollars, (value) => value.toPrecision(2))}`,
  );
}
