// The executor: four kinds of action, order of steps, conditions, mappings, failures of steps.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { check, freshId, oneTask, request, set } from "./document-builders.ts";
import { startCurfew, type Curfew } from "./harness.ts";
import { startPeer, type Peer } from "./peer.ts";

let curfew: Curfew;
let peer: Peer;
before(async () => {
  [curfew, peer] = await Promise.all([startCurfew(), startPeer()]);
});
after(() => Promise.all([curfew.dispose(), peer.close()]));

test("http_request sends what its templates say and returns status, headers and body", async () => {
  const run = await curfew.runToEnd(
    oneTask([
      request({
        method: "POST",
        url: "${input.url}/ok/${input.id}",
        headers: { "x-caller": "run ${input.id}" },
        query: { page: "${input.page}", word: "a b&c" },
        body: { list: "${input.list}", text: "id=${input.id}", page: "${input.page}" },
      }),
    ]),
    { url: peer.url, id: "o-7", page: 3, list: [1, "two", null, { three: 3.5 }] },
  );
  assert.equal(run.status, "completed", JSON.stringify(run.error));
  assert.equal(run.output.status, 200);
  assert.match(run.output.headers["content-type"], /application\/json/);
  const echo = run.output.body;
  assert.equal(echo.method, "POST");
  assert.equal(echo.path, "/ok/o-7");
  assert.deepEqual(echo.query, { page: "3", word: "a b&c" });
  assert.equal(echo.headers["x-caller"], "run o-7");
  assert.match(echo.headers["content-type"], /application\/json/);
  assert.deepEqual(echo.body, { list: [1, "two", null, { three: 3.5 }], text: "id=o-7", page: 3 });
});

test("text that is not JSON is a valid body", async () => {
  const run = await curfew.runToEnd(oneTask([request({ url: "${input.url}" })]), { url: `${peer.url}/text` });
  assert.equal(run.output.body, "plain words", JSON.stringify(run.error));
});

test("expect_status defines success", async () => {
  const expecting = (statuses: unknown) => oneTask([request({ url: "${input.url}", expect_status: statuses })]);
  const gone = await curfew.runToEnd(expecting([200, 404]), { url: `${peer.url}/status/404` });
  assert.equal(gone.output?.status, 404, JSON.stringify(gone.error));
  const fine = await curfew.runToEnd(expecting(204), { url: `${peer.url}/ok` });
  assert.equal(fine.status, "failed");
  assert.match(fine.error?.message ?? "", /200/);
});

for (const [status, errorClass] of [
  [400, "bad_request"],
  [401, "auth"],
  [403, "auth"],
  [404, "not_found"],
  [422, "validation"],
] as const) {
  test(`status ${status} is of class ${errorClass} and is not retried`, async () => {
    const path = `/status/${status}/${freshId("s")}`;
    const run = await curfew.runToEnd(oneTask([request({ url: "${input.url}" })]), { url: peer.url + path });
    assert.equal(run.status, "failed");
    assert.equal(run.error?.class, errorClass);
    assert.match(run.error?.message ?? "", new RegExp(String(status)));
    assert.equal(peer.seen(path).length, 1);
  });
}

test("a 5xx and a refused connection are failures of their class", async () => {
  const failing = await curfew.runToEnd(oneTask([request({ url: "${input.url}" })]), { url: `${peer.url}/status/503` });
  assert.equal(failing.error?.class, "server_error");
  const refused = await curfew.runToEnd(oneTask([request({ url: "${input.url}" })]), { url: "http://127.0.0.1:1/" });
  assert.equal(refused.error?.class, "network");
});

test("an invalid URL fails its token", async () => {
  for (const url of ["not a url", "ftp://127.0.0.1/x", ""]) {
    const run = await curfew.runToEnd(oneTask([request({ url: "${input.url}" })]), { url });
    assert.equal(run.status, "failed", url);
    assert.ok(run.error?.message, url);
  }
});

