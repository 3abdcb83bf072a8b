// Retrying and restarting runs on another version of their workflow: from PUT of the fixed document to the index.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { assertCompleted } from "./assertions.ts";
import { ask, freshId, oneRequest, workflow, type WorkflowDocument } from "./document-builders.ts";
import { startCurfew, type ApiResponse, type Curfew } from "./harness.ts";
import { startPeer, type Peer } from "./peer.ts";
import { until } from "./poll.ts";

const directory = mkdtempSync(join(tmpdir(), "curfew-test-"));
let curfew: Curfew;
let peer: Peer;
before(async () => {
  [curfew, peer] = await Promise.all([startCurfew(), startPeer()]);
});
after(async () => {
  await Promise.all([curfew.dispose(), peer.close()]);
  rmSync(directory, { recursive: true, force: true });
});

const read = (runId: string, what: string) => curfew.api("GET", `/v1/runs/${runId}/${what}`);
const post = (runId: string, what: string, body: unknown) => curfew.api("POST", `/v1/runs/${runId}/${what}`, body);

function assertError(response: ApiResponse, status: number, code: string): void {
  assert.deepEqual([response.status, response.json?.error?.code], [status, code], response.text);
}

/** prepare -> work, whose input has this mapping. */
const chain = (path: string, url: string, more: Partial<WorkflowDocument> = {}): WorkflowDocument =>
  workflow({
    nodes: [
      { id: "prepare", action_id: "ask", input_mapping: { url: `${peer.url}${path}` } },
      { id: "work", action_id: "ask", input_mapping: { url }, output_mapping: { "output.count": "${result.body.count}" } },
    ],
    transitions: [{ from_node_id: "prepare", to_node_id: "work" }],
    actions: [ask],
    ...more,
  });

/** A run that failed because of a wrong mapping, and its document with the right one. */
async function failedInMapping(): Promise<{ id: string; path: string; fixed: WorkflowDocument }> {
  const path = `/count/${freshId("version")}`;
  const wrong = chain(path, "${state.prepare.body.nothing.deeper}");
  const run = await curfew.runToEnd(wrong);
  assert.deepEqual([run.status, run.version, run.error?.code], ["failed", 1, "expression_failed"], JSON.stringify(run.error));
  return { id: run.id, path, fixed: { ...chain(path, `${peer.url}${path}`), id: wrong.id } };
}

