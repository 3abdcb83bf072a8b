// Authorization by bearer tokens: roles, names, hashes, expiry, lock-out, rate limit, headers and the log of refusals.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, test } from "node:test";
import { oneTask, set, workflow } from "./document-builders.ts";
import { ADMIN, OPERATE, READ, roleVars, startCurfew, type ApiResponse, type Curfew } from "./harness.ts";
import { until } from "./poll.ts";
import { rawRequest } from "./raw-request.ts";

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

const START = "start-token-0123456789";
const DECIDE = "decide-token-0123456789";
const HASHED = "hashed-token-0123456789";
const EXPIRED = "expired-token-0123456789";
const BOUND = "bound-token-0123456789";
const LIMITED = "limited-token-0123456789";

const tokens = {
  ...JSON.parse(roleVars.CURFEW_TOKENS),
  [START]: { name: "shop", roles: ["start"] },
  [DECIDE]: { roles: "decide" },
  [`sha256:${sha256(HASHED)}`]: { roles: ["read"] },
  [BOUND]: { name: "other", roles: ["operate"], workflows: ["other-*"] },
  [EXPIRED]: { name: "former", roles: ["admin"], expires_at: Date.now() - 1 },
};

let guarded: Curfew;
let limited: Curfew;
const document = oneTask([set({ a: 1 })]);
const runs = `/v1/workflows/${document.id}/runs`;

before(async () => {
  [guarded, limited] = await Promise.all([
    startCurfew({ vars: { CURFEW_TOKENS: JSON.stringify(tokens) } }),
    startCurfew({
      vars: { CURFEW_TOKENS: JSON.stringify({ [LIMITED]: { name: "eager", roles: "admin" }, [ADMIN]: "admin" }) },
      bindings: { RATE_LIMIT: { type: "rate-limit", namespace: "1", simple: { limit: 5, period: 60 } } },
    }),
  ]);
  const stored = await guarded.api("PUT", `/v1/workflows/${document.id}`, document, ADMIN);
  assert.equal(stored.status, 201, stored.text);
});
after(() => Promise.all([guarded.dispose(), limited.dispose()]));

let addresses = 0;
/** Of its own, so that no test is locked out by the wrong tokens of another. */
const freshAddress = (): string => `198.51.100.${++addresses % 250}`;

/** A request from another address. */
function from(address: string, method: string, path: string, body?: unknown, token?: string, at: Curfew = guarded): Promise<ApiResponse> {
  const headers: Record<string, string> = { "cf-connecting-ip": address };
  if (token !== undefined) headers["authorization"] = `Bearer ${token}`;
  return rawRequest(at.url + path, method, headers, body === undefined ? "" : JSON.stringify(body));
}

const CALLS: [method: string, path: string, body: unknown, role: string][] = [
  ["GET", "/v1/workflows", undefined, "read"],
  ["GET", "/v1/runs", undefined, "read"],
  ["GET", "/v1/runs/some-run", undefined, "read"],
  ["GET", "/v1/runs/some-run/tokens", undefined, "read"],
  ["GET", "/v1/runs/some-run/events", undefined, "read"],
  ["GET", "/v1/runs/some-run/timeouts", undefined, "read"],
  ["GET", "/v1/runs/some-run/notifications", undefined, "read"],
  ["GET", "/v1/runs/some-run/timeouts/1", undefined, "read"],
  ["GET", "/v1/runs/some-run/resume", undefined, "read"],
  ["GET", "/v1/runs/some-run/deliverable", undefined, "read"],
  ["GET", "/v1/gates", undefined, "read"],
  ["GET", "/v1/breakers", undefined, "read"],
  ["POST", runs, { input: {} }, "start"],
  ["POST", "/v1/runs/some-run/signals/news", {}, "start"],
  ["POST", "/v1/events/paid", {}, "start"],
  ["POST", "/v1/runs/some-run/gates/g1", { choice: "approve" }, "decide"],
  ["POST", "/v1/runs/some-run/cancel", undefined, "operate"],
  ["POST", "/v1/runs/some-run/pause", undefined, "operate"],
  ["POST", "/v1/runs/some-run/resume", undefined, "operate"],
  ["POST", "/v1/runs/some-run/restart", undefined, "operate"],
  ["POST", "/v1/runs/some-run/extend", { by_ms: 1000 }, "operate"],
  ["POST", "/v1/runs/some-run/retry", { mode: "retry_step" }, "operate"],
  ["PUT", `/v1/workflows/${document.id}`, document, "admin"],
  ["POST", "/v1/breakers/some-key/reset", undefined, "admin"],
];

