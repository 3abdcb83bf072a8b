// Holds a run against what it promised: the end it reached, its tokens, and what the peer has seen of it.
import { isDeepStrictEqual } from "node:util";
import type { RunView, TokenView } from "../workerd/wire.ts";
import type { Client } from "./client.ts";
import type { Kind } from "./mix.ts";
import type { Asked, Effect, LedgerPeer } from "./peer.ts";

/** A run of the driver's. */
export interface Started {
  id: string;
  kind: Kind;
  n: number;
  /** The peer honours the key in this run. */
  keyed: boolean;
  /** Nobody asks how it is before its last call has reached the peer: only its own alarm can bring it back. */
  alone: boolean;
  /** What the driver was told at the end of it. */
  end?: RunView;
}

export interface Account {
  violations: string[];
  /** Requests at the peer, and how many of them would not have come without a kill. */
  requests: number;
  repeated: number;
}

/** Everything that is wrong with a run. */
export async function account(run: Started, client: Client, peer: LedgerPeer): Promise<Account> {
  const view = await client.run(run.id);
  const tokens = await client.tokens(run.id);
  const violations: string[] = [];
  const hold = (promise: string, is: unknown, should: unknown): void => {
    if (!isDeepStrictEqual(is, should)) violations.push(`${promise}: is ${JSON.stringify(is)}, should be ${JSON.stringify(should)}`);
  };

  hold("the end", [view.status, view.error], ["completed", null]);
  // What follows from it would hide it.
  if (violations.length > 0) return { violations, requests: 0, repeated: 0 };
  if (run.end) hold("what was told stays true", [view.status, view.output, view.ended_at], [run.end.status, run.end.output, run.end.ended_at]);
  const output: Record<string, Effect> = view.output ?? {};
  hold("the output", Object.fromEntries(Object.entries(output).map(([step, { value }]) => [step, value])), run.kind.values(run.n));
  // One token a node: if two attempts of one had counted, whatever follows it would be there twice.
  hold("the tokens", tokens.map(({ node_id }) => node_id).sort(), run.kind.nodes(run.n));
  hold("their ends", [...new Set(tokens.map(({ status }) => status))], ["completed"]);
  hold("the attempt of the run", view.attempt, 1);

  const attempts = new Map([...tokens, ...(await tokensOfChildren(run, tokens, client))].map((token) => [stepOf(token), token.epoch]));
  const sum = { requests: 0, repeated: 0 };
  for (const [step, before] of run.kind.calls(run.n)) {
    const asked: Asked[] = peer.asked.get(`${run.id}/${step}`) ?? [];
    const receipts = [...new Set(asked.map(({ receipt }) => receipt))];
    sum.requests += asked.length;
    sum.repeated += Math.max(0, asked.length - 1);
    hold(`${step}: done at least once`, receipts.length > 0, true);
    hold(`${step}: one key in all its attempts`, new Set(asked.map(({ key }) => key)).size, 1);
    if (run.keyed) hold(`${step}: exactly one effect`, receipts.length, 1);
    hold(`${step}: the output names an effect of the peer's`, receipts.includes(output[step]?.receipt ?? 0), true);
    // Every attempt was told the same: what the step before brought was decided once.
    const previous = before === null ? 0 : output[before]?.receipt;
    hold(`${step}: follows the one result that counts`, [...new Set(asked.map((one) => one.previous))], [previous]);
    hold(`${step}: no request without an attempt of its own`, asked.length <= (attempts.get(step) ?? 0), true);
  }
  return { violations, ...sum };
}

/** Branches are asked for by their index, all others by their node. */
const stepOf = (token: TokenView): string => (token.node_id === "work" ? String(token.branch?.index) : token.node_id);

async function tokensOfChildren(run: Started, tokens: TokenView[], client: Client): Promise<TokenView[]> {
  const callers = tokens.filter(({ node_id }) => node_id === "child");
  return (await Promise.all(callers.map(({ id }) => client.tokens(`${run.id}~${id}`)))).flat();
}

/** All there is to know about a run, for whoever has to find out why. */
export async function dossier(run: Started, client: Client, peer: LedgerPeer): Promise<string> {
  const asked = [...peer.asked].filter(([name]) => name.startsWith(`${run.id}/`));
  const parts = {
    kind: run.kind.name,
    alone: run.alone,
    keyed: run.keyed,
    view: await client.run(run.id),
    tokens: await client.tokens(run.id),
    events: await client.events(run.id),
    peer: Object.fromEntries(asked),
  };
  return Object.entries(parts)
    .map(([name, value]) => `  ${name}: ${JSON.stringify(value)}`)
    .join("\n");
}
