// Size limits: a value that is too large is refused or fails its token, once, with its size and the limit; and a run never gets into
// a state that cannot be stored.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ask, check, set, workflow } from "./document-builders.ts";
import { type Curfew, startCurfew } from "./harness.ts";
import { type Peer, startPeer } from "./peer.ts";
import { until } from "./poll.ts";

let curfew: Curfew;
let peer: Peer;

before(async () => {
  peer = await startPeer();
  curfew = await startCurfew();
});
after(async () => {
  await curfew.dispose();
  await peer.close();
});

const KIB = 1024;
const text = (bytes: number) => "x".repeat(bytes);

const twoSignals = workflow({
  nodes: [{ id: "first", wait: { signal: "begin" } }, { id: "wait", wait: { signal: "go" } }],
  transitions: [{ from_node_id: "first", to_node_id: "wait" }],
});

test("a signal that is too large is a 413, awaited or buffered, and the run is unchanged", async () => {
  await curfew.store(twoSignals);
  const run = await curfew.start(twoSignals.id);
  const signal = (name: string, body: unknown) => curfew.api("POST", `/v1/runs/${run}/signals/${name}`, body);
  for (const name of ["begin", "go"]) {
    const refused = await signal(name, [text(600 * KIB)]);
    assert.equal(refused.status, 413, refused.text);
    assert.equal(refused.json.error.code, "limit_exceeded");
    assert.match(refused.json.error.message, /the signal is 614404 bytes; the limit is 524288/);
  }
  // Nine of the largest allowed: the first is buffered, the others exceed the buffer.
  const answers = [];
  for (let count = 0; count < 9; count += 1) answers.push((await signal("go", [text(512 * KIB - 4)])).status);
  assert.deepEqual(answers, [200, ...Array(8).fill(429)]);
  assert.equal((await curfew.run(run)).status, "waiting");
  assert.equal((await signal("begin", {})).status, 200);
  assert.equal((await curfew.ended(run)).status, "completed");
});

test("a decision that is too large is a 413, and the gate stays open", async () => {
  const gated = workflow({ nodes: [{ id: "ask", gate: { prompt: "Well?" } }] });
  await curfew.store(gated);
  const run = await curfew.start(gated.id);
  const decide = (body: unknown) => curfew.api("POST", `/v1/runs/${run}/gates/g1`, body);
  for (const body of [
    { choice: "approve", input: text(600 * KIB) },
    { choice: "approve", comment: text(600 * KIB) },
  ]) {
    const refused = await decide(body);
    assert.equal(refused.status, 413, refused.text);
  }
  assert.equal((await curfew.run(run)).status, "waiting");
  assert.equal((await decide({ choice: "approve" })).status, 200);
  assert.equal((await curfew.ended(run)).status, "completed");
});

test("a callback that is too large is a 413 and may be repeated", async () => {
  const handing = workflow({
    nodes: [{ id: "hand", action_id: "hand" }],
    actions: [
      {
        id: "hand",
        kind: "http_request",
        implementation: { url: `${peer.url}/ok/large-callback`, method: "POST", body: { to: "${callback.url}" } },
        execution: { mode: "async", timeout: "20s" },
      },
    ],
    output_mapping: "${state.hand}",
  });
  await curfew.store(handing);
  const run = await curfew.start(handing.id);
  const order = await until("the call", () => peer.seen("/ok/large-callback")[0]);
  const path = new URL(JSON.parse(order.body).to).pathname;
  const refused = await curfew.api("POST", path, { output: text(600 * KIB) });
  assert.equal(refused.status, 413, refused.text);
  assert.equal((await curfew.api("POST", path, { output: "fine" })).status, 200);
  assert.equal((await curfew.ended(run)).output, "fine");
});

