// Async actions: the peer responds at once and sends the result later, to a callback URL.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { freshId } from "./document-builders.ts";
import { startCurfew, type Curfew } from "./harness.ts";
import { startPeer, type Peer } from "./peer.ts";
import { until } from "./poll.ts";

let curfew: Curfew;
let peer: Peer;
before(async () => {
  peer = await startPeer();
  curfew = await startCurfew({ vars: { CURFEW_PUBLIC_URL: "https://curfew.example/base/", CURFEW_SUSPEND_MS: "60000" } });
});
after(() => Promise.all([curfew.dispose(), peer.close()]));

const asyncWorkflow = (execution: object = {}, node: object = {}) => ({
  id: freshId("async"),
  timeout: "1m",
  on_timeout: "fail",
  nodes: [{ id: "ask", action_id: "ask", ...node }],
  output_mapping: "${state.ask}",
  actions: [
    {
      id: "ask",
      kind: "http_request",
      execution: { mode: "async", ...execution },
      implementation: { method: "POST", url: "${input.url}", body: { bring_to: "${callback.url}" } },
      output_schema: { type: "object", required: ["n"] },
    },
  ],
});

/** Starts a run, waits until it is suspended and returns the callback path that the peer got. */
async function suspendedRun(document = asyncWorkflow()) {
  await curfew.store(document);
  const path = `/ok/${freshId("c")}`;
  const id = await curfew.start(document.id, { url: peer.url + path });
  const seen = await until("the request at the peer", () => peer.seen(path)[0]);
  const url = new URL(JSON.parse(seen.body).bring_to);
  await until("the run to wait", async () => (await curfew.run(id)).status === "waiting");
  return { id, url, callback: url.pathname.replace("/base", "") };
}

test("a callback delivers the result; a second one is a conflict", async () => {
  const { id, url, callback } = await suspendedRun();
  assert.equal(url.origin, "https://curfew.example");
  const [token] = await curfew.tokens(id);
  assert.equal(token?.status, "suspended");
  const first = await curfew.api("POST", callback, { output: { n: 7 } });
  assert.equal(first.status, 200, first.text);
  const run = await curfew.ended(id);
  assert.deepEqual([run.status, run.output], ["completed", { n: 7 }]);
  const second = await curfew.api("POST", callback, { output: { n: 8 } });
  assert.deepEqual([second.status, second.json.error.code], [409, "stale_attempt"]);
});

test("a callback's body is the result, may report a failure, and fails the token if it does not match the schema", async () => {
  const [plain, failed, wrong] = await Promise.all([suspendedRun(), suspendedRun(), suspendedRun()]);
  await curfew.api("POST", plain.callback, { n: 1, more: true });
  assert.deepEqual((await curfew.ended(plain.id)).output, { n: 1, more: true });
  await curfew.api("POST", failed.callback, { error: { code: "no_luck", message: "it did not work" } });
  const unlucky = await curfew.ended(failed.id);
  assert.deepEqual([unlucky.status, unlucky.error?.code, unlucky.error?.message], ["failed", "no_luck", "it did not work"]);
  await curfew.api("POST", wrong.callback, { output: { m: 1 } });
  assert.equal((await curfew.ended(wrong.id)).error?.code, "schema_mismatch");
});

test("a guessed capability is refused, and all guesses get the same response", async () => {
  const { id, callback } = await suspendedRun();
  const [run, token, epoch, proof] = callback.split("/").at(-1)!.split("~");
  const guesses = [
    "plain",
    `${run}~${token}~${epoch}~${"0".repeat(32)}`,
    `${run}~${token}~${Number(epoch) + 1}~${proof}`,
    `${run}~t2~${epoch}~${proof}`,
    `${freshId("nobody")}~${token}~${epoch}~${proof}`,
  ];
  for (const guess of guesses) {
    const response = await curfew.api("POST", `/v1/callbacks/${guess}`, { output: { n: 1 } });
    assert.equal(response.status, 404, `${guess}: ${response.text}`);
  }
  assert.equal((await curfew.run(id)).status, "waiting");
  const shown = [await curfew.api("GET", `/v1/runs/${id}`), await curfew.api("GET", `/v1/runs/${id}/tokens`)];
  for (const { text } of shown) assert.ok(!text.includes(proof!), "the capability is not visible");
  assert.ok(!curfew.logs.some((line) => line.includes(proof!)), "not in the logs either");
});

