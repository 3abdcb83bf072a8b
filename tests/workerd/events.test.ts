// Events that runs emit, or that callers publish, start the workflows that they trigger, each once.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { callWorkflow, childRunId, freshId, oneTask, set, workflow, type WorkflowDocument } from "./document-builders.ts";
import { startCurfew, type ApiResponse, type Curfew } from "./harness.ts";
import { until } from "./poll.ts";
import type { RunView } from "./api-types.ts";

let curfew: Curfew;
before(async () => {
  curfew = await startCurfew({ vars: { CURFEW_QUEUE: "on" } });
});
after(() => curfew.dispose());

const emit = (name: string, payload?: unknown) => ({ action: { kind: "emit_event", implementation: { name, payload } } });

/** The output is the payload. */
const triggered = (event: string, more: Record<string, unknown> = {}): WorkflowDocument =>
  workflow({ nodes: [{ id: "heard" }], trigger: { event }, output_mapping: "${input}", ...more });

async function stored<T extends WorkflowDocument>(document: T): Promise<T> {
  await curfew.store(document);
  return document;
}

/** The ended runs of a workflow, once there are `count`. */
const runsOf = (workflowId: string, count = 1): Promise<RunView[]> =>
  until(`${count} ended runs of ${workflowId}`, async () => {
    const { items } = (await curfew.api("GET", `/v1/runs?workflow=${workflowId}&limit=1000`)).json;
    if (items.length < count || items.some((run: RunView) => run.ended_at === null)) return false;
    return Promise.all(items.map(({ id }: RunView) => curfew.run(id)));
  });

