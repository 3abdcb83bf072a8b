// Going on where a run had branches, joins, several tokens under way: only what did not finish is done again.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { ask, fan, freshId, mark, marked, oneRequest, request, workflow, type WorkflowDocument } from "./documents.ts";
import { startCurfew, type Curfew } from "./harness.ts";
import { startPeer, type Peer } from "./peer.ts";
import { until } from "./poll.ts";
import type { RunView } from "./wire.ts";

const READ = "read-token-0123456789";
const OPERATE = "operate-token-0123456789";
const ADMIN = "admin-token-0123456789";

let curfew: Curfew;
let guarded: Curfew;
let peer: Peer;
before(async () => {
  const tokens = JSON.stringify({ [READ]: "read", [OPERATE]: "operate", [ADMIN]: "admin" });
  [curfew, guarded, peer] = await Promise.all([startCurfew(), startCurfew({ vars: { CURFEW_TOKENS: tokens } }), startPeer()]);
});
after(() => Promise.all([curfew.dispose(), guarded.dispose(), peer.close()]));

const retry = (runId: string, body: object) => curfew.api("POST", `/v1/runs/${runId}/retry`, body);
async function retried(runId: string, mode: string, more: object = {}): Promise<RunView> {
  const answer = await retry(runId, { mode, ...more });
  assert.equal(answer.status, 200, answer.text);
  return answer.json;
}
const asked = (path: string) => peer.seen(path).length;
const reached = (path: string, times = 1) => until(`${path} to be asked`, () => asked(path) >= times);

function assertCompleted(run: RunView): void {
  assert.equal(run.status, "completed", JSON.stringify(run.error));
}

async function started(document: WorkflowDocument, input: unknown): Promise<string> {
  await curfew.store(document);
  return curfew.start(document.id, input);
}

/** Each branch asks the two urls of its item, one after the other, and gives what the second peer saw of `n`. */
const inTwoSteps = (join: object = {}) =>
  fan({
    join: { ...join },
    spawn: { foreach: { collection: "input.items", item_var: "item" } },
    work: { task_id: "both", input_mapping: "${item}", output_mapping: { "_branch.output": "${result.n}" } },
    workflow: {
      tasks: [
        {
          id: "both",
          steps: [
            request({ url: "${input.first}" }, { ref: "first" }),
            request({ url: "${input.second}" }, { ref: "second", output_mapping: { "output.n": "${input.n}" } }),
          ],
        },
      ],
    },
  });

interface Broken {
  n: number;
  held: string;
  flaky: string;
}

/** Items 0..n; the one numbered `broken` waits to be released and fails once in its second step. */
function items(total: number, broken: number, key: string, flaky: string) {
  return Array.from({ length: total }, (_, n) => ({
    n,
    first: n === broken ? `${peer.url}/held/${key}` : `${peer.url}/ok/${key}/${n}`,
    second: n === broken ? peer.url + flaky : `${peer.url}/ok/${key}/${n}/second`,
  }));
}