describe("versions", { concurrency: 4 }, () => {
  test("a run that failed in a mapping completes on the fixed version", async () => {
    const { id, path, fixed } = await failedInMapping();
    const ways = (await read(id, "resume")).json;
    assert.deepEqual([ways.version.current, ways.version.recommended], [1, true], JSON.stringify(ways));
    assert.match(ways.version.how, new RegExp(`PUT /v1/workflows/${fixed.id} .* POST /v1/runs/${id}/retry`));
    const tag = freshId("fixed");
    const version = await curfew.store({ ...fixed, tags: [tag] } as WorkflowDocument);
    assert.equal(version, 2);
    const retried = await post(id, "retry", { mode: "retry_step", version });
    assert.deepEqual([retried.status, retried.json.version], [200, 2], retried.text);
    const run = await curfew.ended(id);
    assertCompleted(run);
    assert.deepEqual([run.output, run.attempt, run.tags], [{ count: 2 }, 1, [tag]]);
    assert.equal(peer.seen(path).length, 2, "prepare was not repeated");
    const [event] = await curfew.events(id, "run_retried");
    assert.deepEqual([event?.["from_version"], event?.["version"]], [1, 2]);
    const listed = await until("the run to be listed with its new version and tags", async () => {
      const { json } = await curfew.api("GET", `/v1/runs?tag=${tag}&status=completed`);
      return json.items.find((item: { id: string; version: number }) => item.id === id && item.version === 2);
    });
    assert.equal(listed.status, "completed");
    assertError(await post(id, "retry", { mode: "retry_step", version }), 409, "not_resumable");
  });

  test("what does not fit is named, and nothing changes", async () => {
    const { id, fixed } = await failedInMapping();
    const other = await curfew.store({ ...fixed, nodes: [fixed.nodes[0]!], transitions: [] } as WorkflowDocument);
    const refused = await post(id, "retry", { mode: "retry_step", version: other });
    assertError(refused, 409, "version_does_not_fit");
    assert.match(refused.json.error.message, /node "work": the version has no such node/);
    assert.deepEqual(refused.json.error.details, [{ node_id: "work", token_id: "t2", reason: "the version has no such node" }]);
    assertError(await post(id, "restart", { from_node_id: "work", version: other }), 409, "version_does_not_fit");
    const run = await curfew.run(id);
    assert.deepEqual([run.status, run.version, run.attempt], ["failed", 1, 1]);
  });

  test("an unknown version, an unknown run and a wrong number are refused as by a start", async () => {
    const { id, fixed } = await failedInMapping();
    const started = await curfew.api("POST", `/v1/workflows/${fixed.id}/runs`, { version: 9 });
    for (const what of ["retry", "restart"]) {
      const mode = what === "retry" ? { mode: "retry_step" } : {};
      const response = await post(id, what, { ...mode, version: 9 });
      assert.deepEqual([response.status, response.json], [started.status, started.json], response.text);
      assert.equal(response.status, 404);
      assertError(await post("never-started", what, { ...mode, version: 1 }), 404, "not_found");
      for (const version of [0, 1.5, "2", "latest"]) {
        const wrong = await post(id, what, { ...mode, version });
        assert.deepEqual([wrong.status, wrong.json.error.pointer], [422, "/version"], wrong.text);
      }
    }
  });

  test("a restart begins with the new version, and the history keeps the nodes that are gone", async () => {
    const { id, path, fixed } = await failedInMapping();
    const document = oneRequest(peer.url + path);
    const version = await curfew.store({ ...document, id: fixed.id, output_mapping: "${state.work.body.count}" } as WorkflowDocument);
    const response = await post(id, "restart", { version });
    assert.deepEqual([response.status, response.json.version, response.json.attempt], [200, 2, 2], response.text);
    const run = await curfew.ended(id);
    assertCompleted(run);
    assert.equal(run.output, 2);
    assert.deepEqual(
      (await curfew.tokens(id)).map(({ node_id, status }) => [node_id, status]),
      [["prepare", "completed"], ["work", "failed"], ["work", "completed"]],
    );
    for (const what of ["resume", "deliverable", "events", "timeouts"]) assert.equal((await read(id, what)).status, 200, what);
    // Back to the first version, from the node that the second one lacked.
    const again = await post(id, "restart", { from_node_id: "prepare", version: 1 });
    assert.equal(again.status, 409, "since the restart the run has not been there");
    assertError(again, 409, "no_way_back");
  });

  test("the same number again takes up a fixed task", async () => {
    const [task, path] = [freshId("task"), `/count/${freshId("version")}`];
    const steps = (url: string) => ({ id: task, steps: [{ action: { kind: "http_request", implementation: { url } } }] });
    const put = (url: string) => curfew.api("PUT", `/v1/tasks/${task}`, steps(url));
    assert.equal((await put("${input.missing.url}")).status, 201);
    const document = workflow({ nodes: [{ id: "work", task_id: task }] });
    const failed = await curfew.runToEnd(document);
    assert.equal(failed.status, "failed");
    assert.equal((await put(peer.url + path)).status, 201);
    assert.equal((await post(failed.id, "retry", { mode: "retry_step", version: 1 })).status, 200);
    assertCompleted(await curfew.ended(failed.id));
    assert.equal(peer.seen(path).length, 1);
  });

  test("of two retries at the same time one counts", async () => {
    const { id, path, fixed } = await failedInMapping();
    const versions = [await curfew.store(fixed), await curfew.store({ ...fixed, tags: ["third"] } as WorkflowDocument)];
    const responses = await Promise.all(versions.map((version) => post(id, "retry", { mode: "retry_step", version })));
    const accepted = versions.filter((_, index) => responses[index]!.status === 200);
    assert.equal(accepted.length, 1, responses.map(({ text }) => text).join("\n"));
    const run = await curfew.ended(id);
    assertCompleted(run);
    assert.equal(run.version, accepted[0]);
    assert.equal(peer.seen(path).length, 2);
  });
});

test("a run goes on with its new version after the process has ended", async () => {
  const withCurfew = async <T>(work: (curfew: Curfew) => Promise<T>): Promise<T> => {
    const process = await startCurfew({ persistTo: directory });
    try {
      return await work(process);
    } finally {
      await process.dispose();
    }
  };
  const waiting = (node: string) => workflow({ nodes: [{ id: "first" }, { id: node, wait: { signal: "go" } }], transitions: [{ from_node_id: "first", to_node_id: node }] });
  const document = waiting("old");
  const id = await withCurfew(async (curfew) => {
    await curfew.store(document);
    const id = await curfew.start(document.id);
    const version = await curfew.store({ ...waiting("new"), id: document.id } as WorkflowDocument);
    // While it waits at a node that the new version lacks.
    const response = await curfew.api("POST", `/v1/runs/${id}/restart`, { version });
    assert.equal(response.status, 200, response.text);
    return id;
  });
  await withCurfew(async (curfew) => {
    const run = await curfew.run(id);
    assert.deepEqual([run.version, run.status], [2, "waiting"]);
    const response = await curfew.api("POST", `/v1/runs/${id}/signals/go`, {});
    assert.equal(response.status, 200, response.text);
    assertCompleted(await curfew.ended(id));
    assert.deepEqual(
      (await curfew.tokens(id)).map(({ node_id, status }) => [node_id, status]),
      [["first", "completed"], ["old", "cancelled"], ["first", "completed"], ["new", "completed"]],
    );
  });
});
