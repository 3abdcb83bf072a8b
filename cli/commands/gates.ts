// `curfew inbox` and `curfew decide`: what waits for a person, and the decision.
import { CurfewError, type Client, type Gate } from "../../client/index.ts";
import { UsageError } from "../arguments.ts";
import type { Command, Invocation } from "../command.ts";
import { formatDuration, formatLeft, formatMoment, parseDuration } from "../durations.ts";
import { EXIT, type ExitCode } from "../exit_codes.ts";
import { CommandError } from "../failures.ts";
import { undecided } from "../gate_policies.ts";
import { jsonFrom, parsedJson } from "../json_input.ts";
import type { Output } from "../output.ts";
import { escaped, escapedLines, wrapped } from "../terminal_text.ts";
import { AS, optional, printChanged } from "./controls.ts";
import { all } from "./watch.ts";

const PROMPT_LINES_MAX = 12;

export const inbox: Command = {
  name: "inbox",
  summary: "Lists what waits for a person, nearest deadline first, with the command that decides it.",
  positionals: [],
  flags: [{ name: "run", value: "run", summary: "Only gates of this run.", candidates: "run" }],
  examples: ["curfew inbox", "curfew inbox --json | jq '.[].run_id'"],
  run: listGates,
};

async function listGates({ flags, output, terminal, client }: Invocation): Promise<ExitCode> {
  const api = client();
  const open = await openGates(api, flags.text("run"));
  const policies = await undecided(api, open);
  const gates = open.map((gate, index) => ({ ...gate, if_undecided: policies[index] ?? null }));
  gates.sort((left, right) => (left.timeout_at ?? Infinity) - (right.timeout_at ?? Infinity) || left.opened_at - right.opened_at);
  if (output.isJson) output.json(gates);
  else if (gates.length === 0) output.note("nothing waits for a person");
  else gates.forEach((gate, index) => output.lines(...(index > 0 ? [""] : []), ...gateLines(gate, gate.if_undecided, terminal.now(), output)));
  return EXIT.ok;
}

const openGates = (api: Client, runId?: string): Promise<Gate[]> =>
  all(api.pages((page) => api.gates({ ...(runId === undefined ? {} : { run: runId }), limit: 1_000, ...page })));

function gateLines(gate: Gate, policy: string | null, now: number, { colours, width, command }: Output): string[] {
  const columns = Math.max(20, Math.min(width, 100) - 2);
  const left = gate.timeout_at === null ? "no deadline" : `${formatLeft(gate.timeout_at - now)} left (${formatMoment(gate.timeout_at, now)})`;
  const what = gate.kind === "node" ? `node ${gate.node_id}` : gate.kind === "escalation" ? `failure at ${gate.node_id ?? "the run"}` : "the limit of the run has passed";
  // Not in the line of the command, which people paste into a shell.
  const choices = gate.choices.map((choice) => escaped(JSON.stringify(choice))).join(", ");
  return [
    `${colours.bold(escaped(gate.run_id))}  ${escaped(what)}  ${colours.yellow(left)}`,
    ...promptLines(gate.prompt, columns).map((line) => `  ${line}`),
    ...(policy === null ? [] : [colours.dim(`  without a decision: ${escaped(policy)}`)]),
    `  choices: ${choices}`,
    `  ${colours.cyan(command(`decide ${gate.run_id} ${gate.id}`))}`,
  ];
}

function promptLines(prompt: unknown, columns: number): string[] {
  if (prompt === null || prompt === undefined) return [];
  const lines = typeof prompt === "string" ? escapedLines(prompt) : JSON.stringify(prompt, null, 2).split("\n").map(escaped);
  const shown = lines.flatMap((line) => wrapped(line, columns));
  return shown.length <= PROMPT_LINES_MAX ? shown : [...shown.slice(0, PROMPT_LINES_MAX - 1), "..."];
}

export const decide: Command = {
  name: "decide",
  summary: "Decides a gate. Without a choice it asks, on a terminal.",
  positionals: [{ name: "run", candidates: "run" }, { name: "gate-or-node" }, { name: "choice", isOptional: true }],
  flags: [
    { name: "input", value: "json", summary: "What the gate asks for: JSON, `@file`, or `-` for standard input." },
    { name: "by", value: "duration", summary: "For the choice `extend` at the limit of a run: so much longer, `10m`." },
    { name: "comment", value: "text", summary: "A remark. It is kept with the decision." },
    AS,
  ],
  examples: ["curfew decide order-1 approve-payment approve", `curfew decide order-1 g3 reject --comment "too expensive"`, "curfew decide order-1 run1 extend --by 10m"],
  run: decideGate,
};

async function decideGate(invocation: Invocation): Promise<ExitCode> {
  const { words, flags, output, terminal, client } = invocation;
  const [runId = "", place = "", given] = words;
  const by = flags.duration("by");
  const inputWord = flags.text("input");
  if (by !== undefined && inputWord !== undefined) throw new UsageError("--by and --input exclude each other: --by 10m is the input {\"by\": \"10m\"}", decide);
  let input: unknown = by === undefined ? undefined : { by };
  if (inputWord !== undefined) input = await jsonFrom(inputWord, "--input", terminal, decide);

  const api = client();
  let choice = given;
  let gateId = place;
  if (choice === undefined) {
    if (!terminal.isInputTerminal || !terminal.isErrorTerminal) throw new UsageError(`<choice> is missing; only on a terminal it is asked for, and \`${output.command(`inbox --run ${runId}`)}\` lists the choices`, decide);
    const gate = await askedGate(api, runId, place, output);
    gateId = gate.id;
    const answer = await askPerson(gate, input, invocation);
    choice = answer.choice;
    input = answer.input;
  }
  const body = { choice, ...optional("input", input), ...optional("comment", flags.text("comment")), ...optional("by", flags.text("as")) };
  return printChanged(await decideByNameOrNode(api, runId, gateId, body, output), invocation);
}

