// How late a deadline is: of a run, of a call whose executor is there, of a call whose executor is gone, and of the floor's
// alarm, each on a call that hangs. The starts are spread, many are in flight, and all take turns, so that they meet the same
// machine. An executor that is gone needs a workerd of its own, so the floor is measured in both: each in the company it keeps.
import { setTimeout as sleep } from "node:timers/promises";
import type { Curfew } from "../tests/workerd/harness.ts";
import type { Peer } from "../tests/workerd/peer.ts";
import type { RunView } from "../tests/workerd/wire.ts";
import { percentile } from "./figures.ts";

export const ROUNDS = Number(process.env["CURFEW_BENCH_TIME_ROUNDS"] ?? 50);
const WARM_UPS = 3;
const TIMEOUT_MS = 1_000;
/** How much later than its deadline an attempt is given up whose executor does not speak up: CURFEW_GRACE_MS as it comes. */
const GRACE_MS = 500;
/** Between two starts. Of such a length that the deadlines, with the grace or without, fall between two starts and not onto one. */
const STAGGER_MS = TIMEOUT_MS / 20.25;

const KINDS = ["floor", "run", "call", "floor_executor_gone", "call_executor_gone"] as const;
type Kind = (typeof KINDS)[number];

export interface Parts {
  curfew: Curfew;
  /** A second coordinator whose executor never answers. */
  bereft: Curfew;
  /** The path of the floor's Worker, which is in the workerd of both. */
  floorPath: string;
  peer: Peer;
}

export interface Lateness {
  /** By the clock of the object, as it is on record. */
  insideMs: number;
  /** When a client that long-polls has the answer; the same machine's clock. */
  clientMs: number;
}

/** What the answer told, to be asked when nothing is in flight any more: reading tokens is work, too. */
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

/** Starts a run, waits for its end as a client does, and says when it heard of it. */
async function endOf(curfew: Curfew, workflowId: string, peer: Peer, status: string) {
  const id = await curfew.start(workflowId, { url: `${peer.url}/hang` });
  const { json: run, text } = await curfew.api("GET", `/v1/runs/${id}?wait_ms=30000`);
  const heardAt = Date.now();
  if (run?.status !== status) throw new Error(`${workflowId} did not end as ${status}: ${text.slice(0, 1_000)}`);
  return { run: run as RunView, heardAt };
}

async function runLateness({ curfew, peer }: Parts): Promise<Reading> {
  const { run, heardAt } = await endOf(curfew, runLimited.id, peer, "timed_out");
  const dueAt = run.started_at + TIMEOUT_MS;
  return async () => ({ insideMs: run.ended_at! - dueAt, clientMs: heardAt - dueAt });
}

async function callLateness(curfew: Curfew, peer: Peer, graceMs: number): Promise<Reading> {
  const { run, heardAt } = await endOf(curfew, callLimited.id, peer, "failed");
  return async () => {
    const [token] = await curfew.tokens(run.id);
    if (token?.status !== "timed_out" || token.epoch !== 1) throw new Error(`no execution timeout: ${JSON.stringify(token)}`);
    const dueAt = token.started_at! + TIMEOUT_MS + graceMs;
    return { insideMs: token.ended_at! - dueAt, clientMs: heardAt - dueAt };
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
  const heardAt = Date.now();
  const dueAt = startedAt + TIMEOUT_MS;
  return async () => ({ insideMs: endedAt - dueAt, clientMs: heardAt - dueAt });
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
      return floorLateness(parts.bereft, parts);
    case "call_executor_gone":
      return callLateness(parts.bereft, parts.peer, GRACE_MS);
  }
};

async function takeTurns(parts: Parts, rounds: number): Promise<Record<Kind, Lateness[]>> {
  const begunAt = performance.now();
  const underWay = Array.from({ length: rounds }, (_, round) =>
    // Chance decides who goes first: nobody always comes right after the same other.
    shuffled(KINDS).map(async (kind, turn) => {
      const startAt = begunAt + (round * KINDS.length + turn) * STAGGER_MS;
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
  for (const curfew of [parts.curfew, parts.bereft]) await curfew.store(callLimited);
  await takeTurns(parts, WARM_UPS);
  const late = await takeTurns(parts, ROUNDS);
  return {
    rounds: ROUNDS,
    floor: distribution(late.floor),
    run: distribution(late.run),
    call: distribution(late.call),
    floor_executor_gone: distribution(late.floor_executor_gone),
    call_executor_gone: distribution(late.call_executor_gone),
  };
}

/** Of 50 samples the p99 is the slowest: one pause of the machine decides it, which the p95 outlives. */
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
