// A secret is sent to the peer that needs it and appears nowhere else, whatever the peer does.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { freshId, oneTask, request, set } from "./document-builders.ts";
import { startCurfew, type Curfew } from "./harness.ts";
import { startPeer, type Peer } from "./peer.ts";

const VALUE = 'tok "9f/8ü"+7%20e';
const SPELLINGS = [
  VALUE,
  JSON.stringify(VALUE).slice(1, -1),
  encodeURIComponent(VALUE),
  new URLSearchParams({ v: VALUE }).toString().slice(2),
  encodeURI(VALUE),
  "9f/8",
  "9f%2F8",
];

let curfew: Curfew;
let peer: Peer;
before(async () => {
  const executorVars = { CURFEW_SECRETS: "API_TOKEN, UNSET", API_TOKEN: VALUE, HIDDEN: "not-listed-value" };
  [curfew, peer] = await Promise.all([startCurfew({ executorVars }), startPeer()]);
});
after(() => Promise.all([curfew.dispose(), peer.close()]));

async function assertNoSecret(runId: string): Promise<void> {
  const text = await curfew.visibleText(runId);
  for (const spelling of SPELLINGS) assert.ok(!text.includes(spelling), `${spelling} in ${text.slice(0, 4_000)}`);
}

/** Sends the secret in the body and the query. Headers are ASCII and have their own test. */
const sendingSecret = (path: string) =>
  request(
    {
      method: "POST",
      url: `\${input.url}${path}`,
      query: { token: "${secret.API_TOKEN}" },
      body: { nested: ["${secret.API_TOKEN}"], text: "it is ${secret.API_TOKEN}!" },
    },
    { ref: "tell" },
  );

test("secrets that a peer echoes are redacted", async () => {
  const path = `/ok/${freshId("s")}`;
  const run = await curfew.runToEnd(oneTask([sendingSecret(path)]), { url: peer.url });
  assert.equal(run.status, "completed", JSON.stringify(run.error));
  const [seen] = peer.seen(path);
  assert.deepEqual(JSON.parse(seen?.body ?? ""), { nested: [VALUE], text: `it is ${VALUE}!` });
  assert.equal(seen?.query["token"], VALUE);
  assert.deepEqual(run.output.body.body, { nested: ["[redacted]"], text: "it is [redacted]!" });
  assert.equal(run.output.body.query.token, "[redacted]");
  await assertNoSecret(run.id);
});

test("secrets are redacted in failures, retries and partial work", async () => {
  const failing = `/fail/${freshId("s")}`;
  peer.route(failing, (seen) => ({ status: 500, headers: { "x-echo": encodeURIComponent(seen.query["token"] ?? "") }, body: `${"x".repeat(180)}${seen.body}` }));
  const action = { kind: "http_request", implementation: (sendingSecret(failing) as any).action.implementation };
  const quick = { ...action, execution: { retry_policy: { max_attempts: 3, initial_delay_ms: 10 } } };
  const failed = await curfew.runToEnd(oneTask([set({ "state.header": "${secret.API_TOKEN}", kept: "${secret.API_TOKEN}" }), { ref: "tell", action: quick }]), {
    url: peer.url,
  });
  assert.deepEqual([failed.status, failed.error?.class], ["failed", "server_error"]);
  assert.equal(peer.seen(failing).length, 3);
  await assertNoSecret(failed.id);

  const dripping = { ...action, implementation: { ...action.implementation, url: "${input.url}/drip/50/100" } };
  const timedOut = await curfew.runToEnd(
    oneTask([set({ "state.header": "${secret.API_TOKEN}", kept: "${secret.API_TOKEN}" }), { ref: "tell", action: dripping }], {
      node: { timeout: "600ms" },
    }),
    { url: peer.url },
  );
  assert.equal(timedOut.error?.class, "timeout");
  assert.match(await curfew.visibleText(timedOut.id), /\[redacted\]/, "the finished step is there, without its secret");
  await assertNoSecret(timedOut.id);
});

test("a header contains the secret, and another origin does not get it", async () => {
  const ascii = await startCurfew({ executorVars: { CURFEW_SECRETS: '["KEY"]', KEY: "key-0123456789" } });
  const elsewhere = await startPeer();
  try {
    const path = `/go/${freshId("r")}`;
    peer.route(path, () => ({ status: 307, headers: { location: `${elsewhere.url}/ok` }, body: {} }));
    const document = oneTask([request({ url: peer.url + path, headers: { "x-api-key": "${secret.KEY}" } })]);
    const run = await ascii.runToEnd(document);
    assert.equal(run.status, "completed", JSON.stringify(run.error));
    const echoed = await ascii.runToEnd(oneTask([request({ url: `${peer.url}/ok`, headers: { authorization: "Bearer ${secret.KEY}" } })]));
    assert.equal(echoed.output?.body.headers.authorization, "Bearer [redacted]", JSON.stringify(echoed.error));
    assert.equal(peer.seen(path)[0]?.headers["x-api-key"], "key-0123456789");
    assert.equal(elsewhere.requests[0]?.headers["x-api-key"], undefined);
  } finally {
    await Promise.all([ascii.dispose(), elsewhere.close()]);
  }
});

test("only listed secrets can be read", async () => {
  for (const [name, reason] of [["HIDDEN", /does not list it/], ["CURFEW_ROLE", /does not list it/], ["UNSET", /has no secret/]] as const) {
    const path = `/ok/${freshId("s")}`;
    const run = await curfew.runToEnd(oneTask([request({ url: peer.url + path, headers: { "x-a": `\${secret.${name}}` } })]));
    assert.deepEqual([run.error?.code, run.error?.class], ["secret_not_allowed", "permanent"]);
    assert.match(run.error?.message ?? "", reason);
    assert.match(run.error?.message ?? "", new RegExp(name));
    assert.equal(peer.seen(path).length, 0);
    assert.ok(!(await curfew.visibleText(run.id)).includes("not-listed-value"));
  }
});

test("secrets are refused outside an implementation", async () => {
  const cases: [pointer: string, document: { id: string }][] = [
    ["/nodes/0/input_mapping", oneTask([set({ a: 1 })], { node: { input_mapping: { a: "${secret.API_TOKEN}" } } })],
    ["/output_mapping", oneTask([set({ a: 1 })], { workflow: { output_mapping: "${secret.API_TOKEN}" } })],
    ["/tasks/0/steps/0/condition", oneTask([set({ a: 1 }, { condition: "secret.API_TOKEN == 'x'" })])],
  ];
  for (const [pointer, document] of cases) {
    const response = await curfew.api("PUT", `/v1/workflows/${document.id}`, document);
    assert.equal(response.status, 422, response.text);
    assert.match(response.text, /unknown_name/);
    assert.ok(response.text.includes(pointer), response.text);
  }
});
