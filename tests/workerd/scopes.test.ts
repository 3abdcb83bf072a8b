// Credentials that are bound to workflows: what they reach, and that nothing else is shown to them or changed by them.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { callWorkflow, childRunId, freshId, workflow, type WorkflowDocument } from "./document-builders.ts";
import { startCurfew, type ApiResponse, type Curfew } from "./harness.ts";
import { gateView, runView } from "./index-rows.ts";
import { until } from "./poll.ts";
import type { GateView, RunView } from "./api-types.ts";

const ROOT = "root-token-0123456789";
/** Reaches the workflows whose id begins with `mine-`, and `shared`. */
const MINE = "mine-token-0123456789";
/** Reaches exactly one workflow. */
const ONE = "one-token-0123456789";
const tokens = {
  [ROOT]: { name: "root", roles: ["admin"] },
  [MINE]: { name: "mine", roles: ["admin"], workflows: ["mine-*", "shared"] },
  [ONE]: { name: "one", roles: ["admin"], workflows: ["mine-one"] },
};

let curfew: Curfew;
before(async () => {
  curfew = await startCurfew({ vars: { CURFEW_TOKENS: JSON.stringify(tokens) } });
});
after(() => curfew.dispose());

const assertForbidden = (response: ApiResponse, what: string): void => {
  assert.equal(response.status, 403, `${what}: ${response.text}`);
  assert.equal(response.json.error.code, "forbidden", what);
};

const mine = (document: WorkflowDocument): WorkflowDocument => ({ ...document, id: `mine-${document.id}` });
const gated = (): WorkflowDocument => workflow({ nodes: [{ id: "ask", gate: { prompt: "the price of silence" } }], timeout: "5m", tags: ["secret-tag"] });

async function store(document: WorkflowDocument, token = ROOT): Promise<WorkflowDocument> {
  const response = await curfew.api("PUT", `/v1/workflows/${document.id}`, document, token);
  assert.equal(response.status, 201, response.text);
  return document;
}

async function start(workflowId: string, body: object = {}, token = ROOT): Promise<string> {
  const response = await curfew.api("POST", `/v1/workflows/${workflowId}/runs`, body, token);
  assert.equal(response.status, 201, response.text);
  return response.json.id;
}

const read = async (runId: string): Promise<RunView> => (await curfew.api("GET", `/v1/runs/${runId}`, undefined, ROOT)).json;

/** Follows the cursors of a list; its pages may be short. */
async function all<T = { id: string }>(path: string, token: string): Promise<T[]> {
  const items: T[] = [];
  for (let cursor = ""; ; ) {
    const response = await curfew.api("GET", `${path}${path.includes("?") ? "&" : "?"}limit=1000${cursor && `&cursor=${encodeURIComponent(cursor)}`}`, undefined, token);
    assert.equal(response.status, 200, response.text);
    items.push(...response.json.items);
    if (response.json.next_cursor === null) return items;
    cursor = response.json.next_cursor;
  }
}

/** Waits until the index has all of the runs. */
const indexed = (...ids: string[]) =>
  until(`${ids.join(", ")} in the index`, async () => {
    const listed = (await all("/v1/runs", ROOT)).map(({ id }) => id);
    return ids.every((id) => listed.includes(id));
  });

const READS = ["", "?wait_ms=50", "/tokens", "/events", "/timeouts", "/timeouts/1", "/deliverable", "/resume", "/notifications"];
const CONTROLS: [name: string, body: unknown][] = [
  ["cancel", {}],
  ["pause", {}],
  ["resume", {}],
  ["extend", { by_ms: 60_000 }],
  ["retry", { mode: "retry_step" }],
  ["retry", { mode: "retry_step", version: 9 }],
  ["restart", {}],
  ["restart", { version: 9 }],
  ["signals/go", { n: 1 }],
  ["gates/g1", { choice: "approve" }],
  ["gates/g99", { choice: "approve" }],
];

