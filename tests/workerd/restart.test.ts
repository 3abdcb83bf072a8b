// A restart with the same storage: committed work is kept, and deadlines fire.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { freshId, oneRequest, oneTask, set, workflow } from "./document-builders.ts";
import { startCurfew, type Curfew } from "./harness.ts";
import { startPeer, type Peer } from "./peer.ts";
import { until } from "./poll.ts";

let peer: Peer;
const directory = mkdtempSync(join(tmpdir(), "curfew-test-"));
before(async () => {
  peer = await startPeer();
});
after(async () => {
  await peer.close();
  rmSync(directory, { recursive: true, force: true });
});

/** One process. */
async function withCurfew<T>(work: (curfew: Curfew) => Promise<T>): Promise<T> {
  const curfew = await startCurfew({ persistTo: directory });
  try {
    return await work(curfew);
  } finally {
    await curfew.dispose();
  }
}

test("an ended run, a live run and its deadline survive", async () => {
  const [done, live] = await withCurfew(async (curfew): Promise<[string, string]> => {
    const done = await curfew.runToEnd(oneTask([set({ a: 1 })]));
    const hanging = oneRequest("${input.url}", { workflow: { timeout: "4s", on_timeout: "fail" } });
    await curfew.store(hanging);
    const path = `/hang/${freshId("restart")}`;
    const live = await curfew.start(hanging.id, { url: peer.url + path });
    await until("the request at the peer", () => peer.seen(path).length > 0);
    return [done.id, live];
  });
  await withCurfew(async (curfew) => {
    const { json: before } = await curfew.api("GET", `/v1/runs/${done}`);
    assert.deepEqual(before.output, { a: 1 });
    const ended = await curfew.ended(live);
    assert.equal(ended.status, "failed");
    assert.equal(ended.error?.message, "Workflow execution timed out after 4s");
  });
});

// A context value is stored on the token that wrote it first, in its own row after another write, and in an empty row after it was
// undone.
test("the state is restored, wherever it is stored", async () => {
  const document = workflow({
    nodes: [
      { id: "first", task_id: "say", output_mapping: { "state.kept": "${result.n}", "state.again": 1 } },
      { id: "second", task_id: "say", output_mapping: { "state.again": 2 } },
      { id: "rest", wait: { signal: "go" } },
    ],
    transitions: [
      { from_node_id: "first", to_node_id: "second" },
      { from_node_id: "second", to_node_id: "rest" },
    ],
    tasks: [{ id: "say", dispatch: "direct", steps: [set({ n: 7 })] }],
  });
  const id = await withCurfew(async (curfew) => {
    await curfew.store(document);
    const id = await curfew.start(document.id);
    await until("the run to wait", async () => (await curfew.api("GET", `/v1/runs/${id}`)).json.status === "waiting");
    return id;
  });
  await withCurfew(async (curfew) => {
    assert.deepEqual((await curfew.api("GET", `/v1/runs/${id}`)).json.context.state, { kept: 7, again: 2 });
    const signal = await curfew.api("POST", `/v1/runs/${id}/signals/go`, { by: "hand" });
    assert.equal(signal.status, 200, signal.text);
    assert.deepEqual((await curfew.ended(id)).context.state, { kept: 7, again: 2, rest: { by: "hand" } });
    const response = await curfew.api("POST", `/v1/runs/${id}/restart`, { from_node_id: "rest" });
    assert.equal(response.status, 200, response.text);
  });
  await withCurfew(async (curfew) => {
    const { json: run } = await curfew.api("GET", `/v1/runs/${id}`);
    assert.deepEqual([run.status, run.context.state], ["waiting", { kept: 7, again: 2 }]);
    assert.deepEqual(
      (await curfew.tokens(id)).map(({ node_id, status }) => [node_id, status]),
      [
        ["first", "completed"],
        ["second", "completed"],
        ["rest", "completed"],
        ["rest", "suspended"],
      ],
    );
  });
});
