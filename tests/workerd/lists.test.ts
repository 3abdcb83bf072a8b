// Lists of the index: what each filter finds, page by page, and how many rows of the database that reads. Fifty thousand rows are
// written by hand; the statement is the one the API sends, and the count is D1's own.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { freshId, oneTask, set, workflow } from "./documents.ts";
import { startCurfew, type Answer, type Curfew } from "./harness.ts";
import { until } from "./poll.ts";

const ROWS = 50_000;
/** Rows started at ten of them a millisecond, so that pages end between runs of one moment. */
const FIRST_AT = 1_700_000_000_000;
const LAST_AT = FIRST_AT + Math.floor((ROWS - 1) / 10);

/** Of row n: of every thousand one has failed, one is paused, 48 run with a limit, the others have completed. */
const STATUS = "CASE n % 1000 WHEN 7 THEN 'failed' WHEN 8 THEN 'paused' ELSE iif(n % 1000 BETWEEN 100 AND 147, 'running', 'completed') END";
const FILL = `WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?1 - 1),
    facts AS (SELECT n, printf('row-%05d', n) AS id, ${STATUS} AS status, ?2 + n / 10 AS started_at,
      CASE WHEN n % 5000 = 42 THEN 'rare' WHEN n % 2 = 0 THEN 'even' ELSE 'odd' END AS workflow_id,
      CASE WHEN n % 10 = 0 THEN '["tenth","all"]' WHEN n % 4000 = 3 THEN '["seldom","all"]' ELSE '["all"]' END AS tags,
      CASE WHEN n % 500 = 0 THEN 'boss' WHEN n % 2 = 1 THEN 'crowd' END AS parent FROM numbers)
  INSERT INTO runs (id, workflow_id, version, status, tags, started_at, ended_at, timeout_at, revision, summary, due_at, updated_at)
  SELECT id, workflow_id, 1, status, tags, started_at, iif(status IN ('running', 'paused'), NULL, started_at + 5),
    iif(n % 3 = 0, NULL, ?2 + 1000000 - n / 7), 1, json_object('id', id, 'workflow_id', workflow_id, 'status', status, 'started_at', started_at,
      'tags', json(tags), 'parent', iif(parent IS NULL, NULL, json_object('run_id', parent, 'token_id', 't1'))), NULL, 9000000000000
  FROM facts`;

interface Shown {
  id: string;
  n: number;
  workflow_id: string;
  status: string;
  started_at: number;
  tags: string[];
  parent: { run_id: string } | null;
}

let curfew: Curfew;
/** What was filled in, newest first. */
let all: Shown[];
before(async () => {
  curfew = await startCurfew();
  const database = await curfew.miniflare.getD1Database("DB", "curfew");
  await database.prepare(FILL).bind(ROWS, FIRST_AT).run();
  await database.prepare("INSERT INTO run_tags SELECT tag.value, started_at, id FROM runs, json_each(tags) AS tag").run();
  const { results } = await database.prepare("SELECT summary FROM runs ORDER BY started_at DESC, id DESC").all<{ summary: string }>();
  all = results.map(({ summary }) => JSON.parse(summary)).map((run) => ({ ...run, n: Number(run.id.slice(4)) }));
  assert.equal(all.length, ROWS);
});
after(() => curfew.dispose());

const rowsRead = (answer: Answer): number => Number(/rows_read=(\d+)/.exec(answer.headers.get("x-curfew-bill") ?? "")?.[1] ?? Number.NaN);

async function get(query: string, cursor: string | null = null): Promise<Answer> {
  const answer = await curfew.api("GET", `/v1/runs?${query}${cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`}`);
  assert.equal(answer.status, 200, `${query}: ${answer.text}`);
  return answer;
}

interface Page {
  ids: string[];
  read: number;
  cursor: string | null;
}

/** The pages of a list, `most` of them at most. */
async function pages(query: string, most = Infinity): Promise<Page[]> {
  const found: Page[] = [];
  for (let cursor: string | null = null; found.length < most; ) {
    const answer = await get(query, cursor);
    cursor = answer.json.next_cursor;
    found.push({ ids: answer.json.items.map((run: Shown) => run.id), read: rowsRead(answer), cursor });
    if (cursor === null) break;
  }
  return found;
}

const ids = (wanted: (run: Shown) => boolean): string[] => all.filter(wanted).map(({ id }) => id);
/** What is read where nothing is found: an index is entered once for each status. */
const ENTRIES = 10;

const led: [query: string, wanted: (run: Shown) => boolean][] = [
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

for (const [query, wanted] of led) {
  test(`led by an index: ${query || "no filter"}`, async () => {
    const expected = ids(wanted);
    const [first, ...later] = await pages(query, 6);
    const found = [first!, ...later];
    assert.deepEqual(found.flatMap((page) => page.ids), expected.slice(0, 600));
    for (const page of found) assert.ok(page.read <= 3 * page.ids.length + ENTRIES, `${page.read} rows read for ${page.ids.length}`);
    assert.equal(found.at(-1)!.cursor === null, expected.length <= 600);
  });
}
