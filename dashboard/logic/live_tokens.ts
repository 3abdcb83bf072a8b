// Tokens as the newest events say they are, until the next reading brings them whole.
import type { RunEvent, Token } from "../../client/index.ts";
import { numberOf } from "./lanes.ts";

const ENDS: Partial<Record<RunEvent["kind"], Token["status"]>> = { token_completed: "completed", token_failed: "failed", token_cancelled: "cancelled" };

/** A map with the changes, or the same one if the event changes no token. */
export function withEvent(tokens: ReadonlyMap<string, Token>, event: RunEvent): ReadonlyMap<string, Token> {
  const id = event.token_id;
  if (!id) return tokens;
  const known = tokens.get(id);
  if (event.kind === "token_created") return known ? tokens : new Map(tokens).set(id, created(id, event));
  const status = ENDS[event.kind];
  if (!known || status === undefined || known.ended_at !== null) return tokens;
  return new Map(tokens).set(id, { ...known, status, ended_at: event.at });
}

const created = (id: string, { at, node_id }: RunEvent): Token => ({
  id,
  node_id: node_id ?? "",
  status: "pending",
  epoch: 0,
  retry_count: 0,
  lane: null,
  branch: null,
  parent_token_id: null,
  created_at: at,
  dispatched_at: null,
  started_at: null,
  ended_at: null,
  timeout_at: null,
  timeout_ms: null,
  timeout_reason: null,
  reason: null,
  error: null,
  output: null,
  steps: [],
});

/** In the order of creation. */
export const inOrder = (tokens: ReadonlyMap<string, Token>): Token[] => [...tokens.values()].sort((a, b) => numberOf(a.id) - numberOf(b.id));
