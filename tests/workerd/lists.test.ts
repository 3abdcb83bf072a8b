// Lists of the index: the results of each filter, page by page, and the rows read. The test inserts fifty thousand rows; the
// statement is the API's, and the count is D1's.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startCurfew, type ApiResponse, type Curfew } from "./harness.ts";
import { gateView, runView } from "./index-rows.ts";

const ROWS = 50_000;
/** Ten rows start in each millisecond, so that pages end between runs with the same start. */
const FIRST_AT = 1_700_000_000_000;
const LAST_AT = FIRST_AT + Math.floor((ROWS - 1) / 10);

/** Of a thousand rows one has failed, one is paused, 48 run with a deadline, the others have completed. */
const STATUS = "CASE n % 1000 WHEN 7 THEN 'failed' WHEN 8 THEN 'paused' ELSE iif(n % 1000 BETWEEN 100 AND 147, 'running', 'completed') END";
const VIEW = runView({
  id: "id",
  workflow_id: "workflow_id",
  status: "status",
  started_at: "started_at",
  tags: "tags",
  parent: "iif(parent IS NULL, NULL, json_object('run_id', parent, 'token_id', 't1'))",
});
const FILL = `WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?1 - 1),
    facts AS (SELECT n, printf('row-%05d', n) AS id, ${STATUS} AS status, ?2 + n / 10 AS started_at,
      CASE WHEN n % 5000 = 42 THEN 'rare' WHEN n % 2 = 0 THEN 'even' ELSE 'odd' END AS workflow_id,
      CASE WHEN n % 10 = 0 THEN '["tenth","all"]' WHEN n % 4000 = 3 THEN '["seldom","all"]'
        WHEN n % 10 = 6 THEN '["all","t1","t2","t3","t4","t5","t6","t7","t8","t9","t10","t11","t12","t13","t14","t15","t16","t17","t18","t19"]' ELSE '["all"]' END AS tags,
      CASE WHEN n % 500 = 0 THEN 'boss' WHEN n % 2 = 1 THEN 'crowd' END AS parent FROM numbers)
  INSERT INTO runs (id, workflow_id, version, status, tags, started_at, ended_at, timeout_at, revision, summary, due_at, updated_at)
  SELECT id, workflow_id, 1, status, tags, started_at, iif(status IN ('running', 'paused'), NULL, started_at + 5),
    iif(n % 3 = 0, NULL, ?2 + 1000000 - n / 7), 1, ${VIEW}, NULL, 9000000000000
  FROM facts`;

interface ListedRun {
  id: string;
  n: number;
  workflow_id: string;
  status: string;
  started_at: number;
  tags: string[];
  parent: { run_id: string } | null;
}

let curfew: Curfew;
/** All inserted rows, newest first. */
let all: ListedRun[];
before(async () => {
  // Most rows of its index have no run.
  curfew = await startCurfew({ unreplayed: true });
  const database = await curfew.miniflare.getD1Database("DB", "curfew");
  await database.prepare(FILL).bind(ROWS, FIRST_AT).run();
  await database.prepare("INSERT INTO run_tags SELECT tag.value, runs.started_at, runs.id FROM runs, json_each(runs.tags) AS tag").run();
  const { results } = await database.prepare("SELECT summary FROM runs ORDER BY started_at DESC, id DESC").all<{ summary: string }>();
  all = results.map(({ summary }) => JSON.parse(summary)).map((run) => ({ ...run, n: Number(run.id.slice(4)) }));
  assert.equal(all.length, ROWS);
});
after(() => curfew.dispose());

const rowsRead = (response: ApiResponse): number => Number(/rows_read=(\d+)/.exec(response.headers.get("x-curfew-bill") ?? "")?.[1] ?? Number.NaN);

