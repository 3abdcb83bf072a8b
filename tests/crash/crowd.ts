// Keeps a number of runs in flight, each driven to its end by somebody who knows only what they would know.
import { until } from "../workerd/poll.ts";
import { PATIENCE_MS, type Client } from "./client.ts";
import { between, chance } from "./dice.ts";
import type { Started } from "./ledger.ts";
import type { Kind } from "./mix.ts";
import type { LedgerPeer } from "./peer.ts";

export interface CrowdOptions {
  client: Client;
  peer: LedgerPeer;
  kinds: Kind[];
  seed: number;
  /** How many at once. */
  inFlight: number;
  /** How many of them, of 1, nobody asks about. */
  alone: number;
  /** Whether another run is begun where one has ended. */
  goesOn(): boolean;
}

export interface Crowd {
  runs: Started[];
  /** Those that have not ended yet. */
  live: Set<Started>;
  /** Runs that did not get to their end, and why. */
  stuck: Map<Started, string>;
  done: Promise<void>;
}

export function gather({ client, peer, kinds, seed, inFlight, alone, goesOn }: CrowdOptions): Crowd {
  const runs: Started[] = [];
  const stuck = new Map<Started, string>();
  const live = new Set<Started>();

  const begin = (): Started => {
    const number = runs.length;
    // In turn, so that even a short test has all of them.
    const kind = kinds[number % kinds.length]!;
    const id = `r-${seed}-${number}`;
    const run: Started = {
      id,
      kind,
      n: between(seed, `${id} n`, 0, 999),
      keyed: kind.keyedOnly === true || chance(seed, `${id} keyed`) < 0.5,
      alone: chance(seed, `${id} alone`) < alone,
    };
    runs.push(run);
    return run;
  };

  const drive = async (run: Started): Promise<void> => {
    const { id, kind, n } = run;
    const calls = kind.calls(n);
    const reached = (step: string) => until(`${step} of ${id} at the peer`, () => peer.asked.has(`${id}/${step}`), PATIENCE_MS);
    const base = `${peer.url}/${run.keyed ? "keyed" : "plain"}/${id}`;
    await client.start(kind.documents.at(-1)!.id, id, { base, n });
    if (kind.attend) {
      await reached(calls[0]![0]);
      await kind.attend(client, id, n);
    }
    if (run.alone) await reached(calls.at(-1)![0]);
    run.end = await client.ended(id);
  };

  const slot = async (): Promise<void> => {
    do {
      const run = begin();
      live.add(run);
      await drive(run).catch((error: Error) => stuck.set(run, error.message));
      live.delete(run);
    } while (goesOn());
  };

  return { runs, live, stuck, done: Promise.all(Array.from({ length: inFlight }, slot)).then(() => {}) };
}
