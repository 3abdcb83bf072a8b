// Checks a run against its expectations: its end, its tokens, and the requests that the peer got.
import { isDeepStrictEqual } from "node:util";
import type { RunView, TokenView } from "../workerd/api-types.ts";
import type { Client } from "./client.ts";
import { checkEnding } from "./ending-checks.ts";
import type { Kind } from "./workflows.ts";
import type { Effect, RecordedRequest, RecordingPeer } from "./recording-peer.ts";

/** A run that the driver started. */
export interface StartedRun {
  id: string;
  kind: Kind;
  n: number;
  /** The peer honours the idempotency key in this run. */
  keyed: boolean;
  /** The run is not polled before its last call has reached the peer: only its own alarm can wake it. */
  unpolled: boolean;
  /** The final view. */
  end?: RunView;
}

export interface RunCheck {
  violations: string[];
  /** Requests at the peer, and how many of them were repetitions. */
  requests: number;
  repeated: number;
  /** Steps whose work was undone. */
  undone: number;
}

/** All violations of a run. */
async function checkRun(run: StartedRun, client: Client, peer: RecordingPeer): Promise<RunCheck> {
  const view = await client.run(run.id);
  const tokens = await client.tokens(run.id);
  const violations: string[] = [];
  const expectEqual = (what: string, is: unknown, should: unknown): void => {
    if (!isDeepStrictEqual(is, should)) violations.push(`${what}: is ${JSON.stringify(is)}, should be ${JSON.stringify(should)}`);
  };

  if (run.kind.ending) {
    expectEqual("the end", view.status, run.kind.ending.status);
    if (violations.length > 0) return { violations, requests: 0, repeated: 0, undone: 0 };
    return { violations, ...(await checkEnding(run, run.kind.ending, client, peer, expectEqual)) };
  }
  expectEqual("the end", [view.status, view.error], ["completed", null]);
  // Later violations are consequences of this one.
  if (violations.length > 0) return { violations, requests: 0, repeated: 0, undone: 0 };
  if (run.end) expectEqual("the final view does not change", [view.status, view.output, view.ended_at], [run.end.status, run.end.output, run.end.ended_at]);
  const output: Record<string, Effect> = view.output ?? {};
  expectEqual("the output", Object.fromEntries(Object.entries(output).map(([step, { value }]) => [step, value])), run.kind.values(run.n));
  // One token per node: if two attempts of a token had counted, its successors would exist twice.
  expectEqual("the tokens", tokens.map(({ node_id }) => node_id).sort(), run.kind.nodes(run.n));
  expectEqual("their ends", [...new Set(tokens.map(({ status }) => status))], ["completed"]);
  expectEqual("the attempt of the run", view.attempt, 1);

  const attempts = new Map([...tokens, ...(await tokensOfChildren(run, tokens, client))].map((token) => [stepOf(token), token.epoch]));
  const sum = { requests: 0, repeated: 0, undone: 0 };
  for (const [step, before] of run.kind.calls(run.n)) {
    const requests: RecordedRequest[] = peer.requests.get(`${run.id}/${step}`) ?? [];
    const receipts = [...new Set(requests.map(({ receipt }) => receipt))];
    sum.requests += requests.length;
    sum.repeated += Math.max(0, requests.length - 1);
    expectEqual(`${step}: done at least once`, receipts.length > 0, true);
    expectEqual(`${step}: one key in all its attempts`, new Set(requests.map(({ key }) => key)).size, 1);
    if (run.keyed) expectEqual(`${step}: exactly one effect`, receipts.length, 1);
    expectEqual(`${step}: the output names an effect of the peer's`, receipts.includes(output[step]?.receipt ?? 0), true);
    // All attempts got the same input: the result of the previous step was decided once.
    const previous = before === null ? 0 : output[before]?.receipt;
    expectEqual(`${step}: follows the one result that counts`, [...new Set(requests.map(({ previous }) => previous))], [previous]);
    expectEqual(`${step}: no request without an attempt of its own`, requests.length <= (attempts.get(step) ?? 0), true);
  }
  return { violations, ...sum };
}

/** Checks all runs, several at a time. */
export async function checkRuns(runs: StartedRun[], client: Client, peer: RecordingPeer): Promise<Map<StartedRun, RunCheck>> {
  const unchecked = [...runs];
  const checks = new Map<StartedRun, RunCheck>();
  const work = async (): Promise<void> => {
    for (let run = unchecked.pop(); run !== undefined; run = unchecked.pop()) checks.set(run, await checkRun(run, client, peer));
  };
  await Promise.all(Array.from({ length: 8 }, work));
  return checks;
}

/** Branches have steps by their index, all other tokens by their node. */
const stepOf = (token: TokenView): string => (token.node_id === "work" ? String(token.branch?.index) : token.node_id);

async function tokensOfChildren(run: StartedRun, tokens: TokenView[], client: Client): Promise<TokenView[]> {
  const callers = tokens.filter(({ node_id }) => node_id === "child");
  return (await Promise.all(callers.map(({ id }) => client.tokens(`${run.id}~${id}`)))).flat();
}

/** Everything known about a run, for debugging. */
export async function debugReport(run: StartedRun, client: Client, peer: RecordingPeer): Promise<string> {
  const requests = [...peer.requests].filter(([name]) => name.startsWith(`${run.id}/`));
  const parts = {
    kind: run.kind.name,
    unpolled: run.unpolled,
    keyed: run.keyed,
    view: await client.run(run.id),
    tokens: await client.tokens(run.id),
    events: await client.events(run.id),
    peer: Object.fromEntries(requests),
  };
  return Object.entries(parts)
    .map(([name, value]) => `  ${name}: ${JSON.stringify(value)}`)
    .join("\n");
}