async function get(query: string, cursor: string | null = null): Promise<ApiResponse> {
  const response = await curfew.api("GET", `/v1/runs?${query}${cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`}`);
  assert.equal(response.status, 200, `${query}: ${response.text}`);
  return response;
}

interface Page {
  ids: string[];
  read: number;
  cursor: string | null;
}

/** The pages of a list, at most `most`. */
async function pages(query: string, most = Infinity): Promise<Page[]> {
  const found: Page[] = [];
  for (let cursor: string | null = null; found.length < most; ) {
    const response = await get(query, cursor);
    cursor = response.json.next_cursor;
    found.push({ ids: response.json.items.map((run: ListedRun) => run.id), read: rowsRead(response), cursor });
    if (cursor === null) break;
  }
  return found;
}

const ids = (wanted: (run: ListedRun) => boolean): string[] => all.filter(wanted).map(({ id }) => id);
/** Rows read for an empty result: one entry of the index for each status. */
const ENTRIES = 10;

const singleFilters: [query: string, wanted: (run: ListedRun) => boolean][] = [
  ["", () => true],
  ["sort=started", () => true],
  ["status=completed", ({ status }) => status === "completed"],
  ["status=failed", ({ status }) => status === "failed"],
  ["status=cancelled", () => false],
  ["status=failed,paused", ({ status }) => ["failed", "paused"].includes(status)],
  ["status=running&status=failed,completed", ({ status }) => ["running", "failed", "completed"].includes(status)],
  ["status=running,waiting,paused,completed,failed,timed_out,cancelled", () => true],
  ["workflow=even", ({ workflow_id }) => workflow_id === "even"],
  ["workflow=rare", ({ workflow_id }) => workflow_id === "rare"],
  ["workflow=none", () => false],
  ["workflow=odd&status=completed", ({ workflow_id, status }) => workflow_id === "odd" && status === "completed"],
  ["workflow=odd&status=failed", ({ workflow_id, status }) => workflow_id === "odd" && status === "failed"],
  ["workflow=even&status=running,paused", ({ workflow_id, status }) => workflow_id === "even" && ["running", "paused"].includes(status)],
  ["tag=all", () => true],
  ["tag=tenth", ({ tags }) => tags.includes("tenth")],
  ["tag=seldom", ({ tags }) => tags.includes("seldom")],
  [`since=${LAST_AT + 1}`, () => false],
  [`since=${FIRST_AT + 4_000}`, ({ started_at }) => started_at >= FIRST_AT + 4_000],
  [`until=${FIRST_AT + 100}`, ({ started_at }) => started_at <= FIRST_AT + 100],
  [`until=${FIRST_AT - 1}`, () => false],
  ["parent=boss", ({ parent }) => parent?.run_id === "boss"],
  ["parent=crowd", ({ parent }) => parent?.run_id === "crowd"],
  ["parent=nobody", () => false],
];

/** For the report: the maximum of rows read for a page, and the rows shown. */
const report = (query: string, found: Page[]): void => {
  const most = found.reduce((worst, page) => (page.read > worst.read ? page : worst));
  console.log(`  rows read: ${most.read} for ${most.ids.length} shown (${query || "no filter"})`);
};

for (const [query, wanted] of singleFilters) {
  test(`driven by an index: ${query || "no filter"}`, async () => {
    const expected = ids(wanted);
    const found = await pages(query, 6);
    report(query, found);
    assert.deepEqual(found.flatMap((page) => page.ids), expected.slice(0, 600));
    for (const page of found) assert.ok(page.read <= 3 * page.ids.length + ENTRIES, `${page.read} rows read for ${page.ids.length}`);
    assert.equal(found.at(-1)!.cursor === null, expected.length <= 600);
  });
}

test("a late page of a list reads no more rows than the first", async () => {
  for (const [query, wanted] of [["", () => true], ["status=completed", ({ status }: ListedRun) => status === "completed"], ["workflow=even", ({ workflow_id }: ListedRun) => workflow_id === "even"], ["tag=all", () => true]] as const) {
    const expected = ids(wanted);
    const place = Math.floor(expected.length * 0.9);
    const before = all.find(({ id }) => id === expected[place - 1])!;
    const response = await get(query, `started:${before.started_at}:${before.id}`);
    assert.deepEqual(response.json.items.map(({ id }: ListedRun) => id), expected.slice(place, place + 100));
    assert.ok(rowsRead(response) <= 310, `${query}: ${rowsRead(response)}`);
  }
});

test("by an id prefix, in the order of ids", async () => {
  for (const prefix of ["row-0", "row-4999", "row-31415", "row-5", "zzz"]) {
    const expected = ids(({ id }) => id.startsWith(prefix)).toSorted();
    const found = await pages(`id_prefix=${prefix}`, 4);
    report(`id_prefix=${prefix}`, found);
    assert.deepEqual(found.flatMap((page) => page.ids), expected.slice(0, 400));
    for (const page of found) assert.ok(page.read <= 3 * page.ids.length + ENTRIES, `${prefix}: ${page.read} rows read`);
  }
});

test("by remaining time: runs that have not ended and have a deadline, the nearest deadline first", async () => {
  const deadline = ({ n }: ListedRun): number => 1_000_000 - Math.floor(n / 7);
  const expected = all.filter(({ n, status }) => n % 3 !== 0 && ["running", "paused"].includes(status));
  expected.sort((a, b) => deadline(a) - deadline(b) || (a.id < b.id ? -1 : 1));
  const found = await pages("sort=remaining", 6);
  report("sort=remaining", found);
  assert.deepEqual(found.flatMap((page) => page.ids), expected.slice(0, 600).map(({ id }) => id));
  for (const page of found) assert.ok(page.read <= 3 * page.ids.length + ENTRIES, `${page.read} rows read`);
});

const combinedFilters: [query: string, wanted: (run: ListedRun) => boolean][] = [
  ["workflow=rare&tag=all", ({ workflow_id }) => workflow_id === "rare"],
  ["workflow=even&tag=tenth", ({ workflow_id, tags }) => workflow_id === "even" && tags.includes("tenth")],
  ["tag=all&status=failed", ({ status }) => status === "failed"],
  ["tag=all&status=cancelled", () => false],
  ["parent=crowd&status=running", ({ parent, status }) => parent?.run_id === "crowd" && status === "running"],
  ["parent=crowd&tag=seldom", ({ parent, tags }) => parent?.run_id === "crowd" && tags.includes("seldom")],
  [`since=${FIRST_AT + 1_000}&until=${FIRST_AT + 1_100}`, ({ started_at }) => started_at >= FIRST_AT + 1_000 && started_at <= FIRST_AT + 1_100],
  [`workflow=even&since=${FIRST_AT + 4_800}`, ({ workflow_id, started_at }) => workflow_id === "even" && started_at >= FIRST_AT + 4_800],
  [`status=completed,failed&until=${FIRST_AT + 200}`, ({ status, started_at }) => ["completed", "failed"].includes(status) && started_at <= FIRST_AT + 200],
  [`workflow=odd&status=failed&tag=all&since=${FIRST_AT}`, ({ workflow_id, status }) => workflow_id === "odd" && status === "failed"],
  ["sort=started&id_prefix=row-49", ({ id }) => id.startsWith("row-49")],
];

for (const [query, wanted] of combinedFilters) {
  test(`no single index: ${query}`, async () => {
    const expected = ids(wanted);
    for (const limit of [100, 1_000]) {
      const found = await pages(`${query}&limit=${limit}`, 150);
      report(`${query}&limit=${limit}`, found);
      assert.deepEqual(found.flatMap((page) => page.ids), expected.slice(0, found.flatMap((page) => page.ids).length));
      assert.ok(found.at(-1)!.cursor !== null || found.flatMap((page) => page.ids).length === expected.length);
      for (const page of found) assert.ok(page.read <= 1_000 && page.ids.length <= limit, `${page.read} rows read for ${page.ids.length}`);
    }
  });
}

test("filters in another order than by start", async () => {
  for (const [query, wanted] of [
    ["id_prefix=row-0&status=failed", ({ id, status }: ListedRun) => id.startsWith("row-0") && status === "failed"],
    ["id_prefix=row-0&tag=seldom", ({ id, tags }: ListedRun) => id.startsWith("row-0") && tags.includes("seldom")],
    ["sort=remaining&workflow=rare", ({ n, workflow_id, status }: ListedRun) => n % 3 !== 0 && workflow_id === "rare" && ["running", "paused"].includes(status)],
    ["sort=remaining&tag=tenth", ({ n, tags, status }: ListedRun) => n % 3 !== 0 && tags.includes("tenth") && ["running", "paused"].includes(status)],
    ["sort=remaining&parent=crowd&status=paused", ({ n, parent, status }: ListedRun) => n % 3 !== 0 && parent?.run_id === "crowd" && status === "paused"],
  ] as const) {
    const found = await pages(`${query}&limit=1000`);
    report(query, found);
    assert.deepEqual(found.flatMap((page) => page.ids).toSorted(), ids(wanted).toSorted(), query);
    for (const page of found) assert.ok(page.read <= 1_000, `${query}: ${page.read} rows read`);
  }
});

test("a list refuses invalid parameters and cursors of other lists", async () => {
  for (const [path, query, word] of [
    ["runs", "status=sleepy", "status"],
    ["runs", "since=yesterday", "since"],
    ["runs", "sort=ended", "sort"],
    ["runs", "workflow=a&workflow=b", "workflow"],
    ["runs", "cursor=gates:1:a:g1", "cursor"],
    ["runs", "sort=remaining&cursor=started:1:a", "cursor"],
    ["gates", "cursor=started:1:a", "cursor"],
    ["gates", "cursor=1_a_g1", "cursor"],
    ["breakers", "cursor=gates:1:a:g1", "cursor"],
    ["workflows", "cursor=tasks:a", "cursor"],
    ["runs/x/tokens", "cursor=started:1:a", "cursor"],
  ] as const) {
    const response = await curfew.api("GET", `/v1/${path}?${query}`);
    assert.equal(response.status, 400, `${path}?${query}: ${response.text}`);
    assert.equal(response.json.error.code, "invalid_request");
    assert.ok(response.json.error.message.includes(word), response.text);
  }
});

test("open gates are read by their index, page by page, also with the same start", async () => {
  const database = await curfew.miniflare.getD1Database("DB", "curfew");
  const fill = `WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < 9999)
    INSERT INTO gates (run_id, id, status, opened_at, view)
    SELECT printf('gate_%05d', n), 'g1', iif(n % 10 = 0, 'open', 'decided'), 9 + n / 700, ${gateView("printf('gate_%05d', n)")} FROM numbers`;
  await database.prepare(fill).run();
  const found: string[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const response = await curfew.api("GET", `/v1/gates?limit=90${cursor && `&cursor=${encodeURIComponent(cursor)}`}`);
    assert.equal(response.status, 200, response.text);
    const { items, next_cursor } = response.json;
    assert.ok(rowsRead(response) <= 3 * items.length + ENTRIES, `${rowsRead(response)} rows read for ${items.length}`);
    found.push(...items.map(({ run_id }: { run_id: string }) => run_id));
    cursor = next_cursor;
  }
  const expected = Array.from({ length: 1_000 }, (_, index) => `gate_${String(index * 10).padStart(5, "0")}`);
  assert.deepEqual(found, expected);
});

test("the open gates of one run are read with no other run's", async () => {
  const database = await curfew.miniflare.getD1Database("DB", "curfew");
  const view = gateView("printf('asks_%d', n / 50)", "printf('g%03d', n % 50)");
  await database
    .prepare(
      `WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < 4999)
       INSERT INTO gates (run_id, id, status, opened_at, view)
       SELECT printf('asks_%d', n / 50), printf('g%03d', n % 50), iif(n % 2 = 0, 'open', 'decided'), 5, ${view} FROM numbers`,
    )
    .run();
  const response = await curfew.api("GET", "/v1/gates?run=asks_7");
  assert.equal(response.status, 200, response.text);
  assert.deepEqual(response.json.items.map(({ id, run_id }: any) => [run_id, id]), Array.from({ length: 25 }, (_, index) => ["asks_7", `g${String(index * 2).padStart(3, "0")}`]));
  // The run's fifty gates, once more those that are open, which are sorted.
  assert.ok(rowsRead(response) <= 50 + 25 + ENTRIES, `${rowsRead(response)} rows read`);
});