test("service_call reaches the bound Worker", async () => {
  const call = (implementation: object) => oneTask([{ action: { kind: "service_call", implementation } }]);
  const run = await curfew.runToEnd(call({ binding: "ECHO", path: "/orders/${input.id}", method: "PUT", body: { id: "${input.id}" } }), {
    id: 42,
  });
  assert.equal(run.status, "completed", JSON.stringify(run.error));
  assert.equal(run.output.method, "PUT");
  assert.equal(run.output.path, "/orders/42");
  assert.deepEqual(JSON.parse(run.output.body), { id: 42 });

  // Without a body the step's input is sent.
  const plain = await curfew.runToEnd(call({ binding: "ECHO", path: "/plain", method: "POST" }), { id: 43 });
  assert.deepEqual(JSON.parse(plain.output?.body), { id: 43 }, JSON.stringify(plain.error));

  const failed = await curfew.runToEnd(call({ binding: "ECHO", path: "/fail", method: "POST" }));
  assert.equal(failed.error?.class, "not_found");
  const unbound = await curfew.runToEnd(call({ binding: "NOBODY", path: "/", method: "GET" }));
  assert.equal(unbound.status, "failed");
  assert.match(unbound.error?.message ?? "", /NOBODY/);
});

test("service_call cannot reach a binding that is no service", async () => {
  // The last ones are Curfew's own.
  for (const binding of ["CURFEW_ALLOW_PRIVATE", "DB", "RUNS", "BREAKERS", "EXECUTOR", "INDEX_QUEUE", "TASK_QUEUE"]) {
    const implementation = { binding, path: "/", method: "GET" };
    const run = await curfew.runToEnd(oneTask([{ action: { kind: "service_call", implementation } }]));
    assert.equal(run.status, "failed", binding);
    assert.match(run.error!.message, /no service binding/, binding);
  }
});

test("update_context writes state and output in the order of the steps", async () => {
  const run = await curfew.runToEnd(
    oneTask([
      set({ "state.count": 1, "output.list": ["${input.name}"] }),
      set({ "state.count": "${state.count + 1}" }),
      set({ total: "${state.count * 10}", "output.deep.name": "<${input.name}>" }),
    ]),
    { name: "Ada" },
  );
  assert.deepEqual(run.output, { list: ["Ada"], total: 20, deep: { name: "<Ada>" } }, JSON.stringify(run.error));
});

test("ordinals, not positions, define the order", async () => {
  const run = await curfew.runToEnd(
    oneTask([set({ word: "second" }, { ref: "b", ordinal: 2 }), set({ word: "first" }, { ref: "a", ordinal: 1 })]),
  );
  assert.equal(run.output.word, "second");
  const [token] = await curfew.tokens(run.id);
  assert.deepEqual(token?.steps.map((step) => step.ref), ["a", "b"]);
});

test("assert fails with its message", async () => {
  const document = oneTask([check("input.age >= 18", "${input.name} is ${input.age}", { ref: "of-age" })]);
  await curfew.store(document);
  const refused = await curfew.ended(await curfew.start(document.id, { name: "Tim", age: 17 }));
  assert.equal(refused.status, "failed");
  assert.equal(refused.error?.class, "assertion");
  assert.equal(refused.error?.message, "Tim is 17");
  assert.equal(refused.error?.step_ref, "of-age");
  assert.equal((await curfew.ended(await curfew.start(document.id, { name: "Tom", age: 18 }))).status, "completed");
});

test("without written output the task's output is the last result", async () => {
  const run = await curfew.runToEnd(oneTask([request({ url: "${input.url}" })]), { url: `${peer.url}/count/${freshId("k")}` });
  assert.deepEqual(run.output.body, { count: 1, ready: true });
});

test("step mappings set the input and store the result", async () => {
  const run = await curfew.runToEnd(
    oneTask([
      request(
        { url: "${input.target}", method: "POST", body: { doubled: "${input.twice}" } },
        {
          input_mapping: { target: "${input.url}", twice: "${input.number * 2}" },
          output_mapping: { "state.sent": "${result.body.body.doubled}", "output.status": "${result.status}" },
        },
      ),
      set({ "output.sent": "${state.sent}", "output.number": "${input.number}" }),
    ]),
    { url: `${peer.url}/ok`, number: 21 },
  );
  assert.deepEqual(run.output, { status: 200, sent: 42, number: 21 }, JSON.stringify(run.error));
});

test("a false condition skips its step", async () => {
  const run = await curfew.runToEnd(
    oneTask([
      set({ a: 1 }, { ref: "taken", condition: "input.yes" }),
      set({ b: 1 }, { ref: "skipped", condition: "!input.yes" }),
    ]),
    { yes: true },
  );
  assert.deepEqual(run.output, { a: 1 });
  const [token] = await curfew.tokens(run.id);
  assert.deepEqual(
    token?.steps.map((step) => [step.ref, step.status]),
    [["taken", "completed"], ["skipped", "skipped"]],
  );
});