test("every route refuses what is outside", async () => {
  const other = await store(gated());
  const id = await start(other.id, { input: { word: "hush" } });
  const before = await read(id);
  assert.equal(before.status, "waiting");
  const refused: [method: string, path: string, body?: unknown][] = [
    ["GET", `/v1/workflows/${other.id}`],
    ["GET", `/v1/workflows/${other.id}?version=1`],
    ["PUT", `/v1/workflows/${other.id}`, { ...other, tags: ["changed"] }],
    ["POST", `/v1/workflows/${other.id}/runs`, {}],
    ["GET", `/v1/runs?workflow=${other.id}`],
    // A workflow that does not exist is outside as well.
    ["GET", "/v1/workflows/never-stored"],
    ["POST", "/v1/workflows/never-stored/runs", {}],
    ["GET", "/v1/tasks"],
    ["GET", "/v1/tasks/mine-task"],
    ["PUT", "/v1/tasks/mine-task", { steps: [] }],
    ["GET", "/v1/actions"],
    ["GET", "/v1/actions/mine-action"],
    ["PUT", "/v1/actions/mine-action", { kind: "assert", implementation: { condition: "true" } }],
    ["GET", "/v1/breakers"],
    ["POST", "/v1/breakers/mine-key/reset"],
    ...READS.map((path): [string, string] => ["GET", `/v1/runs/${id}${path}`]),
    ...CONTROLS.map(([name, body]): [string, string, unknown] => ["POST", `/v1/runs/${id}/${name}`, body]),
  ];
  for (const token of [MINE, ONE]) {
    for (const [method, path, body] of refused) {
      const response = await curfew.api(method, path, body, token);
      assertForbidden(response, `${method} ${path}`);
      for (const word of ["hush", "silence", "secret-tag", "waiting"]) assert.ok(!response.text.includes(word), response.text);
    }
  }
  const lines = await fetch(`${curfew.url}/v1/runs/${id}/timeouts`, { headers: { authorization: `Bearer ${MINE}`, accept: "application/x-ndjson" } });
  assert.equal(lines.status, 403, await lines.text());
  const { duration_ms: _, ...after } = await read(id);
  const { duration_ms: __, ...unchanged } = before;
  assert.deepEqual(after, unchanged, "nothing has changed");
  assert.equal((await curfew.api("GET", `/v1/workflows/${other.id}`, undefined, ROOT)).json.version, 1);
});

test("an ended run outside is refused as well", async () => {
  const other = await store(workflow({ nodes: [{ id: "a" }] }));
  const id = await start(other.id);
  await until("the end", async () => (await read(id)).status === "completed");
  for (const path of READS) assertForbidden(await curfew.api("GET", `/v1/runs/${id}${path}`, undefined, MINE), path);
  for (const [name, body] of CONTROLS) assertForbidden(await curfew.api("POST", `/v1/runs/${id}/${name}`, body, MINE), name);
  assert.equal((await read(id)).attempt, 1);
});

test("a run that does not exist is a 404", async () => {
  for (const path of READS) assert.equal((await curfew.api("GET", `/v1/runs/never-started${path}`, undefined, MINE)).status, 404, path);
  for (const [name, body] of CONTROLS) assert.equal((await curfew.api("POST", `/v1/runs/never-started/${name}`, body, MINE)).status, 404, name);
});

test("within its workflows a credential does what its roles allow", async () => {
  const { nodes, ...rest } = gated();
  const heard = { id: "heard", wait: { signal: "go" } };
  const transitions = [{ from_node_id: "ask", to_node_id: "heard" }];
  const document = await store(mine({ ...rest, nodes: [...nodes, heard], transitions }), MINE);
  assert.equal((await curfew.api("PUT", `/v1/workflows/${document.id}`, document, MINE)).status, 200);
  assert.equal((await curfew.api("GET", `/v1/workflows/${document.id}`, undefined, MINE)).status, 200);
  const id = await start(document.id, {}, MINE);
  for (const path of ["", "/tokens", "/events", "/timeouts", "/resume"]) {
    assert.equal((await curfew.api("GET", `/v1/runs/${id}${path}`, undefined, MINE)).status, 200, path);
  }
  for (const [name, body] of [["pause", {}], ["resume", {}], ["extend", { by: "1m" }], ["signals/go", {}], ["gates/g1", { choice: "approve" }]] as const) {
    const response = await curfew.api("POST", `/v1/runs/${id}/${name}`, body, MINE);
    assert.equal(response.status, 200, `${name}: ${response.text}`);
  }
  assert.equal((await read(id)).status, "completed");
  // The pattern of ONE is another one.
  assertForbidden(await curfew.api("GET", `/v1/runs/${id}`, undefined, ONE), "mine-*");
});

