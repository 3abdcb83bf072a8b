// Bulk operations: one control for many runs, in the background.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { check, freshId, oneTask, workflow, type WorkflowDocument } from "./document-builders.ts";
import { startCurfew, type Curfew } from "./harness.ts";
import { until } from "./poll.ts";

const ROOT = "root-token-0123456789";
const MINE = "mine-token-0123456789";
const OTHER = "other-token-0123456789";
const STARTER = "start-token-0123456789";
const tokens = {
  [ROOT]: { name: "root", roles: ["admin"] },
  [MINE]: { name: "mine", roles: ["operate"], workflows: ["mine-*"] },
  [OTHER]: { name: "other", roles: ["operate"], workflows: ["mine-*"] },
  [STARTER]: { name: "starter", roles: ["start"] },
};
const vars = { CURFEW_TOKENS: JSON.stringify(tokens), CURFEW_SWEEP_LATE_MS: "0" };

let curfew: Curfew;
before(async () => {
  curfew = await startCurfew({ vars });
});
after(() => curfew.dispose());

interface OperationView {
  id: string;
  kind: string;
  status: string;
  created_at: number;
  created_by: string;
  ended_at: number | null;
  total: number | null;
  done: number;
  failed: number;
  skipped: number;
  errors: { run_id: string; code: string; message: string }[];
}

const waiting = (more: object = {}): WorkflowDocument => workflow({ nodes: [{ id: "w", wait: { signal: "go" } }], timeout: "5m", ...more });

async function store(document: WorkflowDocument, at = curfew): Promise<WorkflowDocument> {
  const response = await at.api("PUT", `/v1/workflows/${document.id}`, document, ROOT);
  assert.equal(response.status, 201, response.text);
  return document;
}

/** Starts runs and returns their ids. */
async function start(workflowId: string, count: number, at = curfew): Promise<string[]> {
  const ids: string[] = [];
  while (ids.length < count) {
    const items = Array.from({ length: Math.min(100, count - ids.length) }, () => ({ workflow_id: workflowId }));
    const response = await at.api("POST", "/v1/runs:batch", { items }, ROOT);
    assert.equal(response.status, 200, response.text);
    ids.push(...response.json.items.map(({ run }: { run: { id: string } }) => run.id));
  }
  return ids;
}

const indexed = (workflowId: string, status: string, count: number) =>
  until(`${count} runs of ${workflowId} that are ${status}`, async () => (await curfew.sql("SELECT count(*) AS n FROM runs WHERE workflow_id = ? AND status = ?", [workflowId, status]))[0].n === count);

const run = async (id: string, at = curfew) => (await at.api("GET", `/v1/runs/${id}`, undefined, ROOT)).json;
const statuses = async (ids: string[], at = curfew): Promise<Record<string, number>> => {
  const counts: Record<string, number> = {};
  for (const id of ids) {
    const { status } = await run(id, at);
    counts[status] = (counts[status] ?? 0) + 1;
  }
  return counts;
};

async function begin(kind: string, body: object, token = ROOT, at = curfew): Promise<string> {
  const response = await at.api("POST", `/v1/runs:${kind}`, body, token);
  assert.equal(response.status, 202, response.text);
  assert.deepEqual(Object.keys(response.json), ["operation_id"]);
  return response.json.operation_id;
}

const read = async (id: string, at = curfew): Promise<OperationView> => (await at.api("GET", `/v1/operations/${id}`, undefined, ROOT)).json;
const completed = (id: string, at = curfew) =>
  until(`the end of operation ${id}`, async () => {
    const view = await read(id, at);
    return view.status === "completed" && view;
  }, 60_000);
const operate = async (kind: string, body: object, token = ROOT): Promise<OperationView> => completed(await begin(kind, body, token));
const counts = ({ total, done, failed, skipped }: OperationView) => ({ total, done, failed, skipped });

const sweep = async (at = curfew) => {
  const response = await fetch(`${at.url}/cdn-cgi/local/scheduled?cron=*+*+*+*+*`);
  assert.equal(await response.text(), "ok");
};

test("300 runs are cancelled by a filter, others are untouched", async () => {
  const [document, other] = [await store(waiting()), await store(waiting())];
  const ids = await start(document.id, 300);
  const untouched = await start(other.id, 3);
  await indexed(document.id, "waiting", 300);
  const before = Date.now();
  const view = await operate("cancel", { filter: { workflow: document.id, status: ["waiting", "running"] }, with: { reason: "the shop is closed" } });
  assert.deepEqual(counts(view), { total: 300, done: 300, failed: 0, skipped: 0 });
  assert.deepEqual([view.kind, view.created_by, view.errors], ["cancel", "root", []]);
  assert.ok(view.created_at >= before - 1_000 && view.ended_at! >= view.created_at, JSON.stringify(view));
  assert.deepEqual(await statuses(ids), { cancelled: 300 });
  assert.deepEqual(await statuses(untouched), { waiting: 3 });
  const first = ids[0]!;
  assert.equal((await run(first)).reason, "the shop is closed");
  const events = (await curfew.api("GET", `/v1/runs/${first}/events?limit=1000`, undefined, ROOT)).json.items;
  assert.equal(events.find(({ kind }: { kind: string }) => kind === "run_cancelled").by, "root");
});

