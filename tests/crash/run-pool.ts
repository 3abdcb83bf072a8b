// Keeps a number of runs in flight and drives each to its end.
import { until } from "../workerd/poll.ts";
import { WAIT_MS, type Client } from "./client.ts";
import { between, chance } from "./seeded-random.ts";
import type { StartedRun } from "./run-checks.ts";
import type { Kind } from "./workflows.ts";
import type { RecordingPeer } from "./recording-peer.ts";

export interface RunPoolOptions {
  client: Client;
  peer: RecordingPeer;
  kinds: Kind[];
  seed: number;
  /** The number of concurrent runs. */
  inFlight: number;
  /** The share of runs, from 0 to 1, that are not polled. */
  unpolled: number;
  /** Whether an ended run is replaced by another. */
  continues(): boolean;
}

export interface RunPool {
  runs: StartedRun[];
  /** Runs that have not ended. */
  live: Set<StartedRun>;
  /** Runs that did not end, with the reason. */
  unfinished: Map<StartedRun, string>;
  done: Promise<void>;
}

export function startRunPool({ client, peer, kinds, seed, inFlight, unpolled, continues }: RunPoolOptions): RunPool {
  const runs: StartedRun[] = [];
  const unfinished = new Map<StartedRun, string>();
  const live = new Set<StartedRun>();

  const begin = (): StartedRun => {
    const number = runs.length;
    // In turn, so that even a short test has all kinds.
    const kind = kinds[number % kinds.length]!;
    const id = `r-${seed}-${number}`;
    const run: StartedRun = {
      id,
      kind,
      n: between(seed, `${id} n`, 0, 999),
      keyed: kind.keyedOnly === true || chance(seed, `${id} keyed`) < 0.5,
      unpolled: chance(seed, `${id} alone`) < unpolled,
    };
    runs.push(run);
    return run;
  };

  const drive = async (run: StartedRun): Promise<void> => {
    const { id, kind, n } = run;
    const calls = kind.calls(n);
    const reached = (step: string) => until(`${step} of ${id} at the peer`, () => peer.requests.has(`${id}/${step}`), WAIT_MS);
    const base = `${peer.url}/${run.keyed ? "keyed" : "plain"}/${id}`;
    await client.start(kind.documents.at(-1)!.id, id, { base, n });
    if (kind.interact) {
      await reached(calls[0]![0]);
      await kind.interact(client, id, n, reached);
    }
    if (run.unpolled) await reached(calls.at(-1)![0]);
    run.end = await client.ended(id);
  };

  const slot = async (): Promise<void> => {
    do {
      const run = begin();
      live.add(run);
      await drive(run).catch((error: Error) => unfinished.set(run, error.message));
      live.delete(run);
    } while (continues());
  };

  return { runs, live, unfinished, done: Promise.all(Array.from({ length: inFlight }, slot)).then(() => {}) };
}