const INCLUDED: Record<string, string[]> = {
  [READ]: ["read"],
  [HASHED]: ["read"],
  [START]: ["read", "start"],
  [DECIDE]: ["read", "decide"],
  [OPERATE]: ["read", "start", "decide", "operate"],
  [ADMIN]: ["read", "start", "decide", "operate", "admin"],
};

test("a missing token, a wrong token and another scheme are a 401 everywhere", async () => {
  for (const [method, path, body] of CALLS) {
    for (const token of [undefined, "", "wrong", READ.slice(0, -1), `${READ}x`, READ.toUpperCase(), sha256(HASHED), `sha256:${sha256(HASHED)}`]) {
      const answer = await from(freshAddress(), method, path, body, token);
      assert.equal(answer.status, 401, `${method} ${path} with ${token}: ${answer.text}`);
      assert.equal(answer.json.error.code, "unauthorized");
      assert.equal(answer.headers.get("www-authenticate"), "Bearer");
    }
  }
  const basic = await fetch(`${guarded.url}/v1/runs`, { headers: { authorization: `Basic ${READ}` } });
  assert.equal(basic.status, 401);
});

for (const [token, included] of Object.entries(INCLUDED)) {
  test(`a token with the role ${included.at(-1)} may do what needs ${included.join(", ")}, and nothing else (${token.split("-")[0]})`, async () => {
    for (const [method, path, body, role] of CALLS) {
      const answer = await guarded.api(method, path, body, token);
      const isRefused = answer.status === 401 || answer.status === 403;
      assert.equal(isRefused, !included.includes(role), `${method} ${path}: ${answer.text}`);
      if (isRefused) assert.equal(answer.json.error.code, "forbidden");
    }
  });
}

test("the role operate starts, reads and cancels runs", async () => {
  const started = await guarded.api("POST", runs, { input: {} }, OPERATE);
  assert.equal(started.status, 201, started.text);
  const run = await guarded.api("GET", `/v1/runs/${started.json.id}?wait_ms=10000`, undefined, OPERATE);
  assert.equal(run.json.status, "completed", run.text);
  const cancelled = await guarded.api("POST", `/v1/runs/${started.json.id}/cancel`, undefined, OPERATE);
  assert.equal(cancelled.status, 409, cancelled.text);
});

test("the role decide decides a gate and cannot cancel the run", async () => {
  const review = workflow({ nodes: [{ id: "review", gate: {} }] });
  assert.equal((await guarded.api("PUT", `/v1/workflows/${review.id}`, review, ADMIN)).status, 201);
  const { id } = (await guarded.api("POST", `/v1/workflows/${review.id}/runs`, {}, START)).json;
  await until("the gate", async () => (await guarded.api("GET", `/v1/runs/${id}`, undefined, DECIDE)).json.status === "waiting");
  assert.equal((await guarded.api("POST", `/v1/runs/${id}/cancel`, undefined, DECIDE)).status, 403);
  assert.equal((await guarded.api("POST", `/v1/runs/${id}/gates/g1`, { choice: "approve" }, START)).status, 403);
  assert.equal((await guarded.api("POST", `/v1/runs/${id}/gates/g1`, { choice: "approve" }, DECIDE)).status, 200);
});

test("an expired token is a 401 that says so", async () => {
  const answer = await guarded.api("GET", "/v1/runs", undefined, EXPIRED);
  assert.equal(answer.status, 401, answer.text);
  assert.match(answer.json.error.message, /expired at 20\d\d-/);
});

test("health needs no token", async () => {
  assert.equal((await guarded.api("GET", "/healthz")).status, 200);
});

