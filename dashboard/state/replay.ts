// Replays of a run, in the page: the engine plays its export.
import { signal } from "@preact/signals";
import { AuthError, NotFoundError } from "../../client/index.ts";
import type { Changes } from "../logic/what_if.ts";
import { askEngine } from "./engine.ts";
import type { RunStore } from "./run_store.ts";
import { client } from "./session.ts";

/** Whether the server exports runs. One of an earlier build has no such route: the view is not offered any more after it said so. */
export const canReplay = signal(true);

/** The run once more, with changes: the answer of `POST /v1/runs/{id}/what-if`. */
export type Replay = (changes: Changes) => Promise<unknown>;

export function replayOf(store: RunStore): Replay {
  const path = `/v1/runs/${encodeURIComponent(store.id)}`;
  let kept: { events: number; exported: unknown } | undefined;
  return async (changes) => {
    // A run that goes on has another history than before.
    const events = store.events.peek().length;
    try {
      if (kept?.events !== events) kept = { events, exported: await client.value.request<unknown>("GET", `${path}/export`) };
    } catch (error) {
      if (error instanceof NotFoundError) canReplay.value = false;
      // A credential that is bound to workflows gets no export of a run that calls others, but may ask the server.
      if (error instanceof AuthError && error.code === "forbidden") return client.value.request<unknown>("POST", `${path}/what-if`, { body: changes });
      throw error;
    }
    return askEngine({ op: "what_if", export: kept.exported, ...changes });
  };
}
