// Checks a run that undid its work: every step that was done is undone once, in reverse order, and its end handlers ran. The record
// of the peer and what the run shows of itself must agree.
import type { RunView, TokenView } from "../workerd/api-types.ts";
import type { Client } from "./client.ts";
import type { Ending } from "./endings.ts";
import type { RecordedRequest, RecordingPeer } from "./recording-peer.ts";
import type { RunCheck, StartedRun } from "./run-checks.ts";

/** Fields of the views that only runs with an ending have. */
interface EndedRun extends RunView {
  compensation?: { status: string; done: { node_id: string; token_id: string }[]; failed: unknown[] };
  on_end?: { status: string }[];
}
interface EndedToken extends TokenView {
  compensation?: boolean;
  on_end?: boolean;
}
type Expect = (what: string, is: unknown, should: unknown) => void;

export async function checkEnding(
  run: StartedRun,
  ending: Ending,
  client: Client,
  peer: RecordingPeer,
  expectEqual: Expect,
): Promise<Omit<RunCheck, "violations">> {
  const of = (step: string): RecordedRequest[] => peer.requests.get(`${run.id}/${step}`) ?? [];
  const prefix = `${run.id}/undo-`;
  const undos = [...peer.requests].filter(([name]) => name.startsWith(prefix));
  /** Receipts of undone effects, in the order in which their undo was first requested. */
  const undone = undos.sort(([, [a]], [, [b]]) => a!.receipt - b!.receipt).map(([name]) => Number(name.slice(prefix.length)));

  const checked = [await checkOne(run.id, ending.status, "report")];
  const child = checked[0]!.tokens.find((token) => token.node_id === "child" && !token.compensation);
  // A parent that was cancelled before its child was started has none.
  if (ending.child && child && of("c0").length > 0) {
    const completed = ending.child === "completed";
    checked.push(await checkOne(`${run.id}~${child.id}`, ending.child, "report-child", completed));
  }
  expectEqual("undone at the peer and by its runs", [...undone].sort(), checked.flatMap(({ receipts }) => receipts).sort());
  if (ending.whole && !ending.child) expectEqual("every step was done and undone", undone.length, 5);
  if (ending.child === "failed") expectEqual("the child was undone before its parent", undone.length, 3);
  if (ending.child === "completed") expectEqual("the completed child was undone by its parent", undone.length, 2);

  const requests = [...peer.requests].filter(([name]) => name.startsWith(`${run.id}/`));
  for (const [name, list] of requests) {
    expectEqual(`${name}: one key in all its attempts`, new Set(list.map(({ key }) => key)).size, 1);
    if (run.keyed) expectEqual(`${name}: exactly one effect`, new Set(list.map(({ receipt }) => receipt)).size, 1);
  }
  const keys = requests.map(([, list]) => list[0]!.key);
  expectEqual("each step, undo and handler has its own key", new Set(keys).size, keys.length);
  return {
    requests: requests.reduce((sum, [, list]) => sum + list.length, 0),
    repeated: requests.reduce((sum, [, list]) => sum + list.length - 1, 0),
    undone: undone.length,
  };

  /** One run, the parent or its child. `receipts` are the effects that it undid, as its tokens show. */
  async function checkOne(id: string, status: string, handler: string, completed = false): Promise<{ tokens: EndedToken[]; receipts: number[] }> {
    const [view, tokens] = [(await client.run(id)) as EndedRun, (await client.tokens(id)) as EndedToken[]];
    expectEqual(`${id}: the end`, view.status, status);
    const reports = of(handler);
    const ofHandlers = completed ? ["completed", "completed"] : ["completed"];
    expectEqual(`${id}: the end handler ran at least once`, reports.length > 0, true);
    expectEqual(`${id}: it knows the end`, [...new Set(reports.map((report) => report.status))], [status]);
    expectEqual(`${id}: the handler of completed runs`, of(`${handler}-completed`).length > 0, completed);
    const isBefore = ([first]: RecordedRequest[], at: number) => first!.at <= at || (handler === "report-child" && ofParent(first!));
    const isLast = reports.every(({ at }) => undos.every(([, requests]) => isBefore(requests, at)));
    expectEqual(`${id}: it ran after all compensations`, isLast, true);
    expectEqual(`${id}: results of end handlers`, view.on_end?.map((result) => result.status), ofHandlers);
    expectEqual(`${id}: tokens of end handlers`, tokens.filter((token) => token.on_end).length, ofHandlers.length);

    const works = tokens.filter((token) => !token.compensation && !token.on_end && receiptOf(token) !== undefined);
    if (completed) {
      expectEqual(`${id}: a completed run undoes nothing`, view.compensation, undefined);
      return { tokens, receipts: [] };
    }
    for (const token of works) {
      const known = of(stepOf(token)).some(({ receipt }) => receipt === receiptOf(token));
      expectEqual(`${id}: the result of ${token.id} is an effect of the peer's`, known, true);
    }
    const inOrder = works.toSorted((a, b) => undone.indexOf(receiptOf(a)!) - undone.indexOf(receiptOf(b)!));
    const receipts = works.map((token) => receiptOf(token)!);
    expectEqual(`${id}: every done step is undone`, receipts.filter((receipt) => !undone.includes(receipt)), []);
    const ends = inOrder.map((token) => token.ended_at ?? 0);
    // Branches that waited at the join end together; the other tokens ended one after the other.
    expectEqual(`${id}: undone in reverse order of completion`, ends, ends.toSorted((a, b) => b - a));
    const groups = inOrder.map(({ node_id }) => ["s0", "work", "s1", "child", "c0", "c1"].indexOf(node_id));
    expectEqual(`${id}: undone against the graph`, groups, groups.toSorted((a, b) => b - a));
    const done = view.compensation?.done.map(({ node_id, token_id }) => [node_id, token_id]);
    expectEqual(`${id}: compensation.done`, done, inOrder.map(({ node_id, id }) => [node_id, id]));
    expectEqual(`${id}: the compensation`, [view.compensation?.status, view.compensation?.failed], ["completed", []]);
    const tokensOfUndo = tokens.filter((token) => token.compensation);
    expectEqual(`${id}: one token for each undo`, tokensOfUndo.map((token) => token.status), inOrder.map(() => "completed"));
    return { tokens, receipts };
  }

  /** The parent undoes its own work, and that of a completed child, after the child has ended. */
  function ofParent(request: RecordedRequest): boolean {
    const ofParent = ending.child === "completed" ? [...of("s0"), ...of("c1")] : of("s0");
    return ofParent.some(({ receipt }) => receipt === request.previous);
  }
}

/** The receipt of the effect that the token's work had; a child that completed stands for its last step. */
function receiptOf(token: EndedToken): number | undefined {
  return token.node_id === "child" ? token.output?.c1?.receipt : token.output?.body?.receipt;
}

function stepOf(token: EndedToken): string {
  if (token.node_id === "child") return "c1";
  return token.node_id === "work" ? String(token.branch?.index) : token.node_id;
}