/** The word is the id of a gate, or else of a node with one open gate. */
async function decideByNameOrNode(api: Client, runId: string, place: string, body: Parameters<Client["decide"]>[2], { command }: Output) {
  try {
    return await api.decide(runId, place, body);
  } catch (error) {
    if (!(error instanceof CurfewError) || error.status !== 404) throw error;
    const { open: ids, closed } = await gatesAtNode(api, runId, place);
    // The API says who decided it, and when.
    if (ids.length === 0 && closed !== undefined) return api.decide(runId, closed, body);
    if (ids.length === 0) {
      throw new CommandError(`${place} is neither an open gate of run ${runId} nor a node that waits for a person`, { next: `see what waits: ${command(`inbox --run ${runId}`)}` });
    }
    if (ids.length > 1) {
      throw new CommandError(`node ${place} has ${ids.length} open gates: ${ids.slice(0, 20).join(", ")}`, { next: `name one: ${command(`decide ${runId} ${ids[0]} ${body.choice}`)}` });
    }
    return api.decide(runId, ids[0]!, body);
  }
}

/** From the history, which is never behind: the list of gates is about a second late. */
async function gatesAtNode(api: Client, runId: string, nodeId: string): Promise<{ open: string[]; closed: string | undefined }> {
  const open = new Set<string>();
  let closed: string | undefined;
  const waiting = new Set<string>();
  for await (const token of api.pages((page) => api.tokens(runId, { limit: 1_000, ...page }))) if (token.status === "awaiting_human") waiting.add(token.id);
  for await (const event of api.pages((page) => api.events(runId, { limit: 1_000, ...page }))) {
    if (event.gate_id === undefined) continue;
    const isHere = event.node_id === nodeId && typeof event.token_id === "string" && waiting.has(event.token_id);
    if (event.kind === "gate_opened" && isHere) open.add(event.gate_id);
    if (event.kind !== "gate_decided" && event.kind !== "gate_timed_out") continue;
    open.delete(event.gate_id);
    if (event.node_id === nodeId) closed = event.gate_id;
  }
  return { open: [...open], closed };
}

/** The list is about a second behind the run, so a gate that has just opened is looked for again. */
async function askedGate(api: Client, runId: string, place: string, { command }: Output): Promise<Gate> {
  for (let attempt = 0; ; attempt++) {
    const gates = (await openGates(api, runId)).filter((gate) => gate.id === place || gate.node_id === place);
    const exact = gates.find((gate) => gate.id === place) ?? (gates.length === 1 ? gates[0] : undefined);
    if (exact !== undefined) return exact;
    if (gates.length > 1) throw new CommandError(`node ${place} has ${gates.length} open gates: ${gates.slice(0, 20).map(({ id }) => id).join(", ")}`, { next: "name one of them" });
    if (attempt >= 3) throw new CommandError(`${place} is neither an open gate of run ${runId} nor a node that waits for a person`, { next: `see what waits: ${command(`inbox --run ${runId}`)}` });
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

async function askPerson(gate: Gate, givenInput: unknown, { output, terminal }: Invocation): Promise<{ choice: string; input: unknown }> {
  const { bold } = output.errorColours;
  output.problem(...promptLines(gate.prompt, Math.max(20, Math.min(terminal.columns(), 100))), ...gate.choices.map((choice, index) => `  ${index + 1}) ${escaped(choice)}`));
  const choice = await asked(terminal, bold("choice (a number or a name): "), (line) => {
    const chosen = gate.choices.includes(line) ? line : gate.choices[Number(line) - 1];
    return chosen ?? new Error(`choose one of ${gate.choices.join(", ")}`);
  }, output);
  if (givenInput !== undefined) return { choice, input: givenInput };
  if (gate.kind === "workflow_timeout" && choice === "extend") {
    return { choice, input: { by: await asked(terminal, "by how much (10m, 1h30m): ", (line) => durationOf(line), output) } };
  }
  if (gate.kind !== "node" || gate.input_schema === null || gate.input_schema === undefined) return { choice, input: undefined };
  output.problem(`the input has to fit ${escaped(JSON.stringify(gate.input_schema))}`);
  const input = await asked(terminal, "input (JSON, or nothing): ", (line) => (line === "" ? { value: undefined } : parsed(line)), output);
  return { choice, input: input.value };
}

/** As the API takes it. */
function durationOf(line: string): string | Error {
  const millis = parseDuration(line);
  return typeof millis === "string" ? new Error(millis) : formatDuration(millis);
}

function parsed(line: string): { value: unknown } | Error {
  try {
    return { value: parsedJson(line) };
  } catch (error) {
    return new Error(`it ${(error as Error).message}`);
  }
}

/** Asks until the answer can be used. Ctrl-D ends it without a decision. */
async function asked<Value>(terminal: Invocation["terminal"], question: string, read: (line: string) => Value | Error, output: Output): Promise<Value> {
  for (;;) {
    const line = await terminal.ask(question);
    if (line === undefined) throw new CommandError("nothing was decided", { exitCode: EXIT.interrupted });
    const value = read(line.trim());
    if (!(value instanceof Error)) return value;
    output.problem(escaped(value.message));
  }
}
