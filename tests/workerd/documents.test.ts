// The catalogue: versions, immutability, and refusals that name every problem.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { freshId, mark, marked, oneTask, request, set, workflow } from "./documents.ts";
import { startCurfew, type Answer, type Curfew } from "./harness.ts";
import { startPeer, type Peer } from "./peer.ts";

let curfew: Curfew;
let peer: Peer;
before(async () => {
  [curfew, peer] = await Promise.all([startCurfew(), startPeer()]);
});
after(() => Promise.all([curfew.dispose(), peer.close()]));

type Document = { id: string; [field: string]: unknown };
const put = (kind: string, document: Document) => curfew.api("PUT", `/v1/${kind}/${document.id}`, document);

/** The refusal of a document, with the problems it must contain, as [pointer, code]. */
function assertRefused(answer: Answer, problems: [pointer: string, code: string][]): void {
  assert.equal(answer.status, 422, answer.text);
  assert.equal(answer.json.error.code, "invalid_document");
  const found: { pointer: string; code: string; message: string }[] = answer.json.error.details;
  for (const [pointer, code] of problems) {
    const match = found.find((problem) => problem.pointer === pointer && problem.code === code);
    assert.ok(match, `no ${code} at ${pointer} in ${JSON.stringify(found, null, 1)}`);
    assert.ok(match.message.length > 0, `${pointer} has no message`);
  }
}

test("the same content keeps its version, other content makes the next", async () => {
  const first = oneTask([set({ a: 1 })]);
  const stored = await put("workflows", first);
  assert.equal(stored.status, 201, stored.text);
  assert.equal(stored.json.id, first.id);
  assert.equal(stored.json.version, 1);
  assert.deepEqual(stored.json.warnings, []);

  const again = await put("workflows", first);
  assert.equal(again.status, 200, again.text);
  assert.equal(again.json.version, 1);

  const reordered = await curfew.api("PUT", `/v1/workflows/${first.id}`, JSON.stringify(reversed(first), null, 4));
  assert.equal(reordered.status, 200, "order of keys and white space are not content");
  assert.equal(reordered.json.version, 1);

  const changed = await put("workflows", { ...first, description: "changed" });
  assert.equal(changed.status, 201, changed.text);
  assert.equal(changed.json.version, 2);
});

test("every version can be read, the newest without asking", async () => {
  const document = { ...oneTask([set({ a: 1 })]), description: "the first words" };
  await put("workflows", document);
  await put("workflows", { ...document, description: "the second words" });

  const newest = await curfew.api("GET", `/v1/workflows/${document.id}`);
  assert.equal(newest.status, 200, newest.text);
  assert.equal(newest.json.version, 2);
  assert.match(newest.text, /the second words/);
  const old = await curfew.api("GET", `/v1/workflows/${document.id}?version=1`);
  assert.equal(old.json.version, 1);
  assert.match(old.text, /the first words/);
  assert.equal((await curfew.api("GET", `/v1/workflows/${document.id}?version=3`)).status, 404);
  assert.equal((await curfew.api("GET", `/v1/workflows/${document.id}?version=one`)).status, 400);
});

test("documents of each kind are listed", async () => {
  const action = mark(freshId("a")) as Document;
  assert.equal((await put("actions", action)).status, 201);
  const list = await curfew.api("GET", "/v1/actions");
  assert.equal(list.status, 200, list.text);
  assert.ok("next_cursor" in list.json);
  assert.ok(list.json.items.some((item: { id: string }) => item.id === action.id), list.text);
});

test("a run takes the newest version of what its workflow refers to, or the one it names", async () => {
  const task = { id: freshId("t"), steps: [set({ says: "one" })] };
  await put("tasks", task);
  const newest = workflow({ nodes: [{ id: "work", task_id: task.id }], output_mapping: "${state.work.says}" });
  const pinned = workflow({
    nodes: [{ id: "work", task_id: task.id, task_version: 1 }],
    output_mapping: "${state.work.says}",
  });
  await curfew.store(newest);
  await curfew.store(pinned);
  await put("tasks", { ...task, steps: [set({ says: "two" })] });

  assert.equal((await curfew.ended(await curfew.start(newest.id))).output, "two");
  assert.equal((await curfew.ended(await curfew.start(pinned.id))).output, "one");
});

test("a run keeps the documents it began with", async () => {
  const task = { id: freshId("t"), steps: [set({ says: "old" })] };
  await put("tasks", task);
  const document = workflow({
    nodes: [{ id: "slow", task_id: "slow" }, { id: "work", task_id: task.id }],
    transitions: [{ from_node_id: "slow", to_node_id: "work" }],
    tasks: [{ id: "slow", steps: [request({ url: "${input.url}" })] }],
    output_mapping: "${state.work.says}",
  });
  await curfew.store(document);
  const run = await curfew.start(document.id, { url: `${peer.url}/slow/800` });
  await put("tasks", { ...task, steps: [set({ says: "new" })] });
  assert.equal((await curfew.ended(run)).output, "old");
});