test("ids: unknown and repeated ones, ended runs", async () => {
  const document = await store(waiting());
  const ids = await start(document.id, 3);
  const ended = await curfew.api("POST", `/v1/runs/${ids[2]}/cancel`, {}, ROOT);
  assert.equal(ended.status, 200, ended.text);
  const view = await operate("extend", { ids: [ids[0], ids[1], ids[0], ids[2], "no-such-run"], with: { by_ms: 60_000 } });
  assert.deepEqual(counts(view), { total: 4, done: 2, failed: 1, skipped: 1 });
  assert.deepEqual(view.errors, [{ run_id: "no-such-run", code: "not_found", message: "the run does not exist" }]);
  for (const id of ids.slice(0, 2)) assert.equal((await run(id)).timeout_ms, 360_000);
});

test("an extension that an operation repeats counts once", async () => {
  const document = await store(waiting());
  const ids = await start(document.id, 2);
  const id = await begin("extend", { ids, with: { by: "1m" } });
  await completed(id);
  // As after a crash between the page and its row.
  await curfew.sql("UPDATE operations SET ended_at = NULL, total = 2, done = 0, updated_at = 0 WHERE id = ?", [id]);
  await sweep();
  assert.deepEqual(counts(await completed(id)), { total: 2, done: 2, failed: 0, skipped: 0 });
  for (const run_id of ids) assert.equal((await run(run_id)).timeout_ms, 360_000);
  await operate("extend", { ids, with: { by: "1m" } });
  for (const run_id of ids) assert.equal((await run(run_id)).timeout_ms, 420_000, "another operation counts again");
});

test("failed runs are retried, others skipped", async () => {
  const tag = freshId("tag");
  const document = await store(oneTask([check("false", "never")], { workflow: { tags: [tag] } }));
  const ids = await start(document.id, 4);
  const other = await store(waiting({ tags: [tag] }));
  const live = await start(other.id, 1);
  await indexed(document.id, "failed", 4);
  await indexed(other.id, "waiting", 1);
  const view = await operate("retry", { filter: { tag }, with: { mode: "retry_step" } });
  assert.deepEqual(counts(view), { total: 5, done: 4, failed: 0, skipped: 1 });
  for (const id of ids) {
    const events = (await curfew.api("GET", `/v1/runs/${id}/events?limit=1000`, undefined, ROOT)).json.items;
    assert.equal(events.filter(({ kind }: { kind: string }) => kind === "run_retried").length, 1);
  }
  assert.deepEqual(await statuses(live), { waiting: 1 });
});

test("pause and resume", async () => {
  const document = await store(waiting());
  const prefix = freshId("bulk");
  const ids = [`${prefix}-a`, `${prefix}-b`];
  for (const run_id of ids) await curfew.api("POST", `/v1/workflows/${document.id}/runs`, { run_id }, ROOT);
  await indexed(document.id, "waiting", 2);
  assert.deepEqual(counts(await operate("pause", { filter: { id_prefix: prefix } })), { total: 2, done: 2, failed: 0, skipped: 0 });
  assert.deepEqual(await statuses(ids), { paused: 2 });
  await curfew.api("POST", `/v1/runs/${ids[0]}/resume`, {}, ROOT);
  assert.deepEqual(counts(await operate("resume", { ids })), { total: 2, done: 1, failed: 0, skipped: 1 });
  assert.deepEqual(await statuses(ids), { waiting: 2 });
});

test("runs that start after the operation, or outside of its bounds, are not selected", async () => {
  const document = await store(waiting());
  const [id] = await start(document.id, 1);
  await indexed(document.id, "waiting", 1);
  const { started_at } = await run(id!);
  const early = await operate("cancel", { filter: { workflow: document.id, until: started_at - 1 } });
  assert.deepEqual(counts(early), { total: 0, done: 0, failed: 0, skipped: 0 });
  const late = await operate("cancel", { filter: { workflow: document.id, until: started_at + 86_400_000 } });
  assert.equal(late.done, 1);
});

test("a credential that is bound to workflows touches no others", async () => {
  const tag = freshId("tag");
  const [foreign, mine] = [await store(waiting({ tags: [tag] })), await store({ ...waiting({ tags: [tag] }), id: freshId("mine") })];
  const [theirs, own] = [await start(foreign.id, 2), await start(mine.id, 2)];
  await indexed(foreign.id, "waiting", 2);
  await indexed(mine.id, "waiting", 2);
  assert.deepEqual(counts(await operate("pause", { filter: { tag } }, MINE)), { total: 2, done: 2, failed: 0, skipped: 0 });
  const refused = await curfew.api("POST", "/v1/runs:cancel", { filter: { workflow: foreign.id } }, MINE);
  assert.equal(refused.status, 403, refused.text);
  const id = await begin("cancel", { ids: [...theirs, ...own] }, MINE);
  const view = await completed(id);
  assert.deepEqual(counts(view), { total: 4, done: 2, failed: 2, skipped: 0 });
  assert.deepEqual(view.errors.map(({ code }) => code), ["forbidden", "forbidden"]);
  assert.deepEqual([await statuses(theirs), await statuses(own)], [{ waiting: 2 }, { cancelled: 2 }]);
  const seen = async (token: string) => (await curfew.api("GET", `/v1/operations/${id}`, undefined, token)).status;
  assert.deepEqual([await seen(MINE), await seen(OTHER), await seen(ROOT), await seen(STARTER)], [200, 403, 200, 200]);
  assert.equal((await curfew.api("GET", "/v1/operations/never-made", undefined, ROOT)).status, 404);
});