describe("branches", { concurrency: 6 }, () => {
  test("one branch failed: it alone goes on from its finished step, and the join merges all", async () => {
    const [key, flaky] = [freshId("k"), `/flaky/${freshId("f")}/1/500`];
    const id = await started(inTwoSteps(), { items: items(3, 1, key, flaky) });
    await until("the others to stand at the join", async () => (await curfew.run(id)).counts["waiting_for_siblings"] === 2);
    peer.release(key);
    assert.equal((await curfew.ended(id)).status, "failed");
    const ways = (await curfew.api("GET", `/v1/runs/${id}/resume`)).json;
    assert.deepEqual([ways.failed_tokens.map(({ token_id }: { token_id: string }) => token_id), ways.recommended], [["t3"], "retry_step"]);
    await retried(id, "retry_step");
    const run = await curfew.ended(id);
    assertCompleted(run);
    assert.deepEqual(run.output, [0, 1, 2]);
    assert.deepEqual([asked(`/held/${key}`), asked(flaky), asked(`/ok/${key}/0`), asked(`/ok/${key}/2`)], [1, 2, 2, 2]);
  });

  test("what was under way beside it is aborted, and begins again with it", async () => {
    const [slow, held, flaky] = [freshId("s"), freshId("k"), `/flaky/${freshId("f")}/1/500`];
    const urls = [`${peer.url}/held/${slow}?n=a`, `${peer.url}/held/${held}?n=b`].map((first, index) => ({
      n: index,
      first,
      second: index === 1 ? peer.url + flaky : `${peer.url}/ok`,
    }));
    const id = await started(inTwoSteps(), { items: urls });
    await Promise.all([reached(`/held/${slow}`), reached(`/held/${held}`)]);
    peer.release(held);
    assert.equal((await curfew.ended(id)).status, "failed");
    await until("the other connection to close", () => peer.seen(`/held/${slow}`)[0]?.aborted === true);
    peer.release(slow);
    const ways = (await curfew.api("GET", `/v1/runs/${id}/resume`)).json;
    assert.deepEqual([ways.failed_tokens.length, ways.tokens_to_go_on], [1, 2]);
    await retried(id, "retry_step");
    const run = await curfew.ended(id);
    assertCompleted(run);
    assert.deepEqual(run.output, [0, 1]);
    assert.deepEqual([asked(`/held/${slow}`), asked(`/held/${held}`), asked(flaky)], [2, 1, 2]);
  });

  test("discarding the work of one token keeps that of the others", async () => {
    const [left, right] = [0, 1].map((n) => ({ n, held: freshId("k"), flaky: `/flaky/${freshId("f")}/1/503` })) as [Broken, Broken];
    const broken = [left, right].map(({ n, held, flaky }) => ({ n, first: `${peer.url}/held/${held}`, second: peer.url + flaky }));
    const id = await started(inTwoSteps({ on_branch_failure: "proceed_with_available" }), { items: broken });
    await Promise.all([left, right].map(({ held }) => reached(`/held/${held}`)));
    for (const { held } of [left, right]) peer.release(held);
    assert.equal((await curfew.ended(id)).status, "failed", "nothing is available");
    const refused = await retry(id, { mode: "discard_and_retry", token_id: "t1" });
    assert.deepEqual([refused.status, refused.json.error.code], [409, "not_resumable"], refused.text);
    assert.match(refused.json.error.message, /t2, t3/);
    await retried(id, "discard_and_retry", { token_id: "t3" });
    const run = await curfew.ended(id);
    assertCompleted(run);
    assert.deepEqual(run.output, [0, 1]);
    const counts = [left, right].map(({ held, flaky }) => [asked(`/held/${held}`), asked(flaky)]);
    assert.deepEqual(counts, [[1, 2], [2, 2]]);
  });

  test("a join that ran out of time is asked again with all its time", async () => {
    const held = freshId("k");
    const document = fan({ join: { timeout: "700ms" } });
    const done = `/ok/${freshId("d")}`;
    const id = await started(document, { urls: [`${peer.url}${done}?n=1`, `${peer.url}/held/${held}?n=2`] });
    const failed = await curfew.ended(id);
    assert.deepEqual([failed.status, failed.error?.message], ["failed", "Synchronization timeout exceeded"]);
    const [record] = (await curfew.api("GET", `/v1/runs/${id}/timeouts`)).json.items;
    assert.deepEqual([record.timeout_event.scope, record.timeout_event.timeout_ms, record.final_action], ["sync", 700, "fail"]);
    peer.release(held);
    await retried(id, "retry_step");
    const run = await curfew.ended(id);
    assertCompleted(run);
    assert.deepEqual(run.output, ["1", "2"]);
    assert.deepEqual([asked(done), asked(`/held/${held}`)], [1, 2]);
  });

  test("a gate that nobody decided, and a sleep that the end cut short, go on as they were", async () => {
    const flaky = `/flaky/${freshId("f")}/1/500`;
    const document = workflow({
      nodes: [{ id: "start" }, { id: "review", gate: {} }, { id: "nap", wait: { sleep_ms: 1_500 } }, { id: "work", action_id: "ask" }, marked("done")],
      transitions: [
        ...["review", "nap", "work"].map((id) => ({ from_node_id: "start", to_node_id: id })),
        { from_node_id: "review", to_node_id: "done" },
      ],
      actions: [ask, mark("done")],
      output_mapping: "${state.review.choice}",
    });
    const id = await started(document, { url: peer.url + flaky });
    assert.equal((await curfew.ended(id)).status, "failed");
    await retried(id, "retry_step");
    const asking = (await curfew.tokens(id)).find(({ status }) => status === "awaiting_human");
    // The list is a little behind: it may still show the gate that the end closed.
    const gate = await until("the gate to be open again", async () => {
      const { json } = await curfew.api("GET", "/v1/gates?limit=1000");
      const isOpen = ({ run_id, token_id }: { run_id: string; token_id: string }) => run_id === id && token_id === asking?.id;
      return json.items.find(isOpen);
    });
    assert.equal(gate.kind, "node");
    const decided = await curfew.api("POST", `/v1/runs/${id}/gates/${gate.id}`, { choice: "approve" });
    assert.equal(decided.status, 200, decided.text);
    const run = await curfew.ended(id);
    assertCompleted(run);
    assert.equal(run.output, "approve");
  });

  test("a run goes on after the process it ended in is gone", async () => {
    const directory = mkdtempSync(join(tmpdir(), "curfew-test-"));
    try {
      const [key, flaky] = [freshId("k"), `/flaky/${freshId("f")}/1/500`];
      const document = inTwoSteps();
      let life = await startCurfew({ persistTo: directory });
      await life.store(document);
      const id = await life.start(document.id, { items: items(3, 2, key, flaky) });
      await until("the others to stand at the join", async () => (await life.run(id)).counts["waiting_for_siblings"] === 2);
      peer.release(key);
      const failed = await life.ended(id);
      assert.equal(failed.status, "failed");
      const what = async () => Promise.all(["events", "resume", "deliverable"].map(async (what) => (await life.api("GET", `/v1/runs/${id}/${what}`)).json));
      const before = await what();
      await life.dispose();
      life = await startCurfew({ persistTo: directory });
      assert.deepEqual(await what(), before);
      const answer = await life.api("POST", `/v1/runs/${id}/retry`, { mode: "retry_step" });
      assert.equal(answer.status, 200, answer.text);
      const run = await life.ended(id);
      assertCompleted(run);
      assert.deepEqual(run.output, [0, 1, 2]);
      assert.deepEqual([asked(`/held/${key}`), asked(flaky), asked(`/ok/${key}/0`)], [1, 2, 2]);
      await until("the index to know", async () => {
        const { json } = await life.api("GET", `/v1/runs?workflow=${document.id}`);
        return json.items[0]?.status === "completed";
      });
      await life.dispose();
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  });

  test("read sees what happened and what could, operate brings it back", async () => {
    const document = oneRequest("${input.url}");
    const stored = await guarded.api("PUT", `/v1/workflows/${document.id}`, document, ADMIN);
    assert.equal(stored.status, 201, stored.text);
    const flaky = `/flaky/${freshId("f")}/1/500`;
    const { json } = await guarded.api("POST", `/v1/workflows/${document.id}/runs`, { input: { url: peer.url + flaky } }, OPERATE);
    const ended = () => guarded.api("GET", `/v1/runs/${json.id}?wait_ms=10000`, undefined, READ);
    assert.equal((await ended()).json.status, "failed");
    for (const what of ["events", "timeouts", "resume", "deliverable"]) {
      assert.equal((await guarded.api("GET", `/v1/runs/${json.id}/${what}`, undefined, READ)).status, 200, what);
      assert.equal((await guarded.api("GET", `/v1/runs/${json.id}/${what}`)).status, 401, what);
    }
    const back = (token?: string) => guarded.api("POST", `/v1/runs/${json.id}/retry`, { mode: "retry_step" }, token);
    assert.deepEqual([(await back()).status, (await back(READ)).status], [401, 403]);
    assert.equal((await back(OPERATE)).status, 200);
    assert.equal((await ended()).json.status, "completed");
  });
});
