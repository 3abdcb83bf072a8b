// `curfew simulate`: runs a workflow in virtual time, with mocks in place of calls, and prints what happened. Nothing is stored or called.
// A file needs no server, unless it refers to documents that are stored there.
import type { ApiErrorBody, Run, Token } from "../../client/index.ts";
import { errorOf } from "../../client/errors.ts";
import { EngineError } from "../../engine/engine.mjs";
import { call, engine } from "../../testing/engine.ts";
import { statusPaint } from "../colours.ts";
import { UsageError } from "../arguments.ts";
import type { Command, Invocation } from "../command.ts";
import { hasAddress } from "../connection.ts";
import { isSelfContained } from "../documents.ts";
import { formatDuration } from "../durations.ts";
import { EXIT, exitCodeOf, type ExitCode } from "../exit_codes.ts";
import { jsonFrom } from "../json_input.ts";
import { quoted, type Output } from "../output.ts";
import { jsonLines } from "../run_text.ts";
import { escaped, inOneLine } from "../terminal_text.ts";
import { whatIf } from "../what_if.ts";
import { workflowOf } from "./analyze.ts";
import { optional } from "./controls.ts";

const JSON_FLAGS = ["input", "mocks", "people", "signals"];

export const simulate: Command = {
  name: "simulate",
  summary: "Runs a workflow in virtual time, with mocks in place of calls. Days take milliseconds; nothing is stored or called. A file needs no server.",
  positionals: [{ name: "file-or-workflow", isOptional: true, candidates: "file" }],
  flags: [
    { name: "input", value: "json", summary: "The input: JSON, `@file`, or `-` for standard input. `{}` by default." },
    { name: "mocks", value: "json", summary: "What calls answer: a list, as JSON or `@file`." },
    { name: "people", value: "json", summary: "Decisions at gates: a list, as JSON or `@file`." },
    { name: "signals", value: "json", summary: "Signals that arrive: a list, as JSON or `@file`." },
    { name: "seed", value: "n", summary: "Random delays follow from it; 0 by default." },
    { name: "as", value: "name", summary: "The name of the caller that starts the run, for gates with `four_eyes`." },
    { name: "version", value: "n", summary: "A version of the stored workflow; the newest by default." },
    { name: "from", value: "file", summary: "An export of a run instead of a workflow: what would have happened with the changes. Needs no server.", candidates: "file" },
    { name: "set", value: "pointer=value", summary: "With `--from`: a change of the document; several times for more.", isRepeated: true },
    { name: "changes", value: "json", summary: "With `--from`: changes as JSON Patch, as JSON or `@file`." },
    { name: "durations", value: "json", summary: "With `--from`: other durations of its calls and decisions: a list, as JSON or `@file`." },
  ],
  examples: ["curfew simulate --from run.json --set /nodes/2/timeout=5m", `curfew simulate order.json --input '{"item": 7}' --mocks @mocks.json`, `curfew simulate approval --people '[{"gate": "ask", "after": "2h", "choice": "approve"}]'`],
  run,
};

/** Flags that belong to one of the two. */
const OF_WORKFLOWS = ["mocks", "people", "signals", "seed", "as", "version"];
const OF_EXPORTS = ["set", "changes", "durations"];

async function run(invocation: Invocation): Promise<ExitCode> {
  const { words, flags, output, terminal, environment, client } = invocation;
  const from = flags.text("from");
  const misplaced = (from === undefined ? OF_EXPORTS : OF_WORKFLOWS).find((name) => flags.text(name) !== undefined);
  if (misplaced !== undefined) throw new UsageError(`--${misplaced} ${from === undefined ? "needs --from" : "does not go with --from"}`, simulate);
  if (from !== undefined && words.length > 0) throw new UsageError("name a workflow, or an export with --from, not both", simulate);
  if (from !== undefined) return whatIf(from, invocation, simulate);
  if (words.length === 0) throw new UsageError("name a file, a stored workflow, or an export of a run with --from", simulate);
  const file = await workflowOf(words[0]!, output);
  const given: Record<string, unknown> = {};
  for (const name of JSON_FLAGS) {
    const text = flags.text(name);
    if (text !== undefined) given[name] = await jsonFrom(text, `--${name}`, terminal, simulate);
  }
  const version = flags.whole("version", 1, Number.MAX_SAFE_INTEGER);
  if (file !== undefined && version !== undefined) throw new UsageError("--version goes with a stored workflow, not with a file", simulate);
  const body = {
    ...(file === undefined ? { workflow_id: words[0]!, ...optional("version", version) } : { workflow: file.document }),
    input: {},
    ...given,
    ...optional("seed", flags.whole("seed", 0, Number.MAX_SAFE_INTEGER)),
    ...optional("by", flags.text("as")),
  };
  const isLocal = file !== undefined && !hasAddress(flags, environment) && isSelfContained(file);
  const simulation: Simulation = isLocal ? callEngine({ op: "simulate", ...body }) : await client().request("POST", "/v1/simulate", { body: body as never });
  if (output.isJson) output.rawJson(simulation);
  else print(simulation, output);
  return exitCodeOf(simulation.run.status) ?? EXIT.ok;
}

/** As the API would refuse it. */
function callEngine(request: Record<string, unknown>): Simulation {
  try {
    return call(engine(), request);
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    const { status, code, message, pointer, details } = error;
    throw errorOf(status, { code, message, pointer, details } as ApiErrorBody);
  }
}

interface Simulation {
  run: Run;
  tokens: Token[];
  waits_for?: WaitsFor[] | undefined;
  virtual_ms: number;
  dollars: number;
}

interface WaitsFor {
  for: "decision" | "signal" | "callback" | "call" | "time";
  node_id?: string | null;
  add?: unknown;
}

const AWAITED: Record<WaitsFor["for"], string> = {
  decision: "a decision",
  signal: "a signal",
  callback: "a callback",
  call: "the answer of a call",
  time: "a later time",
};

function print({ run, tokens, waits_for = [], virtual_ms, dollars }: Simulation, output: Output): void {
  output.table(
    [{ title: "AFTER" }, { title: "NODE" }, { title: "STATUS" }, { title: "ATTEMPTS" }, { title: "TOOK" }],
    tokens.map(({ node_id, compensates, status, epoch, created_at, ended_at }) => [
      formatDuration(created_at - run.started_at),
      escaped(compensates === undefined ? node_id : `${node_id} (compensation)`),
      escaped(status.replaceAll("_", " ")),
      String(epoch),
      ended_at === null ? "" : formatDuration(ended_at - created_at),
    ]),
  );
  const status = statusPaint(run.status, output.colours)(escaped(run.status.replaceAll("_", " ")));
  output.lines(`${status} after ${formatDuration(virtual_ms)} of virtual time, ${dollars.toPrecision(2)} dollars`, ...outcomeLines(run, waits_for, output));
}

/** What it returned, why it failed, or what it waits for. */
function outcomeLines(run: Run, waitsFor: readonly WaitsFor[], { colours }: Output): string[] {
  if (run.error !== null) return [`${escaped(run.error.code)}: ${inOneLine(run.error.message)}`];
  if (run.status === "completed") return jsonLines(run.output, "--json", colours.dim);
  return waitsFor.map(({ for: what, node_id, add }) => {
    const where = node_id == null ? "the run" : escaped(node_id);
    const flag = what === "decision" ? "--people" : "--signals";
    // The word of a shell.
    const how = add === undefined ? "" : `: add ${flag} ${quoted(JSON.stringify([add]))}`;
    return `${where} waits for ${AWAITED[what]}, which never comes${escaped(how)}`;
  });
}