test("a decision that cannot be saved fails once, with the reason", async () => {
  peer.route("/large", () => ({ body: text(100_000) }));
  // Item, result and output of the branch: each within its limit, together too large for a row.
  const large = workflow({
    nodes: [
      { id: "start" },
      {
        id: "call",
        action_id: "ask",
        input_mapping: { url: `${peer.url}/large` },
        output_mapping: { "_branch.output": "${item + \"!\"}" },
      },
    ],
    transitions: [{ from_node_id: "start", to_node_id: "call", foreach: { collection: "[input.item]", item_var: "item" } }],
    actions: [ask],
  });
  const end = await curfew.runToEnd(large, { item: text(500_000) });
  assert.equal(end.status, "failed");
  assert.equal(end.error?.code, "limit_exceeded", JSON.stringify(end.error).slice(0, 500));
  assert.match(end.error?.message ?? "", /^the token with its result, .*, at node call, is \d+ bytes; the limit is 1048576$/);
  assert.equal(peer.seen("/large").length, 1, "one call to the peer");
});

test("a message of 4 MB is truncated on a failure route", async () => {
  const failing = workflow({
    nodes: [
      { id: "check", task_id: "check", input_mapping: { long: "${input.long}" } },
      { id: "mend", task_id: "mend", input_mapping: { why: "${error.message}" } },
    ],
    transitions: [{ from_node_id: "check", to_node_id: "mend", on: "failure" }],
    tasks: [
      { id: "check", steps: [check("false", "${input.long}${input.long}${input.long}${input.long}")] },
      { id: "mend", steps: [set({ why: "${input.why}" })] },
    ],
    output_mapping: "${state.mend.why}",
  });
  const end = await curfew.runToEnd(failing, { long: text(900 * KIB) });
  assert.equal(end.status, "completed", JSON.stringify(end.error));
  assert.equal((end.output as string).length <= 4096, true);
  assert.match(end.output as string, /x… \[cut, \d+ bytes in all\]$/);
});

test("an input that is too large for a child fails the token that calls it", async () => {
  const child = workflow({ nodes: [{ id: "end" }] });
  await curfew.store(child);
  const parent = workflow({ nodes: [{ id: "call", workflow_id: child.id, input_mapping: ["${input.long}", "${input.long}"] }] });
  const end = await curfew.runToEnd(parent, { long: text(900 * KIB) });
  assert.equal(end.status, "failed");
  assert.match(end.error?.message ?? "", /^the input of the workflow that node call calls is \d+ bytes; the limit is 1044480$/);
});

test("many calls with large inputs all complete, a few at a time", async () => {
  const child = workflow({ nodes: [{ id: "end" }], output_mapping: "${size(input.long)}" });
  await curfew.store(child);
  const parent = workflow({
    nodes: [{ id: "begin" }, { id: "call", workflow_id: child.id }, { id: "join" }],
    transitions: [
      { id: "out", from_node_id: "begin", to_node_id: "call", spawn_count: 40 },
      { from_node_id: "call", to_node_id: "join", synchronization: { strategy: "all", sibling_group: "out", merge: { target: "state.sizes", strategy: "append" } } },
    ],
    output_mapping: "${state.sizes.sum()}",
  });
  const end = await curfew.runToEnd(parent, { long: text(900 * KIB) });
  assert.equal(end.status, "completed", JSON.stringify(end.error));
  assert.equal(end.output, 40 * 900 * KIB);
});

test("an input is measured as it is stored", async () => {
  const plain = workflow({ nodes: [{ id: "end" }] });
  await curfew.store(plain);
  // 1e15 has 4 bytes in the request and 18 in the row.
  const body = `{"input": [${Array(200_000).fill("1e15").join(",")}]}`;
  assert.ok(body.length < 1024 * KIB);
  const refused = await curfew.api("POST", `/v1/workflows/${plain.id}/runs`, body);
  assert.equal(refused.status, 413, refused.text);
  assert.match(refused.json.error.message, /the input is \d+ bytes; the limit is 1048576/);
});

