// The catalogue: versions, immutability, and refusals that name every problem.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fan, freshId, markAction, oneTask, request, set, workflow } from "./document-builders.ts";
import { startCurfew, type ApiResponse, type Curfew } from "./harness.ts";
import { startPeer, type Peer } from "./peer.ts";

let curfew: Curfew;
let peer: Peer;
before(async () => {
  [curfew, peer] = await Promise.all([startCurfew(), startPeer()]);
});
after(() => Promise.all([curfew.dispose(), peer.close()]));

type Document = { id: string; [field: string]: unknown };
const put = (kind: string, document: Document) => curfew.api("PUT", `/v1/${kind}/${document.id}`, document);

/** The refusal of a document with its problems, as [pointer, code]. */
function assertRefused(response: ApiResponse, problems: [pointer: string, code: string][]): void {
  assert.equal(response.status, 422, response.text);
  assert.equal(response.json.error.code, "invalid_document");
  const found: { pointer: string; code: string; message: string }[] = response.json.error.details;
  for (const [pointer, code] of problems) {
    const match = found.find((problem) => problem.pointer === pointer && problem.code === code);
    assert.ok(match, `no ${code} at ${pointer} in ${JSON.stringify(found, null, 1)}`);
    assert.ok(match.message.length > 0, `${pointer} has no message`);
  }
}

