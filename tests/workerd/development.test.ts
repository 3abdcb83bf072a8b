// Development: CURFEW_DEV is on and no credentials are configured. Programs of this machine need none, pages of other origins are
// refused.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { freshId, workflow } from "./document-builders.ts";
import { ADMIN, moduleWorker, roleVars, startCurfew, type Curfew } from "./harness.ts";
import { until } from "./poll.ts";
import { rawRequest } from "./raw-request.ts";

let open: Curfew;
let closed: Curfew;
let guarded: Curfew;
let host: string;

/** The same Worker reaches the coordinator over a service binding. */
const boundClient = moduleWorker("client", "tests/workerd/workers/bound-client.mjs", {
  triggers: [{ type: "fetch", pattern: "*/bound-client" }],
  env: { CURFEW: { type: "worker", worker: "curfew" } },
});

before(async () => {
  [open, closed, guarded] = await Promise.all([
    startCurfew({ extraWorkers: [boundClient] }),
    startCurfew({ vars: { CURFEW_DEV: "off" } }),
    startCurfew({ vars: { ...roleVars, CURFEW_DEV: "on" }, extraWorkers: [boundClient] }),
  ]);
  host = new URL(open.url).host;
});
after(() => Promise.all([open.dispose(), closed.dispose(), guarded.dispose()]));

const outcome = async (method: string, headers: Record<string, string>, body = "", path = "/v1/runs") => {
  const response = await rawRequest(open.url + path, method, headers, body);
  return response.status < 400 ? "ok" : `${response.status} ${response.json?.error?.code}`;
};

/** A run that waits at a gate, and the path to decide it. */
async function waitingAtGate(): Promise<{ id: string; path: string }> {
  const document = workflow({ nodes: [{ id: "review", gate: {} }] });
  await open.store(document);
  const id = await open.start(document.id);
  await until("the run to wait", async () => (await open.run(id)).status === "waiting");
  return { id, path: `/v1/runs/${id}/gates/g1` };
}

test("without credentials and without CURFEW_DEV nothing is answered", async () => {
  for (const [method, path, body] of [["GET", "/v1/runs"], ["PUT", "/v1/workflows/w", { id: "w", nodes: [{ id: "a" }] }]] as const) {
    const response = await closed.api(method, path, body, ADMIN);
    assert.equal(response.status, 503, response.text);
    assert.equal(response.json.error.code, "auth_not_configured");
    assert.match(response.json.error.message, /CURFEW_TOKENS.*CURFEW_ACCESS_TEAM.*CURFEW_DEV/);
  }
  assert.equal((await closed.api("GET", "/healthz")).status, 200);
});

test("where tokens are configured, CURFEW_DEV changes nothing", async () => {
  assert.equal((await guarded.api("GET", "/v1/runs")).status, 401);
  assert.equal((await guarded.api("GET", "/v1/runs", undefined, ADMIN)).status, 200);
});

test("only a loopback Host is answered", async () => {
  const { port } = new URL(open.url);
  for (const local of [`localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`, "localhost", "127.0.0.1:8787"]) {
    assert.equal(await outcome("GET", { host: local }), "ok", local);
  }
  for (const foreign of ["curfew.example.com", "localhost.example.com", "127.0.0.1.example.com", `evil.example:${port}`]) {
    assert.equal(await outcome("GET", { host: foreign }), "403 not_local", foreign);
  }
});

test("a name that resolves to loopback cannot claim another URL", async () => {
  // The development server takes the URL of the request from this header, which a page may send to its own origin.
  const forged = { host: `evil.example:${new URL(open.url).port}`, "mf-original-url": `http://${host}/v1/runs` };
  assert.equal(await outcome("GET", forged), "403 not_local");
  // wrangler's second server replaces the Host, too. This is what arrives.
  const replaced = { "accept-language": "en" };
  assert.equal(await outcome("GET", replaced), "403 cross_origin");
  assert.equal(await outcome("POST", { ...replaced, origin: "http://evil.example:8787", "content-type": "application/json" }, "{}", "/v1/events/paid"), "403 cross_origin");
});

