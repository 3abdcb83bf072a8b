// Resuming runs with branches, joins and several live tokens: only unfinished work is repeated.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { assertCompleted } from "./assertions.ts";
import { ask, fan, freshId, markAction, markNode, oneRequest, request, workflow } from "./document-builders.ts";
import { ADMIN, OPERATE, READ, roleVars, startCurfew, type Curfew } from "./harness.ts";
import { startPeer, type Peer } from "./peer.ts";
import { until } from "./poll.ts";
import type { RunView } from "./api-types.ts";

let curfew: Curfew;
let guarded: Curfew;
let peer: Peer;
before(async () => {
  [curfew, guarded, peer] = await Promise.all([startCurfew(), startCurfew({ vars: roleVars }), startPeer()]);
});
after(() => Promise.all([curfew.dispose(), guarded.dispose(), peer.close()]));

const retry = (runId: string, body: object) => curfew.api("POST", `/v1/runs/${runId}/retry`, body);
async function retryOk(runId: string, mode: string, more: object = {}): Promise<RunView> {
  const response = await retry(runId, { mode, ...more });
  assert.equal(response.status, 200, response.text);
  return response.json;
}
const requestCount = (path: string) => peer.seen(path).length;
const reached = (path: string, times = 1) => until(`a request to ${path}`, () => requestCount(path) >= times);

/** Each branch requests the two URLs of its item, one after the other, and returns the `n` that the second peer saw. */
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

/** Items 0..n; the item `broken` is held and fails once in its second step. */
function items(total: number, broken: number, key: string, flaky: string) {
  return Array.from({ length: total }, (_, n) => ({
    n,
    first: n === broken ? `${peer.url}/held/${key}` : `${peer.url}/ok/${key}/${n}`,
    second: n === broken ? peer.url + flaky : `${peer.url}/ok/${key}/${n}/second`,
  }));
}