test("a condition may end the task, as a success or a failure", async () => {
  const ending = (outcome: string) =>
    oneTask([
      set({ a: 1 }),
      set({ b: 1 }, { ref: "the-end", condition: { if: "input.enough", then: outcome, else: "continue" } }),
      set({ c: 1 }),
    ]);
  const succeeded = await curfew.runToEnd(ending("succeed"), { enough: true });
  assert.deepEqual(succeeded.output, { a: 1 }, JSON.stringify(succeeded.error));
  const failed = await curfew.runToEnd(ending("fail"), { enough: true });
  assert.equal(failed.status, "failed");
  assert.equal(failed.error?.step_ref, "the-end");
  const gone = await curfew.runToEnd(ending("succeed"), { enough: false });
  assert.deepEqual(gone.output, { a: 1, b: 1, c: 1 });
});

test("on_failure continue stores the error and continues", async () => {
  const run = await curfew.runToEnd(
    oneTask([
      request({ url: "${input.url}" }, { ref: "may-fail", on_failure: "continue" }),
      set({ errors: "${state._errors}" }),
    ]),
    { url: `${peer.url}/status/404` },
  );
  assert.equal(run.status, "completed", JSON.stringify(run.error));
  assert.equal(run.output.errors.length, 1);
  assert.match(JSON.stringify(run.output.errors[0]), /not_found/);
});

test("on_failure abort stops at the step", async () => {
  const path = `/ok/${freshId("after")}`;
  const run = await curfew.runToEnd(
    oneTask([check("false", "stop here", { on_failure: "abort" }), request({ url: "${input.url}" })]),
    { url: peer.url + path },
  );
  assert.equal(run.error?.message, "stop here");
  assert.equal(peer.seen(path).length, 0);
});

test("on_failure retry runs the task again from step 0 with a fresh context", async () => {
  const first = `/count/${freshId("first")}`;
  const steps = [
    request({ url: `\${input.url}${first}` }, { output_mapping: { "output.first": "${result.body.count}" } }),
    set({ "output.rounds": "${has(state.rounds) ? state.rounds + 1 : 1}", "state.rounds": 1 }),
    request({ url: "${input.url}/flaky/${input.key}/2/400" }, { ref: "flaky", on_failure: "retry" }),
  ];
  const retry = { max_attempts: 3, backoff: "none" };
  const run = await curfew.runToEnd(oneTask(steps, { task: { retry } }), { url: peer.url, key: freshId("flaky") });
  assert.equal(run.status, "completed", JSON.stringify(run.error));
  assert.deepEqual(run.output, { first: 3, rounds: 1 });
  assert.equal(peer.seen(first).length, 3);

  const spent = await curfew.runToEnd(oneTask(steps, { task: { retry: { ...retry, max_attempts: 2 } } }), {
    url: peer.url,
    key: freshId("flaky"),
  });
  assert.equal(spent.status, "failed");
  assert.equal(spent.error?.class, "bad_request");
  assert.equal(spent.error?.step_ref, "flaky");
});

test("on_failure retry without task.retry fails at once", async () => {
  const path = `/status/400/${freshId("once")}`;
  const run = await curfew.runToEnd(oneTask([request({ url: "${input.url}" }, { on_failure: "retry" })]), { url: peer.url + path });
  assert.equal(run.status, "failed");
  assert.equal(peer.seen(path).length, 1);
});

test("the schemas of a task check its input and output", async () => {
  const number = { type: "object", required: ["n"], properties: { n: { type: "number" } } };
  const input = await curfew.runToEnd(oneTask([set({ n: 1 })], { task: { input_schema: number } }), { n: "one" });
  assert.equal(input.error?.class, "validation");
  const output = await curfew.runToEnd(oneTask([set({ n: "one" })], { task: { output_schema: number } }));
  assert.equal(output.error?.class, "validation");
  const fine = await curfew.runToEnd(oneTask([set({ n: 1 })], { task: { input_schema: number, output_schema: number } }), { n: 1 });
  assert.equal(fine.status, "completed", JSON.stringify(fine.error));
});

test("tasks run on the executor, in the direct lane", async () => {
  const run = await curfew.runToEnd(oneTask([request({ url: "${input.url}" })], { task: { dispatch: "direct" } }), {
    url: `${peer.url}/ok`,
  });
  const [token] = await curfew.tokens(run.id);
  assert.equal(token?.lane, "direct");
});
