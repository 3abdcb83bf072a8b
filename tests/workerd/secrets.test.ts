// A secret is sent to the peer that needs it and appears nowhere else, whatever the peer does.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { RunView } from "./api-types.ts";
import { freshId, oneTask, request, set, singleAttempt } from "./document-builders.ts";
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
  const echoing = sendingSecret("/ok") as any;
  const first = { ref: "echo", action: echoing.action };
  const failed = await curfew.runToEnd(oneTask([first, { ref: "tell", action: quick }]), { url: peer.url });
  assert.deepEqual([failed.status, failed.error?.class], ["failed", "server_error"]);
  assert.equal(peer.seen(failing).length, 3);
  await assertNoSecret(failed.id);

  const dripping = { ...action, implementation: { ...action.implementation, url: "${input.url}/drip/50/100" } };
  const timedOut = await curfew.runToEnd(
    oneTask([first, { ref: "tell", action: dripping }], { node: { timeout: "1500ms" } }),
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
    const document = oneTask([request({ url: peer.url + path, headers: { "x-api-key": "${secret.KEY}", "x-kept": "1" } })]);
    const run = await ascii.runToEnd(document);
    assert.equal(run.status, "completed", JSON.stringify(run.error));
    const echoed = await ascii.runToEnd(oneTask([request({ url: `${peer.url}/ok`, headers: { authorization: "Bearer ${secret.KEY}" } })]));
    assert.equal(echoed.output?.body.headers.authorization, "Bearer [redacted]", JSON.stringify(echoed.error));
    assert.equal(peer.seen(path)[0]?.headers["x-api-key"], "key-0123456789");
    assert.deepEqual([elsewhere.requests[0]?.headers["x-api-key"], elsewhere.requests[0]?.headers["x-kept"]], [undefined, "1"]);
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

test("a task that names no secret reports none that another has sent", async () => {
  const told = { value: "" };
  const remembering = `/remembering/${freshId("s")}`;
  peer.route(remembering, (seen) => {
    if (seen.query["token"]) told.value = seen.query["token"];
    return { headers: { "x-echo": encodeURIComponent(told.value) }, body: { told: told.value, [told.value]: [`it was ${told.value}`] } };
  });
  const sent = await curfew.runToEnd(oneTask([sendingSecret(remembering)]), { url: peer.url });
  assert.equal(told.value, VALUE, JSON.stringify(sent.error));
  const read = await curfew.runToEnd(oneTask([request({ url: peer.url + remembering })]));
  assert.deepEqual(read.output?.body, { told: "[redacted]", "[redacted]": ["it was [redacted]"] }, JSON.stringify(read.error));
  assert.equal(read.output?.headers["x-echo"], "[redacted]");
  await assertNoSecret(read.id);
});

/** Two peers, and an executor whose secret is bound to the first. */
async function withBoundSecret(test: (bound: Curfew, allowed: Peer, other: Peer) => Promise<void>): Promise<void> {
  const [allowed, other] = await Promise.all([startPeer(), startPeer()]);
  const setting = { KEY: [new URL(allowed.url).host, "binding:ECHO"], FREE: [] };
  const executorVars = { CURFEW_SECRETS: setting, KEY: "key-0123456789", FREE: "free-0123456789" };
  const bound = await startCurfew({ executorVars, services: { SECOND: "echo" } });
  try {
    await test(bound, allowed, other);
  } finally {
    await Promise.all([bound.dispose(), allowed.close(), other.close()]);
  }
}

test("a secret is only sent to the hosts it is bound to", () =>
  withBoundSecret(async (bound, allowed, other) => {
    const headers = { authorization: "Bearer ${secret.KEY}" };
    const calling = (kind: string, implementation: object) => bound.runToEnd(oneTask([{ ref: "call", action: { kind, implementation, execution: singleAttempt } }]));
    const assertRefused = (run: RunView, what: string, place: string) => {
      assert.deepEqual([run.error?.code, run.error?.class], ["secret_not_allowed", "permanent"], `${what}: ${JSON.stringify(run)}`);
      assert.ok(run.error?.message.startsWith(`the secret "KEY" may not be sent to ${place}: `), run.error?.message);
      assert.equal(other.requests.length, 0, what);
    };
    const otherHost = `"${new URL(other.url).host}"`;
    const model = { provider: "openai", model: "m", prompt: "p", api_key: "${secret.KEY}" };
    for (const [kind, field, implementation] of [
      ["http_request", "url", { headers }],
      ["mcp_tool", "server_url", { tool: "t", headers }],
      ["shell", "url", { command: "make", headers }],
      ["llm_call", "base_url", model],
    ] as const) {
      assertRefused(await calling(kind, { ...implementation, [field]: `${other.url}/x` }), kind, otherHost);
      const before = allowed.requests.length;
      await calling(kind, { ...implementation, [field]: `${allowed.url}/x` });
      assert.ok(allowed.requests.length > before, `${kind} calls its host`);
    }
    assert.ok(allowed.requests.every(({ headers }) => headers["authorization"] === "Bearer key-0123456789"));

    const away = `/go/${freshId("r")}`;
    allowed.route(away, () => ({ status: 302, headers: { location: `${other.url}/ok` }, body: {} }));
    assertRefused(await calling("http_request", { url: allowed.url + away, headers }), "a redirect", otherHost);

    const body = { key: "${secret.KEY}" };
    assertRefused(await calling("service_call", { binding: "SECOND", body }), "a binding", 'the binding "SECOND"');
    assertRefused(await calling("shell", { binding: "SECOND", command: "make", env: body }), "a runner", 'the binding "SECOND"');
    assertRefused(await calling("llm_call", { provider: "workers_ai", model: "m", prompt: "${secret.KEY}" }), "Workers AI", 'the binding "AI"');
    const run = await calling("service_call", { binding: "ECHO", body });
    assert.equal(run.output?.body, '{"key":"[redacted]"}', JSON.stringify(run.error));

    const free = await calling("http_request", { url: `${other.url}/ok`, headers: { authorization: "${secret.FREE}" } });
    assert.equal(free.status, "completed", JSON.stringify(free.error));
    assert.equal(other.requests[0]?.headers["authorization"], "free-0123456789");
  }));

test("an invalid CURFEW_SECRETS fails every use of a secret and is logged", async () => {
  const executorVars = { CURFEW_SECRETS: '{"KEY": "key-0123456789"}', KEY: "key-0123456789" };
  const invalid = await startCurfew({ executorVars });
  try {
    const path = `/ok/${freshId("s")}`;
    const run = await invalid.runToEnd(oneTask([request({ url: peer.url + path, headers: { "x-a": "${secret.KEY}" } })]));
    assert.deepEqual([run.error?.code, run.error?.class], ["secret_not_allowed", "permanent"]);
    assert.match(run.error?.message ?? "", /CURFEW_SECRETS is invalid, .*: "KEY" needs a list of hosts/);
    assert.equal(peer.seen(path).length, 0);
    const other = await invalid.runToEnd(oneTask([request({ url: peer.url + path })]));
    assert.equal(other.status, "completed", JSON.stringify(other.error));
    assert.equal(invalid.logLines("invalid_setting").length, 1);
    assert.ok(!(await invalid.visibleText(run.id)).includes("key-0123456789"));
  } finally {
    await invalid.dispose();
  }
});

test("a document that computes with a secret is refused, and one whose host is data has a warning", async () => {
  const computing = oneTask([request({ url: peer.url, headers: { "x-a": "${secret.API_TOKEN + 'x'}" } })]);
  const refused = await curfew.api("PUT", `/v1/workflows/${computing.id}`, computing);
  assert.equal(refused.status, 422, refused.text);
  const [problem] = refused.json.error.details;
  assert.deepEqual([problem.code, problem.pointer], ["invalid_secret", "/tasks/0/steps/0/action/implementation/headers/x-a"]);

  const copying = oneTask([set({ "state.header": "Bearer ${secret.API_TOKEN}" })]);
  const notSent = await curfew.api("PUT", `/v1/workflows/${copying.id}`, copying);
  assert.equal(notSent.status, 422, notSent.text);
  assert.match(notSent.text, /a secret may only be sent/);

  const anywhere = oneTask([sendingSecret("/ok")]);
  const stored = await curfew.api("PUT", `/v1/workflows/${anywhere.id}`, anywhere);
  assert.equal(stored.status, 201, stored.text);
  const warnings = stored.json.warnings.map(({ code, pointer }: any) => [code, pointer]);
  const noTimeout = ["no_timeout", "/tasks/0/steps/0"];
  assert.deepEqual(warnings, [noTimeout, ["secret_to_any_host", "/tasks/0/steps/0/action/implementation/url"]]);
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