test("invalid tokens in the configuration admit no request", async () => {
  for (const [setting, expected] of [
    ["not json", /^CURFEW_TOKENS is not JSON: line 1, column 2$/],
    [JSON.stringify({ [ADMIN]: "admin", [READ]: "reader" }), /^entry 2 of CURFEW_TOKENS is wrong: its role is unknown/],
    [JSON.stringify({ [ADMIN]: { roles: ["admin"], workflow: "x" } }), /^entry 1 of CURFEW_TOKENS is wrong: it has an unknown field/],
  ] as const) {
    const misconfigured = await startCurfew({ vars: { CURFEW_TOKENS: setting } });
    try {
      for (const token of [undefined, setting, ADMIN]) {
        const answer = await misconfigured.api("GET", "/v1/runs", undefined, token);
        assert.equal(answer.status, 503, `${token}: ${answer.text}`);
        assert.equal(answer.json.error.code, "auth_not_configured");
        assert.match(answer.json.error.message, expected);
        assert.ok(!answer.text.includes(ADMIN) && !answer.text.includes(READ));
      }
    } finally {
      await misconfigured.dispose();
    }
  }
});

test("ten wrong tokens lock an address out for a minute, with right ones, too", async () => {
  const address = freshAddress();
  for (let count = 0; count < 10; count++) {
    assert.equal((await from(address, "GET", "/v1/runs", undefined, `guess-${count}`)).status, 401);
  }
  for (const token of ["guess", ADMIN]) {
    const answer = await from(address, "GET", "/v1/runs", undefined, token);
    assert.equal(answer.status, 429, answer.text);
    assert.equal(answer.json.error.code, "rate_limited");
    const seconds = Number(answer.headers.get("retry-after"));
    assert.ok(seconds > 0 && seconds <= 60, `${seconds}`);
  }
  assert.equal((await from(address, "GET", "/v1/runs")).status, 401, "without a credential nothing is guessed");
  assert.equal((await from(address, "GET", "/healthz")).status, 200);
  assert.equal((await from(freshAddress(), "GET", "/v1/runs", undefined, ADMIN)).status, 200);
});

test("expired tokens cause no lock-out", async () => {
  const address = freshAddress();
  for (let count = 0; count < 15; count++) await from(address, "GET", "/v1/runs", undefined, EXPIRED);
  assert.equal((await from(address, "GET", "/v1/runs", undefined, ADMIN)).status, 200);
});

test("the rate limit counts by credential, and by address without one", async () => {
  const statuses = async (token: string | undefined, path: string, method = "GET") => {
    const answers = [];
    for (let count = 0; count < 7; count++) answers.push(await from("203.0.113.7", method, path, undefined, token, limited));
    return answers;
  };
  const eager = await statuses(LIMITED, "/v1/runs");
  assert.deepEqual(eager.map(({ status }) => status), [200, 200, 200, 200, 200, 429, 429]);
  assert.equal(eager[6]!.json.error.code, "rate_limited");
  assert.ok(Number(eager[6]!.headers.get("retry-after")) > 0);
  // The same address, another credential.
  assert.equal((await from("203.0.113.7", "GET", "/v1/runs", undefined, ADMIN, limited)).status, 200);
  const callbacks = await statuses(undefined, "/v1/callbacks/some-run~t1~1~0123456789abcdef0123456789abcdef", "POST");
  assert.deepEqual(callbacks.map(({ status }) => status), [404, 404, 404, 404, 404, 429, 429]);
  assert.ok((await statuses(undefined, "/healthz")).every(({ status }) => status === 200));
  const lines = limited.logLines("request_refused");
  assert.ok(lines.some((line) => line.by === "eager" && line.status === 429 && line.path === "/v1/runs"), JSON.stringify(lines));
  assert.ok(lines.some((line) => line.path === "/v1/callbacks/{capability}"));
  assert.ok(!limited.logs.join("\n").includes("0123456789abcdef0123456789abcdef"), "a capability is a credential");
});