test("a run id outside is not shown by a start", async () => {
  const [other, document] = [await store(gated()), await store(mine(gated()))];
  const taken = await start(other.id, { run_id: freshId("taken"), input: { word: "hush" } });
  const again = (token: string) => curfew.api("POST", `/v1/workflows/${document.id}/runs`, { run_id: taken }, token);
  assertForbidden(await again(MINE), "the id is taken");
  const conflict = await again(ROOT);
  assert.deepEqual([conflict.status, conflict.json.error.code], [409, "run_exists"]);
  // Within its workflows a credential gets the same answers as others.
  const own = await start(document.id, { run_id: freshId("own") }, ROOT);
  const same = await curfew.api("POST", `/v1/workflows/${document.id}/runs`, { run_id: own }, MINE);
  assert.equal(same.status, 200, same.text);
  assert.equal(same.json.started_by, "root", "a repeated start changes nothing");
  const different = await curfew.api("POST", `/v1/workflows/${document.id}/runs`, { run_id: own, input: { x: 1 } }, MINE);
  assert.deepEqual([different.status, different.json.error.code], [409, "run_exists"]);
});

test("lists leave out what is outside", async () => {
  // Its clock runs at the gate, or it would not be listed by the time that is left.
  const waiting = () => ({ ...gated(), clock: "runs" });
  const [other, document] = [await store(waiting()), await store(mine(waiting()))];
  const theirs = await start(other.id);
  const ours = await start(document.id);
  await indexed(theirs, ours);
  const filters = ["", "?tag=secret-tag", "?status=waiting", "?status=waiting&tag=secret-tag", "?sort=remaining", `?id_prefix=${ours.slice(0, 1)}`, "?since=1"];
  for (const filter of filters) {
    const listed = await all<RunView>(`/v1/runs${filter}`, MINE);
    assert.ok(listed.some(({ id }) => id === ours), filter);
    assert.ok(listed.every(({ workflow_id }) => workflow_id.startsWith("mine-")), filter);
  }
  assert.deepEqual((await all<RunView>(`/v1/runs?workflow=${document.id}`, MINE)).map(({ id }) => id), [ours]);
  const workflows = (await all("/v1/workflows", MINE)).map(({ id }) => id);
  assert.ok(workflows.includes(document.id) && workflows.every((id) => id.startsWith("mine-")), workflows.join());
  assert.ok((await all("/v1/workflows", ROOT)).some(({ id }) => id === other.id));
  const gates = await until("the gate in the list", async () => {
    const listed = await all<GateView>("/v1/gates", MINE);
    return listed.some(({ run_id }) => run_id === ours) && listed;
  });
  for (const { run_id } of gates) assert.ok((await read(run_id)).workflow_id.startsWith("mine-"), run_id);
  assert.ok((await all<GateView>("/v1/gates", ROOT)).some(({ run_id }) => run_id === theirs));
  const ofRun = async (run: string, token: string) => (await all<GateView>(`/v1/gates?run=${run}`, token)).map(({ run_id }) => run_id);
  assert.deepEqual([await ofRun(ours, MINE), await ofRun(theirs, MINE), await ofRun(theirs, ROOT)], [[ours], [], [theirs]]);
});

test("a credential for one workflow lists its runs", async () => {
  await store({ ...gated(), id: "mine-one" });
  const other = await store(mine(gated()));
  const ours = await start("mine-one");
  const theirs = await start(other.id);
  await indexed(ours, theirs);
  for (const filter of ["", "?status=waiting", "?tag=secret-tag", "?workflow=mine-one"]) {
    assert.deepEqual((await all(`/v1/runs${filter}`, ONE)).map(({ id }) => id), [ours], filter);
  }
  assertForbidden(await curfew.api("GET", `/v1/runs?workflow=${other.id}`, undefined, ONE), "another workflow");
  assert.deepEqual((await all("/v1/workflows", ONE)).map(({ id }) => id), ["mine-one"]);
});

test("children are reached by their own workflow", async () => {
  const child = await store(gated());
  const parent = await store(mine(callWorkflow(child)));
  const id = await start(parent.id, {}, MINE);
  await until("the child", async () => (await read(childRunId(id))).status === "waiting");
  assert.equal((await curfew.api("GET", `/v1/runs/${id}`, undefined, MINE)).status, 200);
  assertForbidden(await curfew.api("GET", `/v1/runs/${childRunId(id)}`, undefined, MINE), "the child");
  assertForbidden(await curfew.api("POST", `/v1/runs/${childRunId(id)}/gates/g1`, { choice: "approve" }, MINE), "its gate");
  await indexed(childRunId(id));
  assert.deepEqual(await all(`/v1/runs?parent=${id}`, MINE), []);
  assert.deepEqual((await all(`/v1/runs?parent=${id}`, ROOT)).map((run) => run.id), [childRunId(id)]);
  // The parent is within: cancelling it ends its child as well.
  assert.equal((await curfew.api("POST", `/v1/runs/${id}/cancel`, {}, MINE)).status, 200);
  await until("the end of the child", async () => (await read(childRunId(id))).status === "cancelled");
});

