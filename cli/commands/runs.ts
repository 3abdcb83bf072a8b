// `curfew runs` and `curfew run`: what there is, and one run with its tokens and deadlines.
import type { Client, Run, RunSummary, Token } from "../../client/index.ts";
import { statusPaint } from "../colours.ts";
import type { Command, Invocation } from "../command.ts";
import { formatDuration, formatLeft, formatMoment, formatShort } from "../durations.ts";
import { EXIT, type ExitCode } from "../exit_codes.ts";
import type { Output } from "../output.ts";
import { outcomeLines, waysBack } from "../run_text.ts";
import type { Cell } from "../table.ts";
import { escaped, inOneLine } from "../terminal_text.ts";
import { whyLines } from "../why_text.ts";
import { leftOf, leftText, undoes } from "../watch/rows.ts";
import { clockAheadOf, ENDED } from "../watch/state.ts";
import { all } from "./watch.ts";

export const RUN_STATUSES = ["running", "waiting", "paused", "compensating", "completed", "failed", "timed_out", "cancelled"] as const;
const LIMIT_DEFAULT = 50;

export const runs: Command = {
  name: "runs",
  summary: "Lists runs, newest first. The list is about a second behind the runs.",
  positionals: [],
  flags: [
    { name: "status", value: "status", summary: "Only runs with this status. Several with commas or by repetition.", isRepeated: true, candidates: RUN_STATUSES },
    { name: "workflow", value: "workflow", summary: "Only runs of this workflow.", candidates: "workflow" },
    { name: "tag", value: "tag", summary: "Only runs of workflows with this tag." },
    { name: "since", value: "moment", summary: "Only runs that started then or later: `2h` ago, `2026-11-16`, an ISO time or Unix milliseconds." },
    { name: "until", value: "moment", summary: "Only runs that started then or earlier." },
    { name: "parent", value: "run", summary: "Only runs that this run called.", candidates: "run" },
    { name: "id-prefix", value: "text", summary: "Only runs whose ids begin so, in the order of ids." },
    { name: "sort", value: "order", summary: "`started`, or `remaining`: nearest deadline first.", candidates: ["started", "remaining"] },
    { name: "limit", value: "n", summary: `The most runs to list, ${LIMIT_DEFAULT} by default.` },
    { name: "all", summary: "Every run that matches, however many there are." },
  ],
  examples: ["curfew runs --status running,waiting", "curfew runs --workflow order --since 2h --json"],
  run: listRuns,
};

async function listRuns({ flags, output, terminal, client }: Invocation): Promise<ExitCode> {
  const now = terminal.now();
  const limit = flags.has("all") ? Infinity : (flags.whole("limit", 1, 100_000) ?? LIMIT_DEFAULT);
  const filter = {
    status: flags.list("status") as (typeof RUN_STATUSES)[number][] | undefined,
    workflow: flags.text("workflow"),
    tag: flags.text("tag"),
    since: flags.moment("since", now),
    until: flags.moment("until", now),
    parent: flags.text("parent"),
    id_prefix: flags.text("id-prefix"),
    sort: flags.choice("sort", ["started", "remaining"]) as "started" | "remaining" | undefined,
  };
  const items: RunSummary[] = [];
  let cursor: string | null = "";
  // A page may be short, so pages are read until there are enough.
  do {
    const page: { items: RunSummary[]; next_cursor: string | null } = await client().runs({ ...filter, limit: Math.min(1_000, limit - items.length), ...(cursor === "" ? {} : { cursor }) });
    items.push(...page.items);
    cursor = page.next_cursor;
  } while (cursor !== null && items.length < limit);

  if (output.isJson) output.json({ items, next_cursor: cursor });
  else if (items.length === 0) output.note("no run matches");
  else {
    output.table(
      [{ title: "RUN", isFlexible: true }, { title: "WORKFLOW", isFlexible: true }, { title: "STATUS" }, { title: "STARTED" }, { title: "TIME" }, { title: "ERROR", isFlexible: true }],
      items.map((run) => summaryRow(run, now, output)),
    );
    if (cursor !== null) output.note(`there are more: --limit ${items.length * 2}, or --all`);
  }
  return EXIT.ok;
}

function summaryRow(run: RunSummary, now: number, { colours }: Output): (string | Cell)[] {
  const left = run.timeout_at === null ? "" : `${formatLeft(run.timeout_at - now)} left`;
  return [
    escaped(run.id),
    escaped(`${run.workflow_id} v${run.version}`),
    { text: escaped(run.status.replaceAll("_", " ")), paint: statusPaint(run.status, colours) },
    formatMoment(run.started_at, now),
    run.duration_ms === null ? (run.status === "paused" ? "stopped" : left) : formatShort(run.duration_ms),
    { text: run.error === null ? "" : inOneLine(run.error.message), paint: colours.dim },
  ];
}

export const run: Command = {
  name: "run",
  summary: "Shows one run: status, tokens, deadlines, output or error, and why it timed out.",
  positionals: [{ name: "run", candidates: "run" }],
  flags: [],
  examples: ["curfew run order-1", "curfew run order-1 --json | jq .output"],
  run: showRun,
};

