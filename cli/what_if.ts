// `curfew simulate --from run.json --set /nodes/2/timeout=5m`: an exported run once more, under other limits or policies. It needs no
// server: the engine comes with the command line.
import { EngineError } from "../engine/engine.mjs";
import { call, engine } from "../testing/engine.ts";
import { UsageError } from "./arguments.ts";
import { statusPaint } from "./colours.ts";
import type { Command, Invocation } from "./command.ts";
import { formatDuration } from "./durations.ts";
import { EXIT, type ExitCode } from "./exit_codes.ts";
import { CommandError } from "./failures.ts";
import { jsonFrom } from "./json_input.ts";
import type { Output } from "./output.ts";
import { escaped, inOneLine } from "./terminal_text.ts";
import { readFileSync } from "node:fs";

interface Change {
  op: "add" | "remove";
  path: string;
  value?: unknown;
}

interface Outcome {
  status: string;
  duration_ms: number;
}

interface WhatIf {
  recorded: Outcome;
  replayed: Outcome;
  differences: { message: string; token_id?: string | null }[];
  unknown: { node_id: string; at_ms: number; message: string }[];
}

export async function whatIf(file: string, { flags, output, terminal }: Invocation, command: Command): Promise<ExitCode> {
  const exported = exportIn(file, output.program);
  const document = exported["document"] ?? (exported["snapshot"] as Record<string, unknown> | undefined)?.["workflow"];
  const changes: unknown[] = (flags.list("set") ?? []).flatMap((word) => changesOf(word, document, command));
  const patch = flags.text("changes");
  if (patch !== undefined) {
    const more = await jsonFrom(patch, "--changes", terminal, command);
    if (!Array.isArray(more)) throw new UsageError("--changes: expected a list of JSON Patch operations", command);
    changes.push(...more);
  }
  const given: Record<string, unknown> = {};
  for (const name of ["input", "durations"]) {
    const text = flags.text(name);
    if (text !== undefined) given[name] = await jsonFrom(text, `--${name}`, terminal, command);
  }
  const answer = replayed({ op: "what_if", export: exported, changes, ...given });
  if (output.isJson) output.rawJson(answer);
  else print(answer, compensationsIn(exported), output);
  return EXIT.ok;
}

function exportIn(file: string, program: string): Record<string, unknown> {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    throw new CommandError(`${file} cannot be read: ${(error as Error).message}`, { exitCode: EXIT.usage });
  }
  try {
    const parsed: unknown = JSON.parse(text);
    // Which format it has is checked by the engine.
    if (typeof parsed === "object" && parsed !== null && "format" in parsed) return parsed as Record<string, unknown>;
  } catch {
    // Said below.
  }
  throw new CommandError(`${file} is no export of a run`, { exitCode: EXIT.usage, next: `\`${program} export <run> --output run.json\` writes one` });
}

/** `/nodes/2/timeout=5m`. A field may stand in the document under its other name, which has to go. */
function changesOf(word: string, document: unknown, command: Command): Change[] {
  const at = word.indexOf("=");
  const path = word.slice(0, Math.max(at, 0));
  if (!path.startsWith("/")) throw new UsageError(`--set: "${word}" is not like /nodes/2/timeout=5m`, command);
  const twin = path.endsWith("_ms") ? path.slice(0, -"_ms".length) : `${path}_ms`;
  const change: Change = { op: "add", path, value: valueOf(word.slice(at + 1)) };
  return valueAt(document, twin) === undefined ? [change] : [{ op: "remove", path: twin }, change];
}

/** JSON, or else the text as it is. */
function valueOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function valueAt(document: unknown, pointer: string): unknown {
  const names = pointer.split("/").slice(1).map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~"));
  return names.reduce<unknown>((value, name) => (typeof value === "object" && value !== null && Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined), document);
}

function replayed(request: Record<string, unknown>): WhatIf {
  try {
    return call(engine(), request);
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    const where = error.pointer && !error.message.includes(error.pointer) ? ` (at ${error.pointer})` : "";
    throw new CommandError(`${error.message}${where}  [${error.code}]`);
  }
}

/** The tokens that undo the work of others, at the nodes of those. */
function compensationsIn(exported: Record<string, unknown>): ReadonlySet<string> {
  const tokens = Array.isArray(exported["tokens"]) ? (exported["tokens"] as { id: string; compensates?: string }[]) : [];
  return new Set(tokens.filter(({ compensates }) => compensates !== undefined).map(({ id }) => id));
}

function print({ recorded, replayed, differences, unknown }: WhatIf, compensations: ReadonlySet<string>, output: Output): void {
  const shown = ({ status, duration_ms }: Outcome) => `${statusPaint(status, output.colours)(escaped(status.replaceAll("_", " ")))} after ${formatDuration(duration_ms)}`;
  // A replay that stops at an unknown answer has no end.
  const end = unknown.length === 0 ? shown(replayed) : `as far as ${formatDuration(replayed.duration_ms)} after the start`;
  output.lines(`recorded ${shown(recorded)}`, `replayed ${end}`);
  if (differences.length === 0 && unknown.length === 0) output.lines("nothing differs");
  for (const { message, token_id } of differences) output.lines(`- ${inOneLine(message)}${compensations.has(token_id ?? "") ? " (its compensation)" : ""}`);
  for (const { node_id, at_ms, message } of unknown) output.lines(`? ${escaped(node_id)}, ${formatDuration(at_ms)} after the start: ${inOneLine(message)}`);
}
