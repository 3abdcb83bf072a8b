// Events: what a run emits, or somebody tells the API, starts the workflows that it triggers, each once.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { freshId, oneTask, set, workflow, type WorkflowDocument } from "./documents.ts";
import { startCurfew, type Answer, type Curfew } from "./harness.ts";
import { until } from "./poll.ts";
import type { RunView } from "./wire.ts";

let curfew: Curfew;
before(async () => {
  curfew = await startCurfew({ vars: { CURFEW_QUEUE: "on" } });
});
after(() => curfew.dispose());

const emit = (name: string, payload?: unknown) => ({ action: { kind: "emit_event", implementation: { name, payload } } });

/** Its output is the payload. */
const listener = (event: string, more: Record<string, unknown> = {}): WorkflowDocument =>
  workflow({ nodes: [{ id: "heard" }], trigger: { event }, output_mapping: "${input}", ...more });

async function stored<T extends WorkflowDocument>(document: T): Promise<T> {
  await curfew.store(document);
  return document;
}

/** The runs of a workflow that have ended, once there are so many. */
const runsOf = (workflowId: string, count = 1): Promise<RunView[]> =>
  until(`${count} ended runs of ${workflowId}`, async () => {
    const { items } = (await curfew.api("GET", `/v1/runs?workflow=${workflowId}&limit=1000`)).json;
    if (items.length < count || items.some((run: RunView) => run.ended_at === null)) return false;
    return Promise.all(items.map(({ id }: RunView) => curfew.run(id)));
  });

