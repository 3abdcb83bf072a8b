// What `watch` knows about a run: the last answer of the API, and what the live stream has said since.
import type { ProgressEvent, Run, Token, WatchEvent } from "../../client/types.ts";

export interface OpenGate {
  id: string;
  /** Null if the whole run waits. */
  nodeId: string | null;
  tokenId: string | null;
}

export interface WatchState {
  run: Run;
  tokens: readonly Token[];
  /** By the id of the token. */
  progress: ReadonlyMap<string, ProgressEvent>;
  gates: ReadonlyMap<string, OpenGate>;
  /** How far the clock of Curfew is ahead of ours. Deadlines are moments of its clock. */
  clockAheadMs: number;
}

export const ENDED: ReadonlySet<string> = new Set(["completed", "failed", "timed_out", "cancelled"]);

/** A live run's duration ends at the moment of the answer, which shows the clock of Curfew. */
export function clockAheadOf(run: Run, receivedAt: number): number {
  return ENDED.has(run.status) ? 0 : run.started_at + run.duration_ms - receivedAt;
}

export const stateOf = (run: Run, tokens: readonly Token[], receivedAt: number): WatchState => ({
  run,
  tokens,
  progress: new Map(),
  gates: new Map(),
  clockAheadMs: clockAheadOf(run, receivedAt),
});

/** A new answer of the API. What the stream has said about gates and progress stays, where it still applies. */
export function withAnswer(state: WatchState, run: Run, tokens: readonly Token[], receivedAt: number): WatchState {
  const live = new Map(tokens.filter(({ status }) => !ENDED.has(status)).map((token) => [token.id, token]));
  const isOpen = ({ tokenId }: OpenGate) => (tokenId === null ? run.status === "paused" : live.has(tokenId));
  return {
    run,
    tokens,
    // An attempt of an earlier epoch has ended, and so has its progress.
    progress: new Map([...state.progress].filter(([id, { epoch }]) => live.get(id)?.epoch === epoch)),
    gates: ENDED.has(run.status) ? new Map() : new Map([...state.gates].filter(([, gate]) => isOpen(gate))),
    clockAheadMs: ENDED.has(run.status) ? state.clockAheadMs : clockAheadOf(run, receivedAt),
  };
}

/** What an event of the stream changes at once; statuses and deadlines follow with the next answer. */
export function withEvent(state: WatchState, event: WatchEvent): WatchState {
  if (event.kind === "progress") return { ...state, progress: new Map(state.progress).set(event.token_id, event) };
  const gateId = event.gate_id;
  if (gateId === undefined) return state;
  switch (event.kind) {
    case "gate_opened":
      return { ...state, gates: new Map(state.gates).set(gateId, { id: gateId, nodeId: event.node_id ?? null, tokenId: event.token_id ?? null }) };
    case "gate_decided":
    case "gate_timed_out": {
      const gates = new Map(state.gates);
      gates.delete(gateId);
      return { ...state, gates };
    }
    default:
      return state;
  }
}