test("what is refused, and nothing is stored for it", async () => {
  const stored = async () => (await curfew.sql("SELECT count(*) AS n FROM operations"))[0].n;
  const before = await stored();
  const refused: [kind: string, body: unknown, status: number, part: string][] = [
    ["cancel", {}, 422, "say which runs"],
    ["cancel", { filter: {}, ids: ["a"] }, 422, "say which runs"],
    ["cancel", { filter: {} }, 400, "{\"all\": true}"],
    ["cancel", { filter: { all: true, tag: "a" } }, 400, "leave it out"],
    ["cancel", { filter: { workflow: null } }, 422, "leave the filter out"],
    ["cancel", { filter: { status: [] } }, 422, "expected a status"],
    ["cancel", { filter: { tag: "" } }, 422, "expected a text"],
    ["cancel", { filter: { tag: 5 } }, 422, "expected a text"],
    ["cancel", { filter: { status: "lost" } }, 400, "status is one or several of"],
    ["cancel", { filter: { tags: "a" } }, 400, "did you mean \"tag\"?"],
    ["cancel", { ids: [] }, 422, "0 ids; an operation has 1 to 1000 of them"],
    ["cancel", { ids: Array.from({ length: 1_001 }, (_, n) => `r${n}`) }, 422, "1001 ids; an operation has 1 to 1000 of them"],
    ["cancel", { ids: ["a b"] }, 422, "/ids/0"],
    ["cancel", { ids: ["a"], reason: "x" }, 400, "unknown field"],
    ["cancel", { ids: ["a"], with: { why: "x" } }, 400, "unknown field"],
    ["extend", { ids: ["a"] }, 422, "say how much longer"],
    ["retry", { ids: ["a"], with: { mode: "retry_step", token_id: "t1" } }, 422, "one run"],
  ];
  for (const [kind, body, status, part] of refused) {
    const response = await curfew.api("POST", `/v1/runs:${kind}`, body, ROOT);
    assert.equal(response.status, status, `${JSON.stringify(body).slice(0, 80)}: ${response.text}`);
    assert.ok(response.json.error.message.includes(part) || response.json.error.pointer.includes(part), response.text);
  }
  assert.equal((await curfew.api("POST", "/v1/runs:cancel", { ids: ["a"] }, STARTER)).status, 403);
  assert.equal((await curfew.api("POST", "/v1/runs:restart", { ids: ["a"] }, ROOT)).status, 404);
  assert.equal(await stored(), before);
});

test("an ended operation is removed after the retention", async () => {
  const { id } = await operate("cancel", { ids: ["nothing"] });
  await sweep();
  assert.equal((await read(id)).status, "completed");
  await curfew.sql("UPDATE operations SET ended_at = ? WHERE id = ?", [Date.now() - 31 * 86_400_000, id]);
  await sweep();
  assert.equal((await curfew.api("GET", `/v1/operations/${id}`, undefined, ROOT)).status, 404);
});

test("an operation goes on after the process was killed", async () => {
  const directory = mkdtempSync(join(tmpdir(), "curfew-test-"));
  try {
    // It is stopped in the middle of the operation.
    const killed = await startCurfew({ persistTo: directory, vars, unreplayed: true });
    const document = await store(waiting(), killed);
    const runs = await start(document.id, 60, killed);
    // Most of the pages are behind those of the runs, so that the end is far away.
    const unknown = Array.from({ length: 900 }, (_, n) => `unknown-${n}`);
    const ids = [...runs.slice(0, 30), ...unknown, ...runs.slice(30)];
    const id = await begin("cancel", { ids }, ROOT, killed);
    await until("the first page", async () => (await read(id, killed)).done > 0);
    await killed.dispose();
    const again = await startCurfew({ persistTo: directory, vars });
    try {
      const interrupted = await read(id, again);
      assert.equal(interrupted.status, "running");
      assert.ok(interrupted.done + interrupted.failed < 960, JSON.stringify(counts(interrupted)));
      assert.equal((await run(runs[59]!, again)).status, "waiting");
      await sweep(again);
      const view = await completed(id, again);
      assert.deepEqual(counts(view), { total: 960, done: 60, failed: 900, skipped: 0 });
      assert.deepEqual([view.errors.length, view.errors[0]!.code], [100, "not_found"]);
      assert.deepEqual(await statuses(runs, again), { cancelled: 60 });
    } finally {
      await again.dispose();
    }
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
