// Authorization: bearer tokens and roles, and deployments without tokens.
import assert from "node:assert/strict";
import { request as httpRequest } from "node:http";
import { after, before, test } from "node:test";
import { oneTask, set } from "./document-builders.ts";
import { ADMIN, OPERATE, READ, roleVars, startCurfew, type Curfew } from "./harness.ts";


let guarded: Curfew;
let open: Curfew;
let misconfigured: Curfew;
const document = oneTask([set({ a: 1 })]);
const runs = `/v1/workflows/${document.id}/runs`;

before(async () => {
  [guarded, open, misconfigured] = await Promise.all([
    startCurfew({ vars: roleVars }),
    startCurfew(),
    startCurfew({ vars: { CURFEW_TOKENS: "not json" } }),
  ]);
  const stored = await guarded.api("PUT", `/v1/workflows/${document.id}`, document, ADMIN);
  assert.equal(stored.status, 201, stored.text);
});
after(() => Promise.all([guarded.dispose(), open.dispose(), misconfigured.dispose()]));

const CALLS: [method: string, path: string, body?: unknown][] = [
  ["GET", "/v1/workflows"],
  ["GET", "/v1/runs"],
  ["GET", "/v1/runs/some-run"],
  ["GET", "/v1/runs/some-run/tokens"],
  ["GET", "/v1/runs/some-run/events"],
  ["GET", "/v1/runs/some-run/timeouts"],
  ["GET", "/v1/runs/some-run/timeouts/1"],
  ["GET", "/v1/runs/some-run/resume"],
  ["GET", "/v1/runs/some-run/deliverable"],
  ["PUT", `/v1/workflows/${document.id}`, document],
  ["POST", runs, { input: {} }],
  ["POST", "/v1/runs/some-run/cancel"],
  ["POST", "/v1/runs/some-run/pause"],
  ["POST", "/v1/runs/some-run/resume"],
  ["POST", "/v1/runs/some-run/restart"],
  ["POST", "/v1/runs/some-run/extend", { by_ms: 1000 }],
  ["POST", "/v1/runs/some-run/retry", { mode: "retry_step" }],
  ["POST", "/v1/runs/some-run/signals/news", {}],
  ["POST", "/v1/runs/some-run/gates/g1", { choice: "approve" }],
  ["GET", "/v1/gates"],
];

test("a missing token, a wrong token and another scheme are a 401 everywhere", async () => {
  for (const [method, path, body] of CALLS) {
    for (const token of [undefined, "", "wrong", READ.slice(0, -1), `${READ}x`, READ.toUpperCase()]) {
      const answer = await guarded.api(method, path, body, token);
      assert.equal(answer.status, 401, `${method} ${path} with ${token}: ${answer.text}`);
      assert.equal(answer.json.error.code, "unauthorized");
    }
  }
  const basic = await fetch(`${guarded.url}/v1/runs`, { headers: { authorization: `Basic ${READ}` } });
  assert.equal(basic.status, 401);
});

test("the role read cannot change anything", async () => {
  assert.equal((await guarded.api("GET", `/v1/workflows/${document.id}`, undefined, READ)).status, 200);
  for (const [method, path] of CALLS.filter(([method]) => method === "GET")) {
    const answer = await guarded.api(method, path, undefined, READ);
    assert.ok([200, 404].includes(answer.status), `${method} ${path}: ${answer.text}`);
  }
  for (const [method, path, body] of CALLS.filter(([method]) => method !== "GET")) {
    const answer = await guarded.api(method, path, body, READ);
    assert.equal(answer.status, 403, `${method} ${path}: ${answer.text}`);
    assert.equal(answer.json.error.code, "forbidden");
  }
});

test("the role operate starts, reads and cancels runs", async () => {
  const started = await guarded.api("POST", runs, { input: {} }, OPERATE);
  assert.equal(started.status, 201, started.text);
  const run = await guarded.api("GET", `/v1/runs/${started.json.id}?wait_ms=10000`, undefined, OPERATE);
  assert.equal(run.json.status, "completed", run.text);
  const cancelled = await guarded.api("POST", `/v1/runs/${started.json.id}/cancel`, undefined, OPERATE);
  assert.equal(cancelled.status, 409, cancelled.text);
});

test("the role operate cannot change documents", async () => {
  const answer = await guarded.api("PUT", `/v1/workflows/${document.id}`, document, OPERATE);
  assert.equal(answer.status, 403, answer.text);
  assert.equal(answer.json.error.code, "forbidden");
});

test("the role admin may do everything", async () => {
  assert.equal((await guarded.api("PUT", `/v1/workflows/${document.id}`, document, ADMIN)).status, 200);
  assert.equal((await guarded.api("POST", runs, { input: {} }, ADMIN)).status, 201);
  assert.equal((await guarded.api("GET", "/v1/runs", undefined, ADMIN)).status, 200);
});

test("health needs no token", async () => {
  assert.equal((await guarded.api("GET", "/healthz")).status, 200);
});

test("no response contains a token", async () => {
  const answer = await guarded.api("GET", "/v1/runs", undefined, "a-guess-that-may-be-nearly-right");
  assert.ok(!answer.text.includes("a-guess-that-may-be-nearly-right"));
  assert.ok(!guarded.logs.join("\n").includes(ADMIN));
});

test("without tokens only loopback hosts are served", async () => {
  assert.equal((await open.api("GET", "/v1/runs")).status, 200);
  for (const host of ["localhost", "127.0.0.1:8787", "[::1]:8787"]) {
    assert.equal(await statusForHost(open, host), 200, host);
  }
  for (const host of ["curfew.example.com", "localhost.example.com", "127.0.0.1.example.com"]) {
    const status = await statusForHost(open, host);
    assert.equal(status, 503, `${host}: no request is allowed until tokens are configured`);
  }
});

test("invalid tokens in the configuration admit no request", async () => {
  for (const token of [undefined, "not json", ADMIN]) {
    const answer = await misconfigured.api("GET", "/v1/runs", undefined, token);
    assert.equal(answer.status, 503, `${token}: ${answer.text}`);
    assert.equal(answer.json.error.code, "auth_not_configured");
  }
});

/** `fetch` cannot set the Host header; node:http can. */
function statusForHost(curfew: Curfew, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(`${curfew.url}/v1/runs`, { headers: { host } }, (response) => {
      response.resume();
      response.on("end", () => resolve(response.statusCode ?? 0));
    });
    request.on("error", reject);
    request.end();
  });
}
