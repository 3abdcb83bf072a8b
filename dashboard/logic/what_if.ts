// The answer of `POST /v1/runs/{id}/what-if`: the run as it was, and as it would have been under other limits. Fields may be absent, and
// what is not understood is left out.
import type { Run, RunEvent, Token } from "../../client/index.ts";
import { written, type Patch } from "./document_limits.ts";
import { duration, words } from "./words.ts";

type Json = Record<string, unknown>;

const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value);
const objectsIn = (value: unknown): Json[] => (Array.isArray(value) ? value.filter(isObject) : []);
const textOf = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined);
const numberOf = (value: unknown): number | undefined => (typeof value === "number" && Number.isFinite(value) ? value : undefined);

/** One of the two runs. */
export interface Side {
  status: string;
  durationMs: number | undefined;
  error: { code: string; message: string } | undefined;
  tokens: Json[];
  timeouts: { place: string; tokenId: string | undefined; timeoutMs: number | undefined; atMs: number | undefined; action: string }[];
}

export interface Difference {
  what: string;
  place: string;
  message: string;
  recorded: unknown;
  replayed: unknown;
}

/** What took time: the calls of a node, or people at a gate. */
export interface RecordedDuration {
  /** `node/think`, `gate/approve`. */
  key: string;
  kind: "node" | "gate";
  name: string;
  answers: number;
  shortestMs: number;
  longestMs: number;
}

/** What is to be other than recorded, as the body of the API has it. */
export interface Changes {
  changes: Patch[];
  durations: { node?: string; gate?: string; after: string }[];
}

export interface WhatIf {
  recorded: Side;
  durations: RecordedDuration[];
  replayed: Side;
  differences: Difference[];
  /** Calls that the recording has no answer for. */
  unknown: { place: string; atMs: number | undefined; message: string }[];
}

const placeOf = (item: Json): string => [textOf(item["node_id"]), textOf(item["token_id"])].filter((part) => part !== undefined).join(" ") || "the run";

export function whatIfOf(answer: unknown): WhatIf {
  const body = isObject(answer) ? answer : {};
  return {
    recorded: sideOf(body["recorded"]),
    durations: objectsIn(body["recorded_durations"]).flatMap(recordedDuration),
    replayed: sideOf(body["replayed"]),
    differences: objectsIn(body["differences"]).map((item) => ({
      what: textOf(item["what"]) ?? "difference",
      place: placeOf(item),
      message: textOf(item["message"]) ?? `${shown(item["recorded"])} became ${shown(item["replayed"])}`,
      recorded: item["recorded"],
      replayed: item["replayed"],
    })),
    unknown: objectsIn(body["unknown"]).map((item) => ({ place: placeOf(item), atMs: numberOf(item["at_ms"]), message: textOf(item["message"]) ?? "the recording has no answer for this call" })),
  };
}

function recordedDuration(item: Json): RecordedDuration[] {
  const [node, gate] = [textOf(item["node"]), textOf(item["gate"])];
  const [kind, name] = gate === undefined ? (["node", node] as const) : (["gate", gate] as const);
  if (name === undefined) return [];
  // A slider has no place for nothing.
  const ms = (value: unknown): number => Math.max(numberOf(value) ?? 1, 1);
  return [{ key: `${kind}/${name}`, kind, name, answers: numberOf(item["answers"]) ?? 1, shortestMs: ms(item["shortest_ms"]), longestMs: ms(item["longest_ms"]) }];
}

/** The body's `durations`: those of `wanted` that are other than recorded. */
export const durationsOf = (recorded: readonly RecordedDuration[], wanted: ReadonlyMap<string, number>): Changes["durations"] =>
  recorded.flatMap(({ key, kind, name, longestMs }) => {
    const ms = wanted.get(key);
    return ms === undefined || ms === longestMs ? [] : [{ [kind]: name, after: written(ms) }];
  });

const shown = (value: unknown): string => (value === undefined ? "nothing" : JSON.stringify(value));

function sideOf(value: unknown): Side {
  const side = isObject(value) ? value : {};
  const error = isObject(side["error"]) ? { code: textOf(side["error"]["code"]) ?? "error", message: textOf(side["error"]["message"]) ?? "" } : undefined;
  return {
    status: textOf(side["status"]) ?? "unknown",
    durationMs: numberOf(side["duration_ms"]),
    error,
    tokens: objectsIn(side["tokens"]).filter((token) => textOf(token["token_id"]) !== undefined),
    timeouts: objectsIn(side["timeouts"]).map((item) => ({
      place: placeOf(item),
      tokenId: textOf(item["token_id"]),
      timeoutMs: numberOf(item["timeout_ms"]),
      atMs: numberOf(item["at_ms"]),
      action: words(textOf(item["final_action"]) ?? textOf(item["scope"]) ?? "passed"),
    })),
  };
}