test("a missing callback is a timeout like any other", async () => {
  const strict = await startCurfew({ vars: { CURFEW_SUSPEND_MS: "300" } });
  try {
    const document = asyncWorkflow({ timeout: "300ms" });
    await strict.store(document);
    const id = await strict.start(document.id, { url: `${peer.url}/ok/${freshId("c")}` });
    const run = await strict.ended(id);
    assert.deepEqual([run.status, run.error?.code], ["failed", "tool_timeout"]);
    const [record] = (await strict.api("GET", `/v1/runs/${id}/timeouts`)).json.items;
    assert.deepEqual([record.timeout_event.scope, record.final_action, record.error], ["tool", "fail", { code: "tool_timeout" }]);
  } finally {
    await strict.dispose();
  }
});

test("the request contains the callback URL, unless the document places it itself", async () => {
  const path = `/ok/${freshId("c")}`;
  const document = asyncWorkflow();
  const written = asyncWorkflow();
  Object.assign(written.actions[0]!.implementation, { headers: { "Curfew-Callback-Url": "${callback.url}?by=me" } });
  const plain = asyncWorkflow();
  Object.assign(plain.actions[0]!, { execution: {}, implementation: { method: "POST", url: "${input.url}" } });
  for (const { id } of [document, written, plain]) {
    await curfew.store([document, written, plain].find((one) => one.id === id)!);
    await curfew.start(id, { url: `${peer.url}${path}/${id}` });
    await until("the request at the peer", () => peer.seen(`${path}/${id}`)[0]);
  }
  const seen = (id: string) => peer.seen(`${path}/${id}`)[0]!;
  const header = (id: string) => seen(id).headers["curfew-callback-url"];
  assert.equal(header(document.id), JSON.parse(seen(document.id).body).bring_to);
  assert.equal(header(written.id), `${JSON.parse(seen(written.id).body).bring_to}?by=me`);
  assert.equal(header(plain.id), undefined, "no callback is awaited");
});

test("a node's timeout is the deadline of the callback", async () => {
  const { id } = await suspendedRun(asyncWorkflow({}, { timeout: "1500ms" }));
  const [token] = await curfew.tokens(id);
  assert.equal(token?.timeout_at, token!.started_at! + 1_500);
  const run = await curfew.ended(id);
  assert.deepEqual([run.status, run.error?.code], ["failed", "tool_timeout"]);
});

test("outside development a start that needs callbacks is refused without a public URL", async () => {
  const vars = { CURFEW_TOKENS: JSON.stringify({ all: "admin" }) };
  const [unset, set] = await Promise.all([
    startCurfew({ vars }),
    startCurfew({ vars: { ...vars, CURFEW_PUBLIC_URL: "https://curfew.example" } }),
  ]);
  try {
    const name = freshId("called");
    const child = asyncWorkflow();
    const document = { ...asyncWorkflow(), trigger: { event: name } };
    const parent = { id: freshId("parent"), timeout: "1m", nodes: [{ id: "call", workflow_id: child.id }] };
    const plain = { id: freshId("plain"), timeout: "1m", nodes: [{ id: "a" }] };
    for (const at of [unset, set]) {
      for (const one of [child, document, parent, plain]) {
        const stored = await at.api("PUT", `/v1/workflows/${one.id}`, one, "all");
        assert.equal(stored.status, 201, stored.text);
      }
    }
    const start = (at: Curfew, id: string) => at.api("POST", `/v1/workflows/${id}/runs`, { input: { url: `${peer.url}/ok` } }, "all");
    for (const { id } of [document, parent]) {
      const refused = await start(unset, id);
      assert.deepEqual([refused.status, refused.json.error.code], [422, "no_public_url"]);
      assert.match(refused.json.error.message, /CURFEW_PUBLIC_URL/);
      assert.equal((await start(set, id)).status, 201);
    }
    assert.equal((await start(unset, plain.id)).status, 201);
    const raised = await unset.api("POST", `/v1/events/${name}`, { payload: {} }, "all");
    assert.equal(raised.status, 200, raised.text);
    assert.deepEqual([raised.json.runs, raised.json.refused[0].error.code], [[], "no_public_url"]);
  } finally {
    await Promise.all([unset.dispose(), set.dispose()]);
  }
});