test("one answer names every problem at its pointer", async () => {
  const answer = await put("workflows", {
    id: freshId("w"),
    tiemout: "5s",
    timeout: "30",
    on_timeout: "explode",
    nodes: [
      { id: "a", task_id: "missing-task" },
      { id: "a" },
      { id: "b", timeout: "1s", timeout_ms: 1000, input_mapping: { x: "${1 +}" } },
      { id: "c", max_retries: "three", output_mapping: { "input.x": 1 } },
    ],
    transitions: [
      { id: "t", from_node_id: "a", to_node_id: "nowhere" },
      { id: "u", from_node_id: "a", to_node_id: "b", condition: "nobody.knows > 1" },
      { id: "u", from_node_id: "b", to_node_id: "c", loop_config: { max_iterations: 0 } },
    ],
    tasks: [{ id: "k", steps: [{ action: { kind: "dance", implementation: {} } }, { action_id: "missing-action" }] }],
  });
  assertRefused(answer, [
    ["/tiemout", "unknown_field"],
    ["/timeout", "invalid_duration"],
    ["/on_timeout", "invalid_choice"],
    ["/nodes/0/task_id", "unknown_reference"],
    ["/nodes/1/id", "duplicate_id"],
    ["/nodes/2/timeout", "both_forms"],
    ["/nodes/2/input_mapping/x", "invalid_expression"],
    ["/nodes/3/max_retries", "wrong_type"],
    ["/nodes/3/output_mapping/input.x", "invalid_target"],
    ["/transitions/0/to_node_id", "unknown_node"],
    ["/transitions/1/condition", "unknown_name"],
    ["/transitions/2/id", "duplicate_id"],
    ["/transitions/2/loop_config/max_iterations", "out_of_range"],
    ["/tasks/0/steps/0/action/kind", "invalid_choice"],
    ["/tasks/0/steps/1/action_id", "unknown_reference"],
  ]);
});

test("an unreachable node is reported with its pointer", async () => {
  const answer = await put("workflows", workflow({ nodes: [{ id: "start" }, { id: "island" }] }));
  const reported = answer.status === 422 ? answer.json.error.details : answer.json.warnings;
  const found = reported.find((problem: { pointer: string }) => problem.pointer === "/nodes/1");
  assert.ok(found, answer.text);
  assert.equal(found.code, "unreachable_node");
});

test("a refused document leaves nothing behind", async () => {
  const id = freshId("w");
  assertRefused(await put("workflows", { id, nodes: [] }), [["/nodes", "missing_field"]]);
  assert.equal((await curfew.api("GET", `/v1/workflows/${id}`)).status, 404);
});

test("the id of the document is the one of its address", async () => {
  const document = oneTask([set({ a: 1 })]);
  const answer = await curfew.api("PUT", "/v1/workflows/another-id", document);
  assert.ok([400, 422].includes(answer.status), answer.text);
  assert.equal((await curfew.api("GET", "/v1/workflows/another-id")).status, 404);
});

test("an id outside its alphabet is refused", async () => {
  for (const id of ["Upper", "with%20space", "x".repeat(65), "dot.dot"]) {
    const answer = await curfew.api("PUT", `/v1/actions/${id}`, { ...mark("x"), id: decodeURIComponent(id) });
    assert.ok([400, 422].includes(answer.status), `${id}: ${answer.status} ${answer.text}`);
  }
});

test("what this version cannot do is refused, not ignored", async () => {
  const node = (more: object) => workflow({ nodes: [{ id: "n", ...more }] });
  const transition = (more: object) =>
    workflow({
      nodes: [marked("a"), marked("b")],
      actions: [mark("a"), mark("b")],
      transitions: [{ from_node_id: "a", to_node_id: "b", ...more }],
    });
  const action = (kind: string) => oneTask([{ action: { kind, implementation: {} } }]);
  const cases: [pointer: string, document: Document][] = [
    ["/nodes/0/gate", node({ gate: { prompt: "Go on?" } })],
    ["/nodes/0/wait", node({ wait: { sleep_ms: 5 } })],
    ["/nodes/0/workflow_id", node({ workflow_id: "other" })],
    ["/transitions/0/spawn_count", transition({ spawn_count: 3 })],
    ["/transitions/0/foreach", transition({ foreach: { collection: "input.items", item_var: "item" } })],
    ["/transitions/0/synchronization", transition({ synchronization: { strategy: "all" } })],
    ["/on_timeout", { ...oneTask([set({ a: 1 })]), on_timeout: "human_gate" }],
    ...["llm_call", "mcp_tool", "shell", "workflow_call", "emit_event"].map(
      (kind): [string, Document] => ["/tasks/0/steps/0/action/kind", action(kind)],
    ),
  ];
  for (const [pointer, document] of cases) assertRefused(await put("workflows", document), [[pointer, "unsupported"]]);
});

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).reverse().map(([key, inner]) => [key, reversed(inner)]));
}
