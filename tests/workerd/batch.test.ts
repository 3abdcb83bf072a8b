// POST /v1/runs:batch: many starts in one request, each with its own outcome.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { freshId, oneTask, set, workflow, type WorkflowDocument } from "./document-builders.ts";
import { startCurfew, type ApiResponse, type Curfew } from "./harness.ts";

const ROOT = "root-token-0123456789";
const MINE = "mine-token-0123456789";
const READER = "read-token-0123456789";
const tokens = {
  [ROOT]: { name: "root", roles: ["admin"] },
  [MINE]: { name: "mine", roles: ["start"], workflows: ["mine-*"] },
  [READER]: { name: "reader", roles: ["read"] },
};

let curfew: Curfew;
before(async () => {
  curfew = await startCurfew({ vars: { CURFEW_TOKENS: JSON.stringify(tokens) } });
});
after(() => curfew.dispose());

async function store(document: WorkflowDocument): Promise<WorkflowDocument> {
  const response = await curfew.api("PUT", `/v1/workflows/${document.id}`, document, ROOT);
  assert.equal(response.status, 201, response.text);
  return document;
}
const waiting = (more: object = {}): WorkflowDocument => workflow({ nodes: [{ id: "w", wait: { signal: "go" } }], timeout: "5m", ...more });

const start = (items: unknown, token = ROOT): Promise<ApiResponse> => curfew.api("POST", "/v1/runs:batch", { items }, token);

async function outcomes(items: unknown[], token = ROOT): Promise<any[]> {
  const response = await start(items, token);
  assert.equal(response.status, 200, response.text);
  assert.equal(response.json.items.length, items.length);
  return response.json.items;
}
const statuses = (items: { status: number }[]) => items.map(({ status }) => status);
const run = async (id: string) => (await curfew.api("GET", `/v1/runs/${id}`, undefined, ROOT)).json;

test("100 starts, some of them wrong: each has its own outcome, in order", async () => {
  const document = await store(waiting({ input_schema: { type: "object", properties: { n: { type: "integer" } } } }));
  const prefix = freshId("many");
  const wrong: Record<number, [item: object, status: number, code: string, pointer?: string]> = {
    3: [{ workflow_id: "never-stored" }, 404, "not_found"],
    17: [{ workflow_id: document.id, input: { n: "seventeen" } }, 422, "invalid_input", "/input/n"],
    18: [{ workflow_id: document.id, inputs: {} }, 400, "invalid_request", "/inputs"],
    40: [{ input: {} }, 422, "invalid_request", "/workflow_id"],
    41: [{ workflow_id: document.id, version: 7 }, 404, "not_found"],
    42: [{ workflow_id: document.id, timeout_ms: -5 }, 422, "invalid_request", "/timeout_ms"],
    43: [{ workflow_id: document.id, run_id: "a b" }, 422, "invalid_request", "/run_id"],
    99: [[] as object, 422, "invalid_request", ""],
  };
  const items = Array.from({ length: 100 }, (_, n) => wrong[n]?.[0] ?? { workflow_id: document.id, run_id: `${prefix}-${n}`, input: { n } });
  const answered = await outcomes(items);
  for (const [n, outcome] of answered.entries()) {
    const expected = wrong[n];
    if (expected) {
      const { status, error, ...rest } = outcome;
      assert.deepEqual([status, error.code, error.pointer ?? undefined, rest], [expected[1], expected[2], expected[3], {}], `item ${n}: ${JSON.stringify(outcome)}`);
    } else {
      assert.deepEqual([outcome.status, outcome.run.id, outcome.run.status, outcome.run.input], [201, `${prefix}-${n}`, "waiting", { n }], `item ${n}`);
    }
  }
  assert.equal((await run(`${prefix}-98`)).started_by, "root");
  const { duration_ms: _, ...alone } = (await curfew.api("POST", `/v1/workflows/${document.id}/runs`, items[0], ROOT)).json.error ?? {};
  assert.equal(alone.code, "invalid_request", "workflow_id stands in the path of a start by itself");
});

test("the same run id twice behaves as two requests in a row", async () => {
  const document = await store(waiting());
  const id = freshId("twice");
  const same = { workflow_id: document.id, run_id: id, input: { n: 1 } };
  const items = [same, { workflow_id: document.id }, same, { ...same, input: { n: 2 } }, same];
  const answered = await outcomes(items);
  assert.deepEqual(statuses(answered), [201, 201, 200, 409, 200]);
  assert.equal(answered[3].error.code, "run_exists");
  assert.notEqual(answered[1].run.id, id);
  assert.deepEqual(statuses(await outcomes([same])), [200], "and so does the same batch again");
});

test("versions, limits and results", async () => {
  const document = await store(oneTask([set({ n: "${input.n}" })]));
  await curfew.api("PUT", `/v1/workflows/${document.id}`, { ...document, tags: ["second"] }, ROOT);
  const item = { workflow_id: document.id, input: { n: 4 } };
  const answered = await outcomes([{ ...item, version: 1 }, item, { ...item, timeout: "7s" }, { ...item, timeout_ms: 8_000 }]);
  assert.deepEqual(statuses(answered), [201, 201, 201, 201]);
  assert.deepEqual(answered.map(({ run }) => [run.version, run.timeout_ms]), [[1, 30_000], [2, 30_000], [2, 7_000], [2, 8_000]]);
});

test("a batch that is none is refused as a whole", async () => {
  const document = await store(waiting());
  const item = { workflow_id: document.id };
  for (const [items, status, part] of [
    [[], 422, "0 starts; a batch has 1 to 100 of them"],
    [Array.from({ length: 101 }, () => item), 422, "101 starts; a batch has 1 to 100 of them"],
    ["x", 422, "expected an array"],
    [undefined, 422, "\"items\" is required"],
  ] as [unknown, number, string][]) {
    const response = await start(items);
    assert.equal(response.status, status, response.text);
    assert.ok(response.json.error.message.includes(part), response.text);
  }
  const unknown = await curfew.api("POST", "/v1/runs:batch", { items: [item], wait: 1 }, ROOT);
  assert.equal(unknown.status, 400, unknown.text);
  const large = await start([{ ...item, input: { text: "x".repeat(1 << 20) } }]);
  assert.equal(large.status, 413, large.text);
  assert.equal((await start([item], READER)).status, 403);
  assert.equal((await curfew.api("POST", "/v1/runs:explode", {}, ROOT)).status, 404);
});

test("a workflow outside of the credential's is a 403 in its item", async () => {
  const other = await store(waiting());
  const mine = await store({ ...waiting(), id: freshId("mine") });
  const answered = await outcomes([{ workflow_id: other.id }, { workflow_id: mine.id }, { workflow_id: "never-stored" }], MINE);
  assert.deepEqual(statuses(answered), [403, 201, 403]);
  assert.equal(answered[0].error.code, "forbidden");
  assert.equal(answered[1].run.started_by, "mine");
});