async function publish(event: string, body?: unknown, key?: string): Promise<ApiResponse> {
  // Node's fetch sends Sec-Fetch-Mode: in development the body of a browser must be JSON.
  const headers: Record<string, string> = { "content-type": "application/json", ...(key === undefined ? {} : { "idempotency-key": key }) };
  const response = await fetch(`${curfew.url}/v1/events/${event}`, {
    method: "POST",
    headers,
    body: body === undefined ? null : JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, json: JSON.parse(text) };
}

const started = (answer: ApiResponse): string[] => {
  assert.ok([200, 202].includes(answer.status), answer.text);
  return answer.json.runs.map((run: { workflow_id: string }) => run.workflow_id);
};

for (const lane of ["inline", "direct", "queue"]) {
  test(`an event emitted in the lane ${lane} starts the workflows that it triggers, with its payload`, async () => {
    const event = freshId("order.paid");
    const [one, other] = [await stored(triggered(event)), await stored(triggered(event))];
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

test("the events of a task that fails later are not published", async () => {
  const event = freshId("never");
  const { id } = await stored(triggered(event));
  const failing = { action: { kind: "assert", implementation: { condition: "input.good", message: "no" } } };
  const emitter = await stored(oneTask([emit(event, "${input.n}"), failing]));
  const [bad, good] = [await curfew.start(emitter.id, { good: false, n: 1 }), await curfew.start(emitter.id, { good: true, n: 2 })];
  assert.equal((await curfew.ended(bad)).status, "failed");
  assert.equal((await curfew.ended(good)).status, "completed");
  const runs = await runsOf(id);
  assert.deepEqual(runs.map((run) => run.input), [2]);
});

test("the newest version of a workflow decides its trigger", async () => {
  const [first, second] = [freshId("first"), freshId("second")];
  const document = await stored(triggered(first));
  assert.deepEqual(started(await publish(first)), [document.id]);
  // Storing the same content again changes nothing.
  assert.equal((await curfew.api("PUT", `/v1/workflows/${document.id}`, document)).status, 200);
  assert.deepEqual(started(await publish(first)), [document.id]);
  const changed: WorkflowDocument = { ...document, trigger: { event: second } };
  await curfew.store(changed);
  assert.deepEqual(started(await publish(first)), []);
  assert.deepEqual(started(await publish(second)), [document.id]);
  const { trigger, ...without } = document;
  await curfew.store(without as WorkflowDocument);
  const nothing = await publish(second);
  assert.deepEqual([nothing.status, nothing.json.runs, nothing.json.refused], [200, [], []]);
  const shown = await curfew.api("GET", `/v1/workflows/${document.id}?version=1`);
  assert.deepEqual(shown.json.document.trigger, trigger);
});

test("an event with a key may be published again", async () => {
  const event = freshId("told");
  const { id } = await stored(triggered(event));
  const first = await publish(event, { n: 1 }, "key:1");
  assert.equal(first.status, 202, first.text);
  assert.equal(first.json.key, "key:1");
  const [run] = first.json.runs;
  assert.deepEqual([run.workflow_id, run.created], [id, true]);
  const again = await publish(event, { n: 1 }, "key:1");
  assert.deepEqual([again.status, again.json.runs], [200, [{ ...run, created: false }]]);
  const otherwise = await publish(event, { n: 2 }, "key:1");
  assert.deepEqual([otherwise.status, otherwise.json.error.code], [409, "key_used"]);
  const ended = await curfew.ended(run.id);
  assert.deepEqual(ended.output, { n: 1 });
  assert.deepEqual(ended.triggered_by, { event, key: "key:1" });
  // Without a key each publication is another event; the response contains its key.
  const [a, b] = [await publish(event), await publish(event)];
  assert.notEqual(a.json.runs[0].id, b.json.runs[0].id);
  assert.equal((await publish(event, undefined, a.json.key)).json.runs[0].id, a.json.runs[0].id);
  assert.equal((await curfew.ended(a.json.runs[0].id)).input, null, "no body is null");
  assert.equal((await runsOf(id, 3)).length, 3);
});

test("invalid events are refused", async () => {
  for (const [answer, status] of [
    [await publish("a%20b"), 400],
    [await publish("x".repeat(129)), 400],
    [await publish("fine", 1, "a/b"), 400],
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
  const strict = await stored(triggered(event, { input_schema: { type: "object", required: ["n"] } }));
  const lenient = await stored(triggered(event));
  const answer = await publish(event, { m: 1 });
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

test("an event may start more workflows than one invocation can", async () => {
  const event = freshId("many");
  const listeners = await Promise.all(Array.from({ length: 30 }, () => stored(triggered(event))));
  const run = await curfew.runToEnd(oneTask([emit(event, 1), emit(event, 2)]));
  assert.equal(run.status, "completed");
  const inputs = await Promise.all(listeners.map(async ({ id }) => (await runsOf(id, 2)).map(({ input }) => input).sort()));
  assert.deepEqual(inputs, Array.from({ length: 30 }, () => [1, 2]));
});

test("a workflow that triggers itself ends at the limit of hops", async () => {
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
  const document = triggered(event);
  const answer = await curfew.api("PUT", `/v1/workflows/${document.id}`, document);
  assert.deepEqual([answer.status, answer.json.error.code, answer.json.error.pointer], [409, "limit_exceeded", "/trigger/event"]);
  await database.prepare("DELETE FROM triggers WHERE event = ?1 AND workflow_id = 'crowd-1'").bind(event).run();
  await curfew.store(document);
  assert.equal((await curfew.api("PUT", `/v1/workflows/${document.id}`, document)).status, 200, "it is one of the 100");
});

/** Adds `count` runs to those that the event has led to. */
async function insertStarts(event: string, key: string, count: number): Promise<void> {
  const database = await curfew.miniflare.getD1Database("DB", "curfew");
  const rows = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
    INSERT INTO event_starts SELECT ?1, 'filler-' || i, ?3 FROM n`;
  await database.prepare(rows).bind(`${event}|${key}`, count, Date.now()).run();
}

const startsOfRoot = async (root: string): Promise<number> => {
  const database = await curfew.miniflare.getD1Database("DB", "curfew");
  const count = database.prepare("SELECT count(*) AS count FROM event_starts WHERE root = ?1").bind(root);
  return (await count.first<{ count: number }>())!.count;
};
const startsOfEvent = (event: string, key: string) => startsOfRoot(`${event}|${key}`);

test("one event leads to at most 1 000 runs, through any number of emitted events", async () => {
  const [first, second, third] = [freshId("first"), freshId("second"), freshId("third")];
  const child = await stored(oneTask([emit(third, "${input}")]));
  // Two runs of the first event; each emits, itself and by a child.
  const direct = await stored(oneTask([emit(second, "${input}")], { workflow: { trigger: { event: first } } }));
  const byChild = await stored(callWorkflow(child, { workflow: { trigger: { event: first } } }));
  const [a, b] = [await stored(triggered(second)), await stored(triggered(second))];
  const [c, d] = [await stored(triggered(third)), await stored(triggered(third))];
  await insertStarts(first, "k", 995);
  const answer = await publish(first, { n: 1 }, "k");
  assert.deepEqual(started(answer).sort(), [direct.id, byChild.id].sort(), answer.text);
  assert.deepEqual(answer.json.refused, []);
  // 995, two runs of the event itself, and three of the four that follow.
  const emitters = [answer.json.runs.find((run: { workflow_id: string }) => run.workflow_id === direct.id).id];
  emitters.push(childRunId(answer.json.runs.find((run: { workflow_id: string }) => run.workflow_id === byChild.id).id));
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
  assert.equal(await startsOfEvent(first, "k"), 998);
  // Publishing the same event again changes nothing; another event with the same name has its own limit.
  assert.equal((await publish(first, { n: 1 }, "k")).status, 200);
  assert.equal(await startsOfEvent(first, "k"), 998);
  await publish(first, { n: 2 }, "k2");
  await until("seven runs", async () => (await followed()).length === 7);
  assert.equal(await startsOfEvent(first, "k2"), 4);
});

test("an event whose runs emit nothing writes no rows, and old rows are removed", async () => {
  const event = freshId("plain");
  const { id } = await stored(triggered(event));
  await publish(event, 1, "k");
  assert.equal((await runsOf(id)).length, 1);
  const run = await curfew.runToEnd(oneTask([emit(event, 2)]));
  assert.equal(run.status, "completed");
  assert.equal((await runsOf(id, 2)).length, 2);
  const database = await curfew.miniflare.getD1Database("DB", "curfew");
  const rows = await database.prepare("SELECT root FROM event_starts WHERE root LIKE ?1").bind(`${event}|%`).all();
  assert.deepEqual(rows.results, []);
  await database.prepare("INSERT INTO event_starts VALUES ('old', 'a', 0), ('new', 'a', ?1)").bind(Date.now()).run();
  await fetch(`${curfew.url}/cdn-cgi/local/scheduled`);
  await until("the old row to be deleted", async () => (await startsOfRoot("old")) === 0);
  assert.equal(await startsOfRoot("new"), 1);
});