/** A side as the timeline draws runs: with moments instead of times after the start, and what the run itself knows of each node. */
export function drawn(side: Side, run: Run, known: readonly Token[]): { run: Run; tokens: Token[]; events: RunEvent[]; stillAt: number } {
  const start = run.started_at;
  const at = (value: unknown): number | null => {
    const ms = numberOf(value);
    return ms === undefined ? null : start + ms;
  };
  const byNode = new Map(known.map((token) => [token.node_id, token]));
  const byId = new Map(known.map((token) => [token.id, token]));
  const tokens = side.tokens.map((token): Token => {
    const id = String(token["token_id"]);
    const node_id = textOf(token["node_id"]) ?? byId.get(id)?.node_id ?? "";
    const timeout_ms = numberOf(token["timeout_ms"]) ?? null;
    const started_at = at(token["started_at_ms"]);
    const status = (textOf(token["status"]) ?? "unknown") as Token["status"];
    const like = byId.get(id) ?? byNode.get(node_id);
    return {
      ...like,
      id,
      node_id,
      status,
      branch: branchOf(token["branch"]) ?? (byId.get(id)?.node_id === node_id ? (byId.get(id)?.branch ?? null) : null),
      lane: like?.lane ?? null,
      epoch: (numberOf(token["retry_count"]) ?? 0) + 1,
      created_at: at(token["created_at_ms"]) ?? start,
      dispatched_at: started_at,
      started_at,
      ended_at: at(token["ended_at_ms"]),
      timeout_ms,
      timeout_at: timeout_ms !== null && started_at !== null ? started_at + timeout_ms : null,
      timeout_reason: null,
      error: null,
      parent_token_id: byId.get(id)?.parent_token_id ?? null,
    } as Token;
  });
  const length = side.durationMs ?? tokens.reduce((most, { ended_at, created_at }) => Math.max(most, (ended_at ?? created_at) - start), 0);
  return { run: { ...run, status: side.status as Run["status"], duration_ms: length, ended_at: start + length, error: null, deadlines: [] }, tokens, events: attemptsOf(side, tokens, start), stillAt: start + length };
}

/** The attempts before the last one, as the events of a run have them: a token says nothing of those, the timeouts that they ended with do. */
function attemptsOf(side: Side, tokens: readonly Token[], start: number): RunEvent[] {
  const events: Partial<RunEvent>[] = [];
  for (const { id, epoch, started_at } of tokens) {
    if (epoch <= 1) continue;
    const retried = side.timeouts.filter(({ tokenId, atMs, action }) => tokenId === id && atMs !== undefined && action === "retry").slice(1 - epoch);
    if (retried.length === 0) continue;
    retried.forEach(({ atMs, timeoutMs }, index) => {
      const at = start + atMs!;
      const attempt = { token_id: id, epoch: epoch - retried.length + index };
      events.push({ ...attempt, kind: "token_dispatched", at: at - (timeoutMs ?? 0) }, { ...attempt, kind: "token_timed_out", policy_applied: "retry", delay_ms: 1, at });
    });
    if (started_at !== null) events.push({ token_id: id, epoch, kind: "token_dispatched", at: started_at });
  }
  return events.sort((a, b) => a.at! - b.at!).map((event, index) => ({ ...event, seq: index + 1 }) as RunEvent);
}

/** Only a branch that says its number and those of its instance is drawn in a group. */
function branchOf(value: unknown): Token["branch"] | undefined {
  if (!isObject(value) || numberOf(value["index"]) === undefined || numberOf(value["total"]) === undefined) return undefined;
  return { item: null, output: null, group: "", instance: 0, ...value } as Token["branch"];
}

/** What changed in a sentence: `It was failed after 2.0 s; it would have been completed after 4.0 s.` */
export function summary({ recorded, replayed, differences, unknown }: WhatIf): string {
  const after = ({ durationMs }: Side): string => (durationMs === undefined ? "" : ` after ${duration(durationMs)}`);
  const side = (side: Side): string => `${words(side.status)}${after(side)}`;
  // A replay goes as far as the recording has answers.
  if (unknown.length > 0) return `Recorded: ${side(recorded)}. The replay stops${after(replayed)}.`;
  const isSame = differences.length === 0 && side(recorded) === side(replayed);
  return isSame ? `It would have been the same: ${side(replayed)}.` : `Recorded: ${side(recorded)}. Replayed: ${side(replayed)}.`;
}

/** Lengths in the address: `/nodes/1/timeout=120000,/timeout=300000`, or `node/think=120000`. */
export const lengthsText = (lengths: ReadonlyMap<string, number>): string => [...lengths].map(([key, ms]) => `${key}=${ms}`).join(",");

export function lengthsOf(text: string | null): Map<string, number> {
  const pairs = (text ?? "").split(",").map((part): [string, number] => [part.slice(0, part.lastIndexOf("=")), Number(part.slice(part.lastIndexOf("=") + 1))]);
  return new Map(pairs.filter(([key, ms]) => key !== "" && Number.isFinite(ms) && ms >= 1));
}
