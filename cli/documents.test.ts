// Files of documents: their kinds, their order, and files that are none.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { DocumentKind } from "../client/index.ts";
import { checkUnique, childrenOf, documentsOf, inOrder, isSelfContained, type FileDocument } from "./documents.ts";

const directory = mkdtempSync(join(tmpdir(), "curfew-documents-"));
after(() => rmSync(directory, { recursive: true }));

function file(name: string, content: unknown): string {
  const path = join(directory, name);
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
  return path;
}

const kindsOf = async (path: string, kind?: DocumentKind) => (await documentsOf(path, kind)).map((one) => `${one.kind} ${one.id}`);

test("the kind follows from the content, from $schema, or is given", async () => {
  assert.deepEqual(await kindsOf(file("w.json", { id: "w", nodes: [] })), ["workflows w"]);
  assert.deepEqual(await kindsOf(file("t.json", { id: "t", steps: [] })), ["tasks t"]);
  assert.deepEqual(await kindsOf(file("a.json", { id: "a", kind: "assert" })), ["actions a"]);
  assert.deepEqual(await kindsOf(file("s.json", { id: "s", $schema: "http://localhost:8787/schema/task.json" })), ["tasks s"]);
  assert.deepEqual(await kindsOf(file("k.json", { id: "k" }), "actions"), ["actions k"]);
  assert.deepEqual(await kindsOf(file("l.json", [{ id: "t", steps: [] }, { id: "w", nodes: [] }])), ["tasks t", "workflows w"]);
});

test("modules are imported and stored as their JSON", async () => {
  const module = file("m.mjs", `export default { id: "m", nodes: [], left_out: undefined };`);
  const [document] = await documentsOf(module, undefined);
  assert.deepEqual(document!.document, { id: "m", nodes: [] });
  assert.deepEqual(await kindsOf(file("m.ts", `const id: string = "typed"; export default { id, nodes: [] as unknown[] };`)), ["workflows typed"]);
});

test("a module may leave a timer or a connection open", async () => {
  const startedAt = performance.now();
  assert.deepEqual(await kindsOf(file("open.mjs", "setInterval(() => {}, 1_000); export default { id: 'open', nodes: [] };")), ["workflows open"]);
  assert.ok(performance.now() - startedAt < 20_000, "it is not waited for");
});

test("what a module imports is reported, also of a module that fails, without packages", async () => {
  const lib = file("lib.mjs", "export const id = 'm';");
  file("broken.mjs", "export const x = ;");
  for (const [text, expected] of [
    ["import { id } from './lib.mjs'; import 'node:fs'; export default { id, nodes: [] };", [lib]],
    ["import './broken.mjs'; export default {};", [join(directory, "broken.mjs")]],
    ["import './missing.mjs'; export default {};", [join(directory, "missing.mjs")]],
  ] as const) {
    const imported: string[] = [];
    await documentsOf(file("importing.mjs", text), undefined, { onImport: (one) => imported.push(one) }).catch(() => {});
    assert.deepEqual(imported, expected);
  }
});

for (const [name, content, message] of [
  ["broken.json", "{", /is not JSON/],
  ["rounded.json", '{"id": "w", "nodes": [], "limit": 9007199254740993}', /rounded\.json has the number 9007199254740993, which cannot be sent exactly/],
  ["none.json", { id: "x" }, /neither a workflow .* name it with --kind/],
  ["no-id.json", { nodes: [] }, /has no "id"/],
  ["text.json", '"text"', /is no document, but a string/],
  ["null.json", "null", /but null/],
  ["empty.json", [], /an empty list/],
  ["nested.json", [[1]], /nested.json, item 0 is no document, but a list/],
  ["large.json", `{"id": "x", "nodes": [], "description": "${"x".repeat(1_048_576)}"}`, /has 10486\d\d bytes; the API takes 1 MiB/],
  ["no-default.mjs", "export const x = 1;", /has no default export/],
  ["exit.mjs", "process.exit(0); export default { id: 'x', nodes: [] };", /exit\.mjs cannot be imported: it ended the process$/],
  ["exit-3.mjs", "process.exit(3); export default { id: 'x', nodes: [] };", /exit-3\.mjs cannot be imported: its process ended \(exit code 3\)$/],
  ["big.mjs", "export default { id: 'x', nodes: [10n] };", /big\.mjs cannot be imported: Do not know how to serialize a BigInt$/],
  ["function.mjs", "export default () => {};", /is no document, but a function/],
  ["throws.mjs", "throw new Error('at the top');", /cannot be imported: at the top/],
] as const) {
  test(`refused: ${name}`, async () => assert.rejects(documentsOf(file(name, content), undefined), message));
}

const document = (kind: DocumentKind, id: string, parts: object = {}): FileDocument => ({ file: `${id}.json`, kind, id, document: { id, ...parts } });

test("children come before parents, the rest stays in its order", () => {
  const parent = document("workflows", "parent", { nodes: [{ id: "call", workflow_id: "child", compensate: { action_id: "undo" } }] });
  const child = document("workflows", "child", { nodes: [{ id: "n", task_id: "task" }] });
  const task = document("tasks", "task", { steps: [{ action_id: "act" }] });
  const [act, undo, other] = [document("actions", "act"), document("actions", "undo"), document("workflows", "other")];
  const all = [parent, other, child, task, act, undo];
  assert.deepEqual(inOrder(all).map(({ id }) => id), ["act", "task", "child", "undo", "parent", "other"]);
  assert.deepEqual(childrenOf(parent, all), [child, undo]);
});

test("workflows that call each other have an order all the same", () => {
  const [one, two] = [document("workflows", "one", { nodes: [{ workflow_id: "two" }] }), document("workflows", "two", { nodes: [{ workflow_id: "one" }] })];
  assert.deepEqual(inOrder([one, two]).map(({ id }) => id).sort(), ["one", "two"]);
});

test("a workflow with its tasks and actions refers to nothing outside", () => {
  const steps = [{ action_id: "act" }];
  const whole = { nodes: [{ id: "n", task_id: "task" }], tasks: [{ id: "task", steps }], actions: [{ id: "act", kind: "assert" }] };
  assert.equal(isSelfContained(document("workflows", "w", whole)), true);
  for (const missing of ["tasks", "actions"]) assert.equal(isSelfContained(document("workflows", "w", { ...whole, [missing]: [] })), false);
  assert.equal(isSelfContained(document("workflows", "w", { nodes: [{ id: "n", workflow_id: "other" }] })), false);
});

test("an id in two files is refused, the same id of two kinds is not", () => {
  assert.throws(() => checkUnique([document("tasks", "x"), { ...document("tasks", "x"), file: "y.json" }]), /task x is in x.json and in y.json/);
  checkUnique([document("tasks", "x"), document("actions", "x")]);
});