test("a page of another origin is refused", async () => {
  const json = { "content-type": "application/json" };
  const foreign: Record<string, string>[] = [
    { origin: "https://evil.example" },
    { origin: "http://localhost:3000" },
    { origin: "null" },
    { "sec-fetch-site": "cross-site" },
    { "sec-fetch-site": "same-site" },
    { origin: `http://${new URL(open.url).host}`, "sec-fetch-site": "cross-site" },
  ];
  for (const headers of foreign) {
    for (const method of ["GET", "POST"]) {
      const path = method === "GET" ? "/v1/runs" : "/v1/events/paid";
      assert.equal(await outcome(method, { ...json, ...headers }, method === "GET" ? "" : "{}", path), "403 cross_origin", `${method} ${JSON.stringify(headers)}`);
    }
  }
});

test("a page's text/plain body decides no gate", async () => {
  const { id, path } = await waitingAtGate();
  const decision = JSON.stringify({ choice: "approve" });
  const plain = { "content-type": "text/plain" };
  assert.equal(await outcome("POST", { ...plain, origin: "https://evil.example", "sec-fetch-site": "cross-site" }, decision, path), "403 cross_origin");
  // A form of a page under the same origin, and a body without a type.
  const own: Record<string, string>[] = [{ ...plain, origin: open.url }, { origin: open.url }, { ...plain, "sec-fetch-site": "same-origin" }];
  for (const headers of own) {
    assert.equal(await outcome("POST", headers, decision, path), "415 unsupported_media_type", JSON.stringify(headers));
  }
  assert.equal((await open.run(id)).status, "waiting");
});

test("our own page and programs are answered", async () => {
  const own = { origin: open.url, "sec-fetch-site": "same-origin", "sec-fetch-mode": "cors", "accept-language": "de", "content-type": "application/json; charset=utf-8" };
  const { path } = await waitingAtGate();
  assert.equal(await outcome("POST", own, JSON.stringify({ choice: "approve" }), path), "ok");
  assert.equal(await outcome("GET", { "sec-fetch-site": "none", "sec-fetch-mode": "navigate", "accept-language": "de" }), "ok");
  // Node's fetch sends Sec-Fetch-Mode and Accept-Language.
  assert.equal((await fetch(`${open.url}/v1/runs`)).status, 200);
});

test("curl -d works as it is", async () => {
  const form = { "content-type": "application/x-www-form-urlencoded", accept: "*/*", "user-agent": "curl/8.0" };
  const { path } = await waitingAtGate();
  assert.equal(await outcome("POST", form, JSON.stringify({ choice: "approve" }), path), "ok");
  const { id } = await waitingAtGate();
  assert.equal(await outcome("POST", {}, "", `/v1/runs/${id}/pause`), "ok");
});

test("a request over a service binding needs a token", async () => {
  const overBinding = async (at: Curfew, headers: Record<string, string> = {}) => {
    const body = JSON.stringify({ url: "http://localhost/v1/runs", headers });
    const response = await fetch(`${at.url}/bound-client`, { method: "POST", body });
    return `${response.status} ${(await response.json() as any).error?.code}`;
  };
  assert.equal(await overBinding(open), "403 not_local");
  // A Worker that passes a public request on keeps its Host.
  assert.equal(await overBinding(open, { host: "app.example.com" }), "403 not_local");
  assert.equal(await overBinding(guarded), "401 unauthorized");
  assert.equal(await overBinding(guarded, { authorization: `Bearer ${ADMIN}` }), "200 undefined");
});

test("development is logged once, and its callers see what a request costs", async () => {
  const id = await open.start((await stored()).id);
  assert.match((await open.api("GET", `/v1/runs/${id}`)).headers.get("x-curfew-bill") ?? "", /rows_written=/);
  assert.equal(open.logLines("development").length, 1);
});

async function stored(): Promise<{ id: string }> {
  const document = workflow({ id: freshId("one"), nodes: [{ id: "a" }] });
  await open.store(document);
  return document;
}