test("the same content keeps its version, other content is the next version", async () => {
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

test("every version can be read; the default is the newest", async () => {
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
  const action = markAction(freshId("a")) as Document;
  assert.equal((await put("actions", action)).status, 201);
  const list = await curfew.api("GET", "/v1/actions");
  assert.equal(list.status, 200, list.text);
  assert.ok("next_cursor" in list.json);
  assert.ok(list.json.items.some((item: { id: string }) => item.id === action.id), list.text);
});

test("a run uses the newest version of a reference, or the version it names", async () => {
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

test("cached workflows are never stale", async () => {
  const task = { id: freshId("t"), steps: [set({ says: "one" })] };
  await put("tasks", task);
  const document = workflow({ nodes: [{ id: "work", task_id: task.id }], output_mapping: "${state.work.says}" });
  const whole = workflow({ nodes: [{ id: "a", output_mapping: { "state.says": "one" } }], output_mapping: "${state.says}" });
  for (const { id } of [document, whole]) await curfew.store(id === whole.id ? whole : document);
  const says = async (id: string, version?: number) =>
    (await curfew.ended(await curfew.start(id, {}, version === undefined ? {} : { version }))).output;
  // Each start twice: the second could use what the first has cached.
  for (const version of [1, 1, undefined, undefined]) {
    assert.equal(await says(document.id, version), "one");
    assert.equal(await says(whole.id, version), "one");
  }
  await put("tasks", { ...task, steps: [set({ says: "two" })] });
  assert.equal(await says(document.id, 1), "two", "the workflow names its version, its task does not");
  await curfew.store({ ...whole, nodes: [{ id: "a", output_mapping: { "state.says": "two" } }] } as { id: string });
  assert.equal(await says(whole.id), "two");
  assert.equal(await says(whole.id, 1), "one");
  assert.equal(await says(whole.id, 2), "two");
});

test("a run keeps the documents it started with", async () => {
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

test("one response lists every problem with its pointer", async () => {
  const response = await put("workflows", {
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
  assertRefused(response, [
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

test("an unknown field is refused with the nearest known field and all known ones", async () => {
  const document = { ...workflow({ nodes: [{ id: "start", timout: "1s" }] }), discription: "x" };
  const response = await put("workflows", document);
  assertRefused(response, [
    ["/nodes/0/timout", "unknown_field"],
    ["/discription", "unknown_field"],
  ]);
  const found: { pointer: string; message: string }[] = response.json.error.details;
  assert.match(found.find(({ pointer }) => pointer === "/nodes/0/timout")?.message ?? "", /did you mean "timeout"\? \(known: id, .*gate.*\)$/);
  assert.match(found.find(({ pointer }) => pointer === "/discription")?.message ?? "", /did you mean "description"\? \(known: id, .*nodes.*\)$/);
});

test("an unreachable node is reported with its pointer", async () => {
  const response = await put("workflows", workflow({ nodes: [{ id: "start" }, { id: "island" }] }));
  const reported = response.status === 422 ? response.json.error.details : response.json.warnings;
  const found = reported.find((problem: { pointer: string }) => problem.pointer === "/nodes/1");
  assert.ok(found, response.text);
  assert.equal(found.code, "unreachable_node");
});

test("a refused document is not stored", async () => {
  const id = freshId("w");
  assertRefused(await put("workflows", { id, nodes: [] }), [["/nodes", "missing_field"]]);
  assert.equal((await curfew.api("GET", `/v1/workflows/${id}`)).status, 404);
});

test("the id of a document is the one of its URL", async () => {
  const document = oneTask([set({ a: 1 })]);
  const response = await curfew.api("PUT", "/v1/workflows/another-id", document);
  assert.ok([400, 422].includes(response.status), response.text);
  assert.equal((await curfew.api("GET", "/v1/workflows/another-id")).status, 404);
});

test("an id with invalid characters is refused", async () => {
  for (const id of ["Upper", "with%20space", "x".repeat(65), "dot.dot"]) {
    const response = await curfew.api("PUT", `/v1/actions/${id}`, { ...markAction("x"), id: decodeURIComponent(id) });
    assert.ok([400, 422].includes(response.status), `${id}: ${response.status} ${response.text}`);
  }
});

test("unsupported features are refused, not ignored", async () => {
  const plain = () => oneTask([set({ a: 1 })]);
  const cases: [pointer: string, document: Document][] = [
    ["/trigger/cron", { ...plain(), trigger: { cron: "0 9 * * *", timezone: "Europe/Kyiv" } }],
  ];
  for (const [pointer, document] of cases) assertRefused(await put("workflows", document), [[pointer, "unsupported"]]);
});

test("fan-outs and joins that cannot match are refused", async () => {
  type Fields = Record<string, unknown>;
  const three = { spawn_count: 3 };
  const join = (fields: Fields, spawn: Fields = three) => fan({ spawn, join: fields });
  const merge = (fields: Fields, more: Fields = {}) => fan({ spawn: three, merge: fields, join: more });
  const spawn = (fields: Fields) => fan({ spawn: fields });
  const [each, joined] = ["/transitions/0", "/transitions/1/synchronization"];
  const differing = join({});
  const [, first] = differing["transitions"] as { synchronization: object }[];
  (differing["transitions"] as object[]).push({
    ...first,
    id: "joined-otherwise",
    on: "failure",
    synchronization: { ...first?.synchronization, strategy: "any" },
  });
  const cases: [document: Document, pointer: string, code: string][] = [
    [join({ sibling_group: "nobody" }), `${joined}/sibling_group`, "unknown_group"],
    [join({ sibling_group: undefined }), `${joined}/sibling_group`, "missing_field"],
    [join({ strategy: { m_of_n: 4 } }), `${joined}/strategy/m_of_n`, "quorum_too_large"],
    [join({ strategy: { m_of_n: 0 } }), `${joined}/strategy/m_of_n`, "out_of_range"],
    [join({ strategy: "most" }), `${joined}/strategy`, "invalid_choice"],
    [join({ on_timeout: "retry" }), `${joined}/on_timeout`, "invalid_choice"],
    [join({ on_early_complete: "kill" }), `${joined}/on_early_complete`, "invalid_choice"],
    [join({ on_branch_failure: "ignore" }), `${joined}/on_branch_failure`, "invalid_choice"],
    [join({ timeout: "soon" }), `${joined}/timeout`, "invalid_duration"],
    [merge({ target: "input.x" }), `${joined}/merge/target`, "invalid_target"],
    [merge({ target: "results" }), `${joined}/merge/target`, "invalid_target"],
    [merge({ target: "state" }), `${joined}/merge/target`, "invalid_target"],
    [merge({ target: "_branch.item" }), `${joined}/merge/target`, "invalid_target"],
    [merge({ target: undefined }), `${joined}/merge/target`, "missing_field"],
    [merge({ strategy: "sum" }), `${joined}/merge/strategy`, "invalid_choice"],
    [merge({ source: "state.x" }), `${joined}/merge/source`, "unknown_name"],
    [merge({ target: "_branch.output.x" }, { on_early_complete: "allow_late_merge" }), `${joined}/merge/target`, "invalid_target"],
    [differing, "/transitions/2/synchronization", "different_joins"],
    [spawn({ spawn_count: 0 }), `${each}/spawn_count`, "out_of_range"],
    [spawn({ spawn_count: 1001 }), `${each}/spawn_count`, "out_of_range"],
    [spawn({ spawn_count: 2, foreach: { collection: "input.x" } }), `${each}/foreach`, "both_forms"],
    [spawn({ foreach: {} }), `${each}/foreach/collection`, "missing_field"],
    [spawn({ foreach: { collection: "input.[" } }), `${each}/foreach/collection`, "invalid_expression"],
    [spawn({ foreach: { collection: "nobody.x" } }), `${each}/foreach/collection`, "unknown_name"],
    [spawn({ foreach: { collection: "input.x", item_var: "state" } }), `${each}/foreach/item_var`, "invalid_id"],
  ];
  for (const [document, pointer, code] of cases) assertRefused(await put("workflows", document), [[pointer, code]]);
  const unknownWidth = join({ strategy: { m_of_n: 4 } }, { foreach: { collection: "input.urls", item_var: "url" } });
  assert.equal((await put("workflows", unknownWidth)).status, 201, "how many a foreach makes is not known");
});

test("invalid gates and waits are refused", async () => {
  const node = (fields: object) => workflow({ nodes: [{ id: "n", ...fields }], actions: [markAction("a")] });
  const gate = (fields: object) => node({ gate: fields });
  const wait = (fields: object) => node({ wait: fields });
  const cases: [document: Document, pointer: string, code: string][] = [
    [node({ action_id: "a", gate: {} }), "/nodes/0/gate", "both_forms"],
    [node({ gate: {}, wait: { sleep_ms: 1 } }), "/nodes/0/wait", "both_forms"],
    [node({ workflow_id: "x", action_id: "a" }), "/nodes/0/workflow_id", "both_forms"],
    [node({ action_id: "a", on_failure: "catch" }), "/nodes/0/on_failure", "unknown_field"],
    [gate({ prompt: "${nobody.name}" }), "/nodes/0/gate/prompt", "unknown_name"],
    [gate({ choices: [] }), "/nodes/0/gate/choices", "missing_field"],
    [gate({ choices: ["yes", "yes"] }), "/nodes/0/gate/choices/1", "wrong_type"],
    [gate({ choices: ["yes", "no"], on_timeout: "approve" }), "/nodes/0/gate/on_timeout", "invalid_choice"],
    [gate({ on_timeout: "retry" }), "/nodes/0/gate/on_timeout", "invalid_choice"],
    [gate({ remind_at: [0.5, 1.5] }), "/nodes/0/gate/remind_at/1", "out_of_range"],
    [gate({ input_schema: { type: "thing" } }), "/nodes/0/gate/input_schema/type", "invalid_schema"],
    [gate({ timeout: "1h", timeout_ms: 1 }), "/nodes/0/gate/timeout", "both_forms"],
    [gate({ promt: "typo" }), "/nodes/0/gate/promt", "unknown_field"],
    [wait({}), "/nodes/0/wait", "missing_field"],
    [wait({ sleep_ms: 5, signal: "x" }), "/nodes/0/wait", "both_forms"],
    [wait({ sleep_ms: 5, until: 7 }), "/nodes/0/wait", "both_forms"],
    [wait({ sleep_ms: 5, timeout_ms: 7 }), "/nodes/0/wait/timeout_ms", "unknown_field"],
    [wait({ signal: "with space" }), "/nodes/0/wait/signal", "invalid_id"],
    [wait({ signal: "x", on_timeout: "approve" }), "/nodes/0/wait/on_timeout", "invalid_choice"],
    [wait({ until: "${1 +}" }), "/nodes/0/wait/until", "invalid_expression"],
  ];
  for (const [document, pointer, code] of cases) assertRefused(await put("workflows", document), [[pointer, code]]);
});

test("a workflow_call is the only step of its task, and refers to an existing workflow", async () => {
  const child = oneTask([set({ a: 1 })]);
  await curfew.store(child);
  const call = { kind: "workflow_call", implementation: { workflow_id: child.id } };
  const alone = "workflow_call_not_alone";
  assertRefused(await put("workflows", oneTask([set({ a: 1 }), { action: call }])), [["/tasks/0/steps/1", alone]]);
  assertRefused(await put("workflows", oneTask([{ action: call, condition: "true" }])), [["/tasks/0/steps/0", alone]]);
  assertRefused(await put("workflows", oneTask([{ action: call, output_mapping: { "output.x": 1 } }])), [["/tasks/0/steps/0", alone]]);

  // The same by reference, from the document and from the catalogue.
  const named = { id: freshId("a"), ...call };
  const byReference = oneTask([set({ a: 1 }), { action_id: named.id }]);
  assertRefused(await put("workflows", { ...byReference, actions: [named] }), [["/tasks/0/steps/1", alone]]);
  assert.equal((await put("actions", named)).status, 201);
  assertRefused(await put("workflows", byReference), [["/tasks/0/steps/1", alone]]);
  assertRefused(await put("tasks", { id: freshId("t"), steps: [set({ a: 1 }), { action_id: named.id }] }), [["/steps/1", alone]]);

  const unknown = { kind: "workflow_call", implementation: { workflow_id: freshId("missing") } };
  const response = await put("workflows", oneTask([{ action: unknown }]));
  assert.equal(response.status, 422, response.text);
  assert.equal(response.json.error.details[0].code, "unknown_reference");
});

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).reverse().map(([key, inner]) => [key, reversed(inner)]));
}

test("one mistake is one problem, and says what to write", async () => {
  const chain = (more: object, wait: object = {}) => ({
    nodes: [{ id: "a" }, { id: "b", ...wait }],
    transitions: [{ from_node_id: "a", to_node_id: "b", ...more }],
  });
  for (const [document, pointer, message] of [
    [chain({ condition: "${input.x > 1}" }), "/transitions/0/condition", /^leave out \$\{\}.*write "input.x > 1"$/],
    [chain({ to_node_id: "c" }), "/transitions/0/to_node_id", /no node is named "c"/],
    [chain({ spawn_count: -1 }), "/transitions/0/spawn_count", /must not be negative/],
    [chain({}, { wait: { sleep: "-5s" } }), "/nodes/1/wait/sleep", /must not be negative/],
  ] as const) {
    const answer = await curfew.api("PUT", "/v1/workflows/one-mistake", document);
    assert.equal(answer.status, 422, answer.text);
    const details: { pointer: string; message: string }[] = answer.json.error.details;
    assert.equal(details.length, 1, answer.text);
    assert.equal(details[0]?.pointer, pointer);
    assert.match(details[0]?.message ?? "", message);
  }
});