async function raise(event: string, body?: unknown, key?: string): Promise<Answer> {
  const headers: Record<string, string> = key === undefined ? {} : { "idempotency-key": key };
  const response = await fetch(`${curfew.url}/v1/events/${event}`, {
    method: "POST",
    headers,
    body: body === undefined ? null : JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, json: JSON.parse(text) };
}

const started = (answer: Answer): string[] => {
  assert.ok([200, 202].includes(answer.status), answer.text);
  return answer.json.runs.map((run: { workflow_id: string }) => run.workflow_id);
};

for (const lane of ["inline", "direct", "queue"]) {
  test(`an event emitted in the lane ${lane} starts what it triggers, with its payload`, async () => {
    const event = freshId("order.paid");
    const [one, other] = [await stored(listener(event)), await stored(listener(event))];
    const emitter = oneTask([set({ "state.sum": "${input.n + 1}" }), emit(event, { sum: "${state.sum}", by: "${input.who}" })], {
      task: { dispatch: lane },
    });
    const run = await curfew.runToEnd(emitter, { n: 2, who: "Ada" });
    assert.equal(run.status, "completed", JSON.stringify(run.error));
    assert.deepEqual(run.output, { sum: 3, by: "Ada" }, "the payload is the step's result");
    assert.equal((await curfew.tokens(run.id))[0]?.lane, lane);
    for (const { id } of [one, other]) {
      const [triggered, ...others] = await runsOf(id);
      assert.equal(others.length, 0);
      assert.equal(triggered?.status, "completed", JSON.stringify(triggered?.error));
      assert.deepEqual(triggered.output, { sum: 3, by: "Ada" });
      assert.match(triggered.id, /^e-[0-9a-f]{32}$/);
      assert.equal(triggered.triggered_by?.event, event);
      assert.ok(triggered.triggered_by.key.startsWith(`${run.id}/`), triggered.triggered_by.key);
      assert.equal(triggered.parent, undefined);
    }
  });
}

test("a task that fails after it emitted starts nothing", async () => {
  const event = freshId("never");
  const { id } = await stored(listener(event));
  const failing = { action: { kind: "assert", implementation: { condition: "input.good", message: "no" } } };
  const emitter = await stored(oneTask([emit(event, "${input.n}"), failing]));
  const [bad, good] = [await curfew.start(emitter.id, { good: false, n: 1 }), await curfew.start(emitter.id, { good: true, n: 2 })];
  assert.equal((await curfew.ended(bad)).status, "failed");
  assert.equal((await curfew.ended(good)).status, "completed");
  const runs = await runsOf(id);
  assert.deepEqual(runs.map((run) => run.input), [2]);
});

test("the newest version of a workflow says what triggers it", async () => {
  const [first, second] = [freshId("first"), freshId("second")];
  const document = await stored(listener(first));
  assert.deepEqual(started(await raise(first)), [document.id]);
  // The same again changes nothing.
  assert.equal((await curfew.api("PUT", `/v1/workflows/${document.id}`, document)).status, 200);
  assert.deepEqual(started(await raise(first)), [document.id]);
  const changed: WorkflowDocument = { ...document, trigger: { event: second } };
  await curfew.store(changed);
  assert.deepEqual(started(await raise(first)), []);
  assert.deepEqual(started(await raise(second)), [document.id]);
  const { trigger, ...without } = document;
  await curfew.store(without as WorkflowDocument);
  const nothing = await raise(second);
  assert.deepEqual([nothing.status, nothing.json.runs, nothing.json.refused], [200, [], []]);
  const shown = await curfew.api("GET", `/v1/workflows/${document.id}?version=1`);
  assert.deepEqual(shown.json.document.trigger, trigger);
});

test("an event with a key may be told of again", async () => {
  const event = freshId("told");
  const { id } = await stored(listener(event));
  const first = await raise(event, { n: 1 }, "key:1");
  assert.equal(first.status, 202, first.text);
  assert.equal(first.json.key, "key:1");
  const [run] = first.json.runs;
  assert.deepEqual([run.workflow_id, run.created], [id, true]);
  const again = await raise(event, { n: 1 }, "key:1");
  assert.deepEqual([again.status, again.json.runs], [200, [{ ...run, created: false }]]);
  const otherwise = await raise(event, { n: 2 }, "key:1");
  assert.deepEqual([otherwise.status, otherwise.json.error.code], [409, "key_used"]);
  const ended = await curfew.ended(run.id);
  assert.deepEqual(ended.output, { n: 1 });
  assert.deepEqual(ended.triggered_by, { event, key: "key:1" });
  // Without one every time is another; the answer says how to tell of this one again.
  const [a, b] = [await raise(event), await raise(event)];
  assert.notEqual(a.json.runs[0].id, b.json.runs[0].id);
  assert.equal((await raise(event, undefined, a.json.key)).json.runs[0].id, a.json.runs[0].id);
  assert.equal((await curfew.ended(a.json.runs[0].id)).input, null, "no body is null");
  assert.equal((await runsOf(id, 3)).length, 3);
});

test("what cannot be an event is refused", async () => {
  for (const [answer, status] of [
    [await raise("a%20b"), 400],
    [await raise("x".repeat(129)), 400],
    [await raise("fine", 1, "a/b"), 400],
    [await curfew.api("POST", "/v1/events/fine", "{"), 400],
    [await curfew.api("POST", "/v1/events/fine", "[".repeat(110) + "]".repeat(110)), 422],
    [await curfew.api("POST", "/v1/events/fine", "1".repeat(1 << 21)), 413],
    [await curfew.api("GET", "/v1/events/fine"), 405],
  ] as const) {
    assert.equal(answer.status, status, answer.text);
    assert.ok(answer.json.error.message, answer.text);
  }
  const run = await curfew.runToEnd(oneTask([emit("${input.name}")]), { name: "two words" });
  assert.deepEqual([run.status, run.error?.class, run.error?.code], ["failed", "validation", "invalid_event"]);
});

test("a payload that one workflow refuses still starts the others", async () => {
  const event = freshId("strict");
  const strict = await stored(listener(event, { input_schema: { type: "object", required: ["n"] } }));
  const lenient = await stored(listener(event));
  const answer = await raise(event, { m: 1 });
  assert.equal(answer.status, 202, answer.text);
  assert.deepEqual(answer.json.runs.map((run: { workflow_id: string }) => run.workflow_id), [lenient.id]);
  const [refused] = answer.json.refused;
  assert.deepEqual([refused.workflow_id, refused.error.code], [strict.id, "invalid_input"]);
  const run = await curfew.runToEnd(oneTask([emit(event, { m: 2 })]));
  assert.equal(run.status, "completed");
  assert.equal((await runsOf(lenient.id, 2)).length, 2);
  await until("the refusal in the log", () => curfew.logs.some((line) => line.includes("trigger_refused") && line.includes(run.id)));
  assert.deepEqual((await curfew.api("GET", `/v1/runs?workflow=${strict.id}`)).json.items, []);
});

test("more workflows than one invocation may start are all started", async () => {
  const event = freshId("many");
  const listeners = await Promise.all(Array.from({ length: 30 }, () => stored(listener(event))));
  const run = await curfew.runToEnd(oneTask([emit(event, 1), emit(event, 2)]));
  assert.equal(run.status, "completed");
  const inputs = await Promise.all(listeners.map(async ({ id }) => (await runsOf(id, 2)).map(({ input }) => input).sort()));
  assert.deepEqual(inputs, Array.from({ length: 30 }, () => [1, 2]));
});

test("a workflow that triggers itself comes to an end", async () => {
  const event = freshId("loop");
  const looping = oneTask([emit(event, { n: "${input.n + 1}" })], { workflow: { trigger: { event } } });
  await curfew.store(looping);
  await curfew.start(looping.id, { n: 0 });
  const runs = await runsOf(looping.id, 17);
  assert.equal(runs.length, 17);
  const failed = runs.filter(({ status }) => status === "failed");
  assert.deepEqual(failed.map(({ input, error }) => [input.n, error?.class, error?.code]), [[16, "permanent", "event_loop"]]);
  assert.match(failed[0]?.error?.message ?? "", /16 events have led to this run/);
});

test("one event starts at most 100 workflows", async () => {
  const event = freshId("crowd");
  const database = await curfew.miniflare.getD1Database("DB", "curfew");
  const row = database.prepare("INSERT INTO triggers VALUES (?1, ?2)");
  await database.batch(Array.from({ length: 100 }, (_, index) => row.bind(event, `crowd-${index}`)));
  const document = listener(event);
  const answer = await curfew.api("PUT", `/v1/workflows/${document.id}`, document);
  assert.deepEqual([answer.status, answer.json.error.code, answer.json.error.pointer], [409, "limit_exceeded", "/trigger/event"]);
  await database.prepare("DELETE FROM triggers WHERE event = ?1 AND workflow_id = 'crowd-1'").bind(event).run();
  await curfew.store(document);
  assert.equal((await curfew.api("PUT", `/v1/workflows/${document.id}`, document)).status, 200, "it is one of the 100");
});

/** So many runs count as led to by the event already. */
async function countStarts(event: string, key: string, count: number): Promise<void> {
  const database = await curfew.miniflare.getD1Database("DB", "curfew");
  const rows = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
    INSERT INTO event_starts SELECT ?1, 'filler-' || i, ?3 FROM n`;
  await database.prepare(rows).bind(`${event}|${key}`, count, Date.now()).run();
}

const countedStartsOf = async (root: string): Promise<number> => {
  const database = await curfew.miniflare.getD1Database("DB", "curfew");
  const count = database.prepare("SELECT count(*) AS count FROM event_starts WHERE root = ?1").bind(root);
  return (await count.first<{ count: number }>())!.count;
};
const countedStarts = (event: string, key: string) => countedStartsOf(`${event}|${key}`);

test("one event leads to at most 1 000 runs, however many events come of it", async () => {
  const [first, second, third] = [freshId("first"), freshId("second"), freshId("third")];
  const child = await stored(oneTask([emit(third, "${input}")]));
  // Two runs of the first event; each emits, directly and by a child.
  const direct = await stored(oneTask([emit(second, "${input}")], { workflow: { trigger: { event: first } } }));
  const byChild = await stored(workflow({ nodes: [{ id: "call", workflow_id: child.id }], trigger: { event: first } }));
  const [a, b] = [await stored(listener(second)), await stored(listener(second))];
  const [c, d] = [await stored(listener(third)), await stored(listener(third))];
  await countStarts(first, "k", 995);
  const answer = await raise(first, { n: 1 }, "k");
  assert.deepEqual(started(answer).sort(), [direct.id, byChild.id].sort(), answer.text);
  assert.deepEqual(answer.json.refused, []);
  // 995, the two of the event itself, and three of the four that follow.
  const emitters = [answer.json.runs.find((run: { workflow_id: string }) => run.workflow_id === direct.id).id];
  emitters.push(`${answer.json.runs.find((run: { workflow_id: string }) => run.workflow_id === byChild.id).id}~t1`);
  const refusals = await until("the refusal in a history", async () => {
    const events = await Promise.all(emitters.map((id) => curfew.events(id, "limit_exceeded")));
    return events.flat().length > 0 && events.flat();
  });
  assert.equal(refusals.length, 1);
  const [refusal] = refusals as unknown as Record<string, any>[];
  assert.deepEqual([refusal?.["limit"], refusal?.["most"], refusal?.["root_event"]], ["event_limit", 1000, { event: first, key: "k" }]);
  assert.equal(refusal?.["workflow_ids"].length, 1);
  await until("the refusal in the log", () => curfew.logs.some((line) => line.includes("event_limit") && line.includes(first)));
  const followed = async () => {
    const lists = await Promise.all([a, b, c, d].map(({ id }) => curfew.api("GET", `/v1/runs?workflow=${id}`)));
    return lists.flatMap(({ json }) => json.items);
  };
  await until("three runs", async () => (await followed()).length === 3);
  assert.equal(await countedStarts(first, "k"), 998);
  // The same event again changes nothing; another one of the same name begins anew.
  assert.equal((await raise(first, { n: 1 }, "k")).status, 200);
  assert.equal(await countedStarts(first, "k"), 998);
  await raise(first, { n: 2 }, "k2");
  await until("seven runs", async () => (await followed()).length === 7);
  assert.equal(await countedStarts(first, "k2"), 4);
});

test("an event whose runs emit nothing costs no row, and old rows are swept away", async () => {
  const event = freshId("plain");
  const { id } = await stored(listener(event));
  await raise(event, 1, "k");
  assert.equal((await runsOf(id)).length, 1);
  const run = await curfew.runToEnd(oneTask([emit(event, 2)]));
  assert.equal(run.status, "completed");
  assert.equal((await runsOf(id, 2)).length, 2);
  const database = await curfew.miniflare.getD1Database("DB", "curfew");
  const rows = await database.prepare("SELECT root FROM event_starts WHERE root LIKE ?1").bind(`${event}|%`).all();
  assert.deepEqual(rows.results, []);
  await database.prepare("INSERT INTO event_starts VALUES ('old', 'a', 0), ('new', 'a', ?1)").bind(Date.now()).run();
  await fetch(`${curfew.url}/cdn-cgi/local/scheduled`);
  await until("the old row to be gone", async () => (await countedStartsOf("old")) === 0);
  assert.equal(await countedStartsOf("new"), 1);
});
