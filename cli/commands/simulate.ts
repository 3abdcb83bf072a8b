// `curfew simulate`: runs a workflow in virtual time, with mocks in place of calls, and prints what happened. Nothing is stored or called.
import type { Run } from "../../client/index.ts";
import { statusPaint } from "../colours.ts";
import { UsageError } from "../arguments.ts";
import type { Command, Invocation } from "../command.ts";
import { formatDuration } from "../durations.ts";
import { EXIT, exitCodeOf, type ExitCode } from "../exit_codes.ts";
import { jsonFrom } from "../json_input.ts";
import type { Output } from "../output.ts";
import { jsonLines } from "../run_text.ts";
import { escaped, inOneLine } from "../terminal_text.ts";
import { whatIf } from "../what_if.ts";
import { workflowOf } from "./analyze.ts";
import { optional } from "./controls.ts";

const JSON_FLAGS = ["input", "mocks", "people", "signals"];

export const simulate: Command = {
  name: "simulate",
  summary: "Runs a workflow in virtual time, with mocks in place of calls. Days take milliseconds; nothing is stored or called.",
  positionals: [{ name: "file-or-workflow", isOptional: true, candidates: "file" }],
  flags: [
    { name: "input", value: "json", summary: "The input: JSON, `@file`, or `-` for standard input. `{}` by default." },
    { name: "mocks", value: "json", summary: "What calls answer: a list, as JSON or `@file`." },
    { name: "people", value: "json", summary: "Decisions at gates: a list, as JSON or `@file`." },
    { name: "signals", value: "json", summary: "Signals that arrive: a list, as JSON or `@file`." },
    { name: "seed", value: "n", summary: "Random delays follow from it; 0 by default." },
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
const OF_WORKFLOWS = ["mocks", "people", "signals", "seed", "version"];
const OF_EXPORTS = ["set", "changes", "durations"];

async function run(invocation: Invocation): Promise<ExitCode> {
  const { words, flags, output, terminal, client } = invocation;
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
  const simulation = await client().request("POST", "/v1/simulate", {
    body: {
      ...(file === undefined ? { workflow_id: words[0]!, ...optional("version", flags.whole("version", 1, Number.MAX_SAFE_INTEGER)) } : { workflow: file.document }),
      input: {},
      ...given,
      ...optional("seed", flags.whole("seed", 0, Number.MAX_SAFE_INTEGER)),
    } as never,
  });
  if (output.isJson) output.rawJson(simulation);
  else print(simulation, output);
  return exitCodeOf(simulation.run.status) ?? EXIT.ok;
}

interface Simulation {
  run: Run;
  tokens: { node_id: string; status: string; epoch: number; created_at: number; ended_at: number | null }[];
  virtual_ms: number;
  dollars: number;
}

function print({ run, tokens, virtual_ms, dollars }: Simulation, output: Output): void {
  output.table(
    [{ title: "AFTER" }, { title: "NODE" }, { title: "STATUS" }, { title: "ATTEMPTS" }, { title: "TOOK" }],
    tokens.map(({ node_id, status, epoch, created_at, ended_at }) => [
      formatDuration(created_at - run.started_at),
      escaped(node_id),
      escaped(status.replaceAll("_", " ")),
      String(epoch),
      ended_at === null ? "" : formatDuration(ended_at - created_at),
    ]),
  );
  const status = statusPaint(run.status, output.colours)(escaped(run.status.replaceAll("_", " ")));
  const outcome = run.error === null ? jsonLines(run.output, "--json", output.colours.dim) : [`${escaped(run.error.code)}: ${inOneLine(run.error.message)}`];
  output.lines(`${status} after ${formatDuration(virtual_ms)} of virtual time, ${dollars.toPrecision(2)} dollars`, ...outcome);
}