test("a document may not call a workflow outside", async () => {
  const child = await store(gated());
  const direct = mine(callWorkflow(child));
  const byAction = mine(workflow({ nodes: [{ id: "a", action_id: "call" }], actions: [{ id: "call", kind: "workflow_call", implementation: { workflow_id: child.id } }] }));
  for (const document of [direct, byAction, mine(callWorkflow({ id: "never-stored" }))]) {
    assertForbidden(await curfew.api("PUT", `/v1/workflows/${document.id}`, document, MINE), document.id);
    assert.equal((await curfew.api("GET", `/v1/workflows/${document.id}`, undefined, ROOT)).status, 404);
  }
  const through = await store(direct);
  const indirect = mine(callWorkflow(through));
  assertForbidden(await curfew.api("PUT", `/v1/workflows/${indirect.id}`, indirect, MINE), "through another");
  const leaf = await store(mine(gated()), MINE);
  await store(mine(callWorkflow(leaf)), MINE);
});

test("an event that starts a workflow outside is refused and starts nothing", async () => {
  const event = freshId("paid");
  const triggered = (): WorkflowDocument => workflow({ nodes: [{ id: "heard" }], trigger: { event } });
  const document = await store(mine(triggered()), MINE);
  const publish = (token: string) => curfew.api("POST", `/v1/events/${event}`, { n: 1 }, token);
  const first = await publish(MINE);
  assert.equal(first.status, 202, first.text);
  assert.deepEqual(first.json.runs.map((run: RunView) => run.workflow_id), [document.id]);
  await store(triggered());
  assertForbidden(await publish(MINE), "the event starts others, too");
  const both = await publish(ROOT);
  assert.equal(both.json.runs.length, 2, both.text);
  const ids = [...first.json.runs, ...both.json.runs].map((run: RunView) => run.id);
  await indexed(...ids);
  assert.equal((await all(`/v1/runs?workflow=${document.id}`, ROOT)).length, 2, "the refused one started nothing");
  const unknown = await curfew.api("POST", `/v1/events/${freshId("unheard")}`, {}, MINE);
  assert.equal(unknown.status, 200, unknown.text);
});

test("lists for some workflows read a bounded number of rows", async () => {
  const database = await curfew.miniflare.getD1Database("DB", "curfew");
  const numbers = "WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < 2999)";
  // Of a hundred rows one is of a workflow that is reached. All are older than those of the other tests.
  const view = runView({ id: "printf('row-%05d', n)", workflow_id: "iif(n % 100 = 7, 'mine-row', 'row')", status: "'completed'", started_at: "1000 + n" });
  await database.exec(`${numbers} INSERT INTO runs (id, workflow_id, version, status, tags, started_at, revision, summary, updated_at) SELECT printf('row-%05d', n), iif(n % 100 = 7, 'mine-row', 'row'), 1, 'completed', '[]', 1000 + n, 1, ${view}, 9000000000000 FROM numbers`);
  await database.exec(`${numbers} INSERT INTO gates (run_id, id, status, opened_at, view) SELECT printf('row-%05d', n), 'g1', 'open', 1000 + n, ${gateView("printf('row-%05d', n)")} FROM numbers`);
  const rowsRead = (response: ApiResponse): number => Number(/rows_read=(\d+)/.exec(response.headers.get("x-curfew-bill") ?? "")?.[1] ?? Number.NaN);
  const expected = Array.from({ length: 30 }, (_, index) => `row-${String(index * 100 + 7).padStart(5, "0")}`);
  for (const [path, idOf, order] of [
    ["/v1/runs?until=5000", ({ id }: any) => id, expected.toReversed()],
    ["/v1/gates?", ({ run_id }: any) => run_id, expected],
  ] as const) {
    const found: string[] = [];
    let pages = 0;
    for (let cursor = ""; ; pages += 1) {
      const response = await curfew.api("GET", `${path}&limit=10${cursor && `&cursor=${encodeURIComponent(cursor)}`}`, undefined, MINE);
      assert.equal(response.status, 200, response.text);
      assert.ok(rowsRead(response) <= 1_000 && response.json.items.length <= 10, `${path}: ${rowsRead(response)} rows read`);
      found.push(...response.json.items.map(idOf).filter((id: string) => id.startsWith("row-")));
      cursor = response.json.next_cursor;
      if (cursor === null) break;
    }
    assert.deepEqual(found, order, path);
    assert.ok(pages > 3, `${pages} pages: most rows are outside`);
  }
});
