// Async actions: the peer answers at once and brings the result later, by the URL it was given.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { freshId } from "./documents.ts";
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

const handingOut = (execution: object = {}, node: object = {}) => ({
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

/** Starts a run and waits until it waits; the path the peer was told to bring its result to. */
async function handedOut(document = handingOut()) {
  await curfew.store(document);
  const path = `/ok/${freshId("c")}`;
  const id = await curfew.start(document.id, { url: peer.url + path });
  const seen = await until("the peer to be asked", () => peer.seen(path)[0]);
  const url = new URL(JSON.parse(seen.body).bring_to);
  await until("the run to wait", async () => (await curfew.run(id)).status === "waiting");
  return { id, url, callback: url.pathname.replace("/base", "") };
}

test("the result comes by the callback; a second one is a conflict", async () => {
  const { id, url, callback } = await handedOut();
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

test("a webhook's own body is the result, a failure is one, and what does not fit fails", async () => {
  const [plain, failed, wrong] = await Promise.all([handedOut(), handedOut(), handedOut()]);
  await curfew.api("POST", plain.callback, { n: 1, more: true });
  assert.deepEqual((await curfew.ended(plain.id)).output, { n: 1, more: true });
  await curfew.api("POST", failed.callback, { error: { code: "no_luck", message: "it did not work" } });
  const unlucky = await curfew.ended(failed.id);
  assert.deepEqual([unlucky.status, unlucky.error?.code, unlucky.error?.message], ["failed", "no_luck", "it did not work"]);
  await curfew.api("POST", wrong.callback, { output: { m: 1 } });
  assert.equal((await curfew.ended(wrong.id)).error?.code, "schema_mismatch");
});

test("nobody who guesses is heard, and all guesses look the same", async () => {
  const { id, callback } = await handedOut();
  const [run, token, epoch, proof] = callback.split("/").at(-1)!.split("~");
  const guesses = [
    "plain",
    `${run}~${token}~${epoch}~${"0".repeat(32)}`,
    `${run}~${token}~${Number(epoch) + 1}~${proof}`,
    `${run}~t2~${epoch}~${proof}`,
    `${freshId("nobody")}~${token}~${epoch}~${proof}`,
  ];
  for (const guess of guesses) {
    const answer = await curfew.api("POST", `/v1/callbacks/${guess}`, { output: { n: 1 } });
    assert.equal(answer.status, 404, `${guess}: ${answer.text}`);
  }
  assert.equal((await curfew.run(id)).status, "waiting");
  const shown = [await curfew.api("GET", `/v1/runs/${id}`), await curfew.api("GET", `/v1/runs/${id}/tokens`)];
  for (const { text } of shown) assert.ok(!text.includes(proof!), "the capability is nowhere to be read");
  assert.ok(!curfew.logs.some((line) => line.includes(proof!)), "not in the logs either");
});

test("no callback in time is a timeout, reported like any other", async () => {
  const strict = await startCurfew({ vars: { CURFEW_SUSPEND_MS: "300" } });
  try {
    const document = handingOut({ timeout: "300ms" });
    await strict.store(document);
    const id = await strict.start(document.id, { url: `${peer.url}/ok/${freshId("c")}` });
    const run = await strict.ended(id);
    assert.deepEqual([run.status, run.error?.code], ["failed", "execution_timeout"]);
    const [record] = (await strict.api("GET", `/v1/runs/${id}/timeouts`)).json.items;
    assert.deepEqual([record.timeout_event.scope, record.final_action], ["tool", "fail"]);
  } finally {
    await strict.dispose();
  }
});