test("workflows that call each other must fit a row, each with everything it may call", async () => {
  const calling = (kibibytes: number, calls?: { id: string }) =>
    workflow({ nodes: [calls ? { id: "call", workflow_id: calls.id } : { id: "end" }], description: text(kibibytes * KIB) });
  const refused = async (...chain: { id: string }[]) => {
    for (const document of chain) await curfew.store(document);
    const response = await curfew.api("POST", `/v1/workflows/${chain.at(-1)?.id}/runs`, {});
    assert.equal(response.status, 422, response.text.slice(0, 500));
    assert.equal(response.json.error.code, "limit_exceeded");
    return response.json.error.message;
  };
  const [one, two] = [calling(400), calling(400)];
  const both = { ...calling(400), nodes: [{ id: "a", workflow_id: one.id }, { id: "b", workflow_id: two.id }] };
  assert.match(await refused(one, two, both), /^the workflow with all its tasks, .* bytes; the limit is 1048576$/);
  // Small itself, it would start a child that contains both, one of them twice.
  const inner = calling(380);
  const middle = calling(380, inner);
  assert.match(await refused(inner, middle, calling(1, middle)), /^the called workflow ".*" with all that it may call is \d+ bytes/);
});

test("the reason of a cancellation is limited", async () => {
  const run = await curfew.start(twoSignals.id);
  const refused = await curfew.api("POST", `/v1/runs/${run}/cancel`, { reason: text(5_000) });
  assert.equal(refused.status, 413, refused.text);
  assert.equal((await curfew.api("POST", `/v1/runs/${run}/cancel`, { reason: "enough" })).status, 200);
});

test("a small nested change stores a small undo patch", async () => {
  const overwriting = workflow({
    nodes: [
      { id: "a", output_mapping: { "state.x": "${input.a}" } },
      { id: "b", output_mapping: { "state.x": "${input.b}" } },
    ],
    transitions: [{ from_node_id: "a", to_node_id: "b" }],
  });
  const key = "k".repeat(200_000);
  const end = await curfew.runToEnd(overwriting, { a: { [key]: Array(40_000).fill(1) }, b: { [key]: Array(40_000).fill(2) } });
  assert.equal(end.status, "completed", JSON.stringify(end.error));
  const again = await curfew.api("POST", `/v1/runs/${end.id}/restart`, { from_node_id: "b" });
  assert.equal(again.status, 200, again.text.slice(0, 300));
  assert.equal((await curfew.ended(end.id)).status, "completed");
});

test("large results that a person retries at a dead end do not add up", async () => {
  peer.route("/dead-end", (_seen, times) => ({ body: String(times % 10).repeat(300 * KIB) }));
  const stuck = workflow({
    nodes: [{ id: "work", action_id: "ask", escalate_on: ["validation"] }, { id: "next" }],
    actions: [ask],
    transitions: [{ from_node_id: "work", to_node_id: "next", condition: "false" }],
    output_mapping: "${size(state.work.body)}",
  });
  await curfew.store(stuck);
  const run = await curfew.start(stuck.id, { url: `${peer.url}/dead-end` });
  const decide = (gate: string, choice: string) => curfew.api("POST", `/v1/runs/${run}/gates/${gate}`, { choice });
  for (let round = 1; round <= 10; round += 1) {
    // The gate of the next round is open, or the run has failed, which the request says.
    await until(`gate ${round}`, async () => (await curfew.run(run)).status === "waiting");
    const retried = await decide(`g1.${round}`, "retry");
    assert.equal(retried.status, 200, retried.text.slice(0, 300));
  }
  await until("the last gate", async () => (await curfew.run(run)).status === "waiting");
  assert.equal((await curfew.run(run)).context.state["work"], undefined, "work that is not done is not in the context");
  assert.equal((await decide("g1.11", "skip")).status, 200);
  const end = await curfew.ended(run);
  assert.deepEqual([end.status, end.output], ["completed", 300 * KIB], JSON.stringify(end.error));
});
