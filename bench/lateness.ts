// How late a deadline is handled, with a call that hangs: the timeout of a run, the timeout of a call with an executor and without
// one, and the alarm of the floor. Starts are spread and the kinds alternate, so that all see the same machine. The case without
// an executor needs a second workerd, so the floor is measured in both.
import { setTimeout as sleep } from "node:timers/promises";
import type { Curfew } from "../tests/workerd/harness.ts";
import type { Peer } from "../tests/workerd/peer.ts";
import type { RunView } from "../tests/workerd/api-types.ts";
import { percentile } from "./figures.ts";

export const ROUNDS = Number(process.env["CURFEW_BENCH_TIME_ROUNDS"] ?? 50);
const WARM_UPS = 3;
const TIMEOUT_MS = 1_000;
/** An attempt without a report is ended this long after its deadline: the default of CURFEW_GRACE_MS. */
const GRACE_MS = 500;
/** Between two starts. Not a divisor of the timeout, so that deadlines, with the grace or without, fall between two starts. */
const STAGGER_MS = TIMEOUT_MS / 20.25;

const KINDS = ["floor", "run", "call", "floor_executor_gone", "call_executor_gone"] as const;
type Kind = (typeof KINDS)[number];

export interface Parts {
  curfew: Curfew;
  /** A second coordinator, whose executor never answers. */
  withoutExecutor: Curfew;
  /** The path of the floor's Worker, which both workerd processes have. */
  floorPath: string;
  peer: Peer;
}

export interface Lateness {
  /** By the clock of the object, as stored. */
  insideMs: number;
  /** When a long-polling client has the response, by the clock of the same machine. */
  clientMs: number;
}

/** Computes a result after every run has ended: reading tokens would disturb the measurement. */
type Reading = () => Promise<Lateness>;

const task = { id: "ask", steps: [{ ref: "ask", action: { kind: "http_request", implementation: { url: "${input.url}" } } }] };

const runLimited = {
  id: "bench-run-limit",
  timeout_ms: TIMEOUT_MS,
  on_timeout: "cancel_all",
  nodes: [{ id: "ask", task_id: "ask" }],
  tasks: [task],
};

const callLimited = {
  id: "bench-call-limit",
  timeout: "1m",
  on_timeout: "cancel_all",
  nodes: [{ id: "ask", task_id: "ask", timeout_ms: TIMEOUT_MS, on_timeout: "fail" }],
  tasks: [task],
};

/** Starts a run, long-polls for its end, and returns when the response came. */
async function endOf(curfew: Curfew, workflowId: string, peer: Peer, status: string) {
  const id = await curfew.start(workflowId, { url: `${peer.url}/hang` });
  const { json: run, text } = await curfew.api("GET", `/v1/runs/${id}?wait_ms=30000`);
  const respondedAt = Date.now();
  if (run?.status !== status) throw new Error(`${workflowId} did not end as ${status}: ${text.slice(0, 1_000)}`);
  return { run: run as RunView, respondedAt };
}

async function runLateness({ curfew, peer }: Parts): Promise<Reading> {
  const { run, respondedAt } = await endOf(curfew, runLimited.id, peer, "timed_out");
  const dueAt = run.started_at + TIMEOUT_MS;
  return async () => ({ insideMs: run.ended_at! - dueAt, clientMs: respondedAt - dueAt });
}

async function callLateness(curfew: Curfew, peer: Peer, graceMs: number): Promise<Reading> {
  const { run, respondedAt } = await endOf(curfew, callLimited.id, peer, "failed");
  return async () => {
    const [token] = await curfew.tokens(run.id);
    if (token?.status !== "timed_out" || token.epoch !== 1) throw new Error(`no execution timeout: ${JSON.stringify(token)}`);
    const dueAt = token.started_at! + TIMEOUT_MS + graceMs;
    return { insideMs: token.ended_at! - dueAt, clientMs: respondedAt - dueAt };
  };
}

async function floorLateness(workerd: Curfew, { floorPath, peer }: Parts): Promise<Reading> {
  const ask = async (query: Record<string, string>) => {
    const url = `${workerd.url}${floorPath}?${new URLSearchParams(query)}`;
    const response = await fetch(url, { signal: AbortSignal.timeout(30_000) });
    if (!response.ok) throw new Error(`floor: ${response.status} ${await response.text()}`);
    return (await response.json()) as any;
  };
  const { id } = await ask({ target: `${peer.url}/hang`, timeout_ms: String(TIMEOUT_MS) });
  const { startedAt, endedAt } = await ask({ id });
  const respondedAt = Date.now();
  const dueAt = startedAt + TIMEOUT_MS;
  return async () => ({ insideMs: endedAt - dueAt, clientMs: respondedAt - dueAt });
}

const measure = (kind: Kind, parts: Parts): Promise<Reading> => {
  switch (kind) {
    case "floor":
      return floorLateness(parts.curfew, parts);
    case "run":
      return runLateness(parts);
    case "call":
      return callLateness(parts.curfew, parts.peer, 0);
    case "floor_executor_gone":
      return floorLateness(parts.withoutExecutor, parts);
    case "call_executor_gone":
      return callLateness(parts.withoutExecutor, parts.peer, GRACE_MS);
  }
};

async function measureAll(parts: Parts, rounds: number): Promise<Record<Kind, Lateness[]>> {
  const startedAt = performance.now();
  const underWay = Array.from({ length: rounds }, (_, round) =>
    // In random order: no kind always follows the same other.
    shuffled(KINDS).map(async (kind, position) => {
      const startAt = startedAt + (round * KINDS.length + position) * STAGGER_MS;
      await sleep(startAt - performance.now());
      return { kind, reading: await measure(kind, parts) };
    }),
  );
  const late: Record<Kind, Lateness[]> = { floor: [], run: [], call: [], floor_executor_gone: [], call_executor_gone: [] };
  for (const { kind, reading } of await Promise.all(underWay.flat())) late[kind].push(await reading());
  return late;
}

export async function latenessFigures(parts: Parts) {
  await parts.curfew.store(runLimited);
  for (const curfew of [parts.curfew, parts.withoutExecutor]) await curfew.store(callLimited);
  await measureAll(parts, WARM_UPS);
  const late = await measureAll(parts, ROUNDS);
  return {
    rounds: ROUNDS,
    floor: distribution(late.floor),
    run: distribution(late.run),
    call: distribution(late.call),
    floor_executor_gone: distribution(late.floor_executor_gone),
    call_executor_gone: distribution(late.call_executor_gone),
  };
}

/** The p99 of 50 samples is the slowest: a single pause of the machine decides it. The p95 is more robust. */
export function distribution(late: Lateness[]) {
  const inside = late.map(({ insideMs }) => insideMs);
  const client = late.map(({ clientMs }) => clientMs);
  return {
    late_p50_ms: percentile(inside, 0.5),
    late_p95_ms: percentile(inside, 0.95),
    late_p99_ms: percentile(inside, 0.99),
    late_max_ms: Math.max(...inside),
    client_late_p50_ms: percentile(client, 0.5),
    client_late_p95_ms: percentile(client, 0.95),
    client_late_p99_ms: percentile(client, 0.99),
    client_late_max_ms: Math.max(...client),
  };
}

function shuffled<T>(values: readonly T[]): T[] {
  const rest = [...values];
  return values.map(() => rest.splice(Math.floor(Math.random() * rest.length), 1)[0]!);
}