test("every answer forbids guessing its type and keeping it, and only an admin sees what it costs", async () => {
  const { id } = (await guarded.api("POST", runs, { input: {} }, ADMIN)).json;
  const answers: [what: string, answer: ApiResponse][] = [
    ["health", await guarded.api("GET", "/healthz")],
    ["a list", await guarded.api("GET", "/v1/runs", undefined, READ)],
    ["a run", await guarded.api("GET", `/v1/runs/${id}`, undefined, READ)],
    ["a breaker", await guarded.api("POST", "/v1/breakers/some-key/reset", undefined, ADMIN)],
    ["a missing run", await guarded.api("GET", "/v1/runs/missing", undefined, READ)],
    ["401", await guarded.api("GET", "/v1/runs")],
    ["403", await guarded.api("PUT", `/v1/workflows/${document.id}`, document, READ)],
    ["404", await guarded.api("GET", "/v1/nothing")],
    ["405", await guarded.api("DELETE", "/v1/runs")],
    ["a callback", await guarded.api("POST", "/v1/callbacks/some-run~t1~1~0", {})],
  ];
  for (const [what, { headers }] of answers) {
    assert.equal(headers.get("x-content-type-options"), "nosniff", what);
    assert.equal(headers.get("cache-control"), "no-store", what);
    assert.equal(headers.get("x-curfew-bill"), null, what);
    assert.match(headers.get("content-type") ?? "", /^application\/json/, what);
  }
  assert.equal(answers.find(([what]) => what === "405")![1].headers.get("allow"), "GET");
  assert.match((await guarded.api("GET", `/v1/runs/${id}`, undefined, ADMIN)).headers.get("x-curfew-bill") ?? "", /rows_written=/);
});

test("refusals are logged without the token, and at most sixty a minute", async () => {
  const own = await startCurfew({ vars: { CURFEW_TOKENS: JSON.stringify(tokens) } });
  try {
    assert.equal((await own.api("PUT", `/v1/workflows/${document.id}`, document, ADMIN)).status, 201);
    const { id } = (await own.api("POST", runs, {}, ADMIN)).json;
    await from(freshAddress(), "GET", "/v1/runs?tag=private", undefined, "a-guess-that-may-be-nearly-right", own);
    await from(freshAddress(), "POST", "/v1/runs/some-run/cancel", undefined, START, own);
    await from(freshAddress(), "GET", "/v1/runs", undefined, EXPIRED, own);
    await from(freshAddress(), "PUT", `/v1/workflows/${document.id}`, document, HASHED, own);
    // Only the object knows the workflow of its run.
    await from(freshAddress(), "GET", `/v1/runs/${id}`, undefined, BOUND, own);
    await from(freshAddress(), "POST", runs, {}, BOUND, own);
    const lines = await until("six lines", async () => own.logLines("request_refused").length === 6 && own.logLines("request_refused"));
    const line = { level: "warn", event: "request_refused" };
    assert.deepEqual(lines, [
      { ...line, status: 401, code: "unauthorized", method: "GET", path: "/v1/runs" },
      { ...line, status: 403, code: "forbidden", method: "POST", path: "/v1/runs/some-run/cancel", by: "shop" },
      { ...line, status: 401, code: "unauthorized", method: "GET", path: "/v1/runs" },
      { ...line, status: 403, code: "forbidden", method: "PUT", path: `/v1/workflows/${document.id}`, by: `token:${sha256(HASHED).slice(0, 8)}` },
      { ...line, status: 403, code: "forbidden", method: "GET", path: `/v1/runs/${id}`, by: "other" },
      { ...line, status: 403, code: "forbidden", method: "POST", path: runs, by: "other" },
    ]);
    for (let count = 0; count < 100; count++) await from(freshAddress(), "GET", "/v1/runs", undefined, undefined, own);
    assert.equal(own.logLines("request_refused").length, 60);
    const logs = own.logs.join("\n");
    for (const secret of ["a-guess-that-may-be-nearly-right", "private", ...Object.keys(tokens)]) assert.ok(!logs.includes(secret), secret);
  } finally {
    await own.dispose();
  }
});

test("no response contains a token", async () => {
  const answer = await from(freshAddress(), "GET", "/v1/runs", undefined, "a-guess-that-may-be-nearly-right");
  assert.ok(!answer.text.includes("a-guess-that-may-be-nearly-right"));
  assert.ok(!guarded.logs.join("\n").includes(ADMIN));
});