async function showRun({ words, output, terminal, client }: Invocation): Promise<ExitCode> {
  const api = client();
  const [one, tokens] = await Promise.all([api.run(words[0]!), all(api.pages((page) => api.tokens(words[0]!, { limit: 1_000, ...page })))]);
  if (output.isJson) {
    output.json({ ...one, tokens });
    return EXIT.ok;
  }
  const now = terminal.now();
  const { bold } = output.colours;
  output.lines(...headLines(one, now, output));
  if (one.deadlines.length > 0) {
    const serverNow = now + clockAheadOf(one, now);
    output.lines("", bold("Deadlines"));
    output.table(
      [{ title: "LIMIT" }, { title: "LEFT" }, { title: "NODE", isFlexible: true }, { title: "TOKEN" }, { title: "GATE" }],
      one.deadlines.map((deadline) => [deadline.kind, leftText(leftOf(deadline), serverNow), escaped(deadline.node_id ?? ""), escaped(deadline.token_id ?? ""), escaped(deadline.gate_id ?? "")]),
    );
  }
  if (tokens.length > 0) {
    output.lines("", bold("Tokens"));
    output.table(
      [{ title: "TOKEN" }, { title: "NODE", isFlexible: true }, { title: "STATUS" }, { title: "ATTEMPT" }, { title: "TOOK" }, { title: "REASON", isFlexible: true }],
      tokens.map((token) => tokenRow(token, output)),
    );
  }
  const outcome = outcomeLines(one, await waysBack(one, api), output, { isWhole: true });
  if (outcome.length > 0) output.lines("", ...outcome);
  const why = await whyOf(one, api);
  if (why.length > 0) output.lines("", bold("Why it timed out"), ...why);
  return EXIT.ok;
}

/** Of the last timeout. A run that completed in spite of one needs no explanation. */
async function whyOf(one: Run, api: Client): Promise<string[]> {
  const hasTimeouts = one.timeout_enforcement_latency_seconds !== undefined;
  if (!hasTimeouts || one.status === "completed" || one.status === "cancelled") return [];
  const records = await all(api.pages((page) => api.timeouts(one.id, { limit: 1_000, ...page })));
  const last = records.at(-1);
  return last === undefined ? [] : whyLines(await api.timeout(one.id, last.id));
}

function headLines(one: Run, now: number, { colours, command }: Output): string[] {
  const status = statusPaint(one.status, colours)(escaped(one.status.replaceAll("_", " ")));
  const limit = one.timeout_ms === null ? "none" : formatDuration(one.timeout_ms);
  const facts: [string, string | undefined][] = [
    ["run", colours.bold(escaped(one.id))],
    ["workflow", escaped(`${one.workflow_id} v${one.version}`)],
    ["status", status],
    ["started", `${formatMoment(one.started_at, now)}${one.started_by === undefined ? "" : ` by ${escaped(one.started_by)}`}`],
    ["ended", one.ended_at === null ? undefined : formatMoment(one.ended_at, now)],
    ["duration", formatShort(one.duration_ms)],
    ["limit", limit],
    ["attempt", one.attempt > 1 ? String(one.attempt) : undefined],
    ["parent", one.parent === undefined || one.parent === null ? undefined : escaped(one.parent.run_id)],
    ["paused by", one.paused_by === undefined || one.paused_by.length === 0 ? undefined : one.paused_by.join(", ")],
    ["gate", one.gate === undefined ? undefined : `${escaped(one.gate.id)}: ${command(`decide ${one.id} ${one.gate.id}`)}`],
    ["ends as", one.ends_as],
    ["undone", compensationText(one)],
  ];
  return facts.filter((fact): fact is [string, string] => fact[1] !== undefined).map(([name, value]) => `${colours.dim(name.padEnd(10))}${value}`);
}

/** What the compensation of a run did. */
function compensationText({ compensation }: Run): string | undefined {
  if (compensation === undefined) return undefined;
  const nodes = (tokens: readonly { node_id: string }[]) => tokens.map(({ node_id }) => escaped(node_id)).join(", ");
  const { done, failed } = compensation;
  return [...(done.length === 0 ? [] : [nodes(done)]), ...(failed.length === 0 ? [] : [`not undone: ${nodes(failed)}`])].join("; ") || "nothing";
}

function tokenRow(token: Token, { colours }: Output): (string | Cell)[] {
  const took = token.ended_at === null || !ENDED.has(token.status) ? "" : formatShort(token.ended_at - (token.started_at ?? token.created_at));
  const branch = token.branch === null ? "" : `[${token.branch.index}]`;
  return [
    token.id,
    escaped(`${token.node_id}${branch}${undoes(token)}`),
    { text: escaped(token.status.replaceAll("_", " ")), paint: statusPaint(token.status, colours) },
    String(token.epoch),
    took,
    { text: inOneLine(token.error?.message ?? token.reason ?? ""), paint: colours.dim },
  ];
}