describe("branches", { concurrency: 6 }, () => {
  test("one failed branch resumes from its finished step, and the join merges all", async () => {
    const [key, flaky] = [freshId("k"), `/flaky/${freshId("f")}/1/500`];
    const id = await curfew.storeAndStart([inTwoSteps()], { items: items(3, 1, key, flaky) });
    await until("the others to wait at the join", async () => (await curfew.run(id)).counts["waiting_for_siblings"] === 2);
    peer.release(key);
    assert.equal((await curfew.ended(id)).status, "failed");
    const ways = (await curfew.api("GET", `/v1/runs/${id}/resume`)).json;
    assert.deepEqual([ways.failed_tokens.map(({ token_id }: { token_id: string }) => token_id), ways.recommended], [["t3"], "retry_step"]);
    await retryOk(id, "retry_step");
    const run = await curfew.ended(id);
    assertCompleted(run);
    assert.deepEqual(run.output, [0, 1, 2]);
    assert.deepEqual([requestCount(`/held/${key}`), requestCount(flaky), requestCount(`/ok/${key}/0`), requestCount(`/ok/${key}/2`)], [1, 2, 2, 2]);
  });

  test("parallel work is aborted and starts again with it", async () => {
    const [slow, held, flaky] = [freshId("s"), freshId("k"), `/flaky/${freshId("f")}/1/500`];
    const urls = [`${peer.url}/held/${slow}?n=a`, `${peer.url}/held/${held}?n=b`].map((first, index) => ({
      n: index,
      first,
      second: index === 1 ? peer.url + flaky : `${peer.url}/ok`,
    }));
    const id = await curfew.storeAndStart([inTwoSteps()], { items: urls });
    await Promise.all([reached(`/held/${slow}`), reached(`/held/${held}`)]);
    peer.release(held);
    assert.equal((await curfew.ended(id)).status, "failed");
    await until("the other connection to close", () => peer.seen(`/held/${slow}`)[0]?.aborted === true);
    peer.release(slow);
    const ways = (await curfew.api("GET", `/v1/runs/${id}/resume`)).json;
    assert.deepEqual([ways.failed_tokens.length, ways.tokens_to_go_on], [1, 2]);
    await retryOk(id, "retry_step");
    const run = await curfew.ended(id);
    assertCompleted(run);
    assert.deepEqual(run.output, [0, 1]);
    assert.deepEqual([requestCount(`/held/${slow}`), requestCount(`/held/${held}`), requestCount(flaky)], [2, 1, 2]);
  });

  test("discarding the work of one token keeps the work of the others", async () => {
    const [left, right] = [0, 1].map((n) => ({ n, held: freshId("k"), flaky: `/flaky/${freshId("f")}/1/503` })) as [Broken, Broken];
    const broken = [left, right].map(({ n, held, flaky }) => ({ n, first: `${peer.url}/held/${held}`, second: peer.url + flaky }));
    const id = await curfew.storeAndStart([inTwoSteps({ on_branch_failure: "proceed_with_available" })], { items: broken });
    await Promise.all([left, right].map(({ held }) => reached(`/held/${held}`)));
    for (const { held } of [left, right]) peer.release(held);
    assert.equal((await curfew.ended(id)).status, "failed", "nothing is available");
    const refused = await retry(id, { mode: "discard_and_retry", token_id: "t1" });
    assert.deepEqual([refused.status, refused.json.error.code], [409, "not_resumable"], refused.text);
    assert.match(refused.json.error.message, /t2, t3/);
    await retryOk(id, "discard_and_retry", { token_id: "t3" });
    const run = await curfew.ended(id);
    assertCompleted(run);
    assert.deepEqual(run.output, [0, 1]);
    const counts = [left, right].map(({ held, flaky }) => [requestCount(`/held/${held}`), requestCount(flaky)]);
    assert.deepEqual(counts, [[1, 2], [2, 2]]);
  });

  test("a join that timed out is opened again with its whole time", async () => {
    const held = freshId("k");
    const document = fan({ join: { timeout: "700ms" } });
    const done = `/ok/${freshId("d")}`;
    const id = await curfew.storeAndStart([document], { urls: [`${peer.url}${done}?n=1`, `${peer.url}/held/${held}?n=2`] });
    const failed = await curfew.ended(id);
    assert.deepEqual([failed.status, failed.error?.message], ["failed", "Synchronization timeout exceeded"]);
    const [record] = (await curfew.api("GET", `/v1/runs/${id}/timeouts`)).json.items;
    assert.deepEqual([record.timeout_event.scope, record.timeout_event.timeout_ms, record.final_action], ["sync", 700, "fail"]);
    peer.release(held);
    await retryOk(id, "retry_step");
    const run = await curfew.ended(id);
    assertCompleted(run);
    assert.deepEqual(run.output, ["1", "2"]);
    assert.deepEqual([requestCount(done), requestCount(`/held/${held}`)], [1, 2]);
  });

  test("an undecided gate and an interrupted sleep continue", async () => {
    const flaky = `/flaky/${freshId("f")}/1/500`;
    const document = workflow({
      nodes: [{ id: "start" }, { id: "review", gate: {} }, { id: "nap", wait: { sleep_ms: 1_500 } }, { id: "work", action_id: "ask" }, markNode("done")],
      transitions: [
        ...["review", "nap", "work"].map((id) => ({ from_node_id: "start", to_node_id: id })),
        { from_node_id: "review", to_node_id: "done" },
      ],
      actions: [ask, markAction("done")],
      output_mapping: "${state.review.choice}",
    });
    const id = await curfew.storeAndStart([document], { url: peer.url + flaky });
    assert.equal((await curfew.ended(id)).status, "failed");
    await retryOk(id, "retry_step");
    const asking = (await curfew.tokens(id)).find(({ status }) => status === "awaiting_human");
    // The list may still show the gate that the end of the run closed.
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

  test("a run is resumed after a restart", async () => {
    const directory = mkdtempSync(join(tmpdir(), "curfew-test-"));
    try {
      const [key, flaky] = [freshId("k"), `/flaky/${freshId("f")}/1/500`];
      const document = inTwoSteps();
      let life = await startCurfew({ persistTo: directory });
      await life.store(document);
      const id = await life.start(document.id, { items: items(3, 2, key, flaky) });
      await until("the others to wait at the join", async () => (await life.run(id)).counts["waiting_for_siblings"] === 2);
      peer.release(key);
      const failed = await life.ended(id);
      assert.equal(failed.status, "failed");
      const what = async () => Promise.all(["events", "resume", "deliverable"].map(async (what) => (await life.api("GET", `/v1/runs/${id}/${what}`)).json));
      const before = await what();
      await life.dispose();
      life = await startCurfew({ persistTo: directory });
      assert.deepEqual(await what(), before);
      const response = await life.api("POST", `/v1/runs/${id}/retry`, { mode: "retry_step" });
      assert.equal(response.status, 200, response.text);
      const run = await life.ended(id);
      assertCompleted(run);
      assert.deepEqual(run.output, [0, 1, 2]);
      assert.deepEqual([requestCount(`/held/${key}`), requestCount(flaky), requestCount(`/ok/${key}/0`)], [1, 2, 2]);
      await until("the index to be updated", async () => {
        const { json } = await life.api("GET", `/v1/runs?workflow=${document.id}`);
        return json.items[0]?.status === "completed";
      });
      await life.dispose();
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  });

  test("read shows history and options, operate resumes", async () => {
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
