// Cloudflare Access: assertions with real RS256 signatures, and a team that publishes its keys over HTTP.
import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { after, before, test } from "node:test";
import { AUDIENCE, newKey, Team } from "./access-team.ts";
import { workflow } from "./document-builders.ts";
import { ADMIN, startCurfew, type ApiResponse, type Curfew } from "./harness.ts";
import { until } from "./poll.ts";
import { rawRequest } from "./raw-request.ts";

const ROLES = JSON.stringify({
  "ada@example.com": "admin",
  "@example.com": "read",
  "group:ops": "operate",
  "group:orders": { roles: ["start"], workflows: ["order-*"] },
  "ci.access": "start",
});

let team: Team;
let curfew: Curfew;
/** Without tokens. */
let accessOnly: Curfew;

const vars = (at: Team) => ({ CURFEW_ACCESS_TEAM: at.url, CURFEW_ACCESS_AUD: AUDIENCE, CURFEW_ACCESS_ROLES: ROLES });

before(async () => {
  team = await new Team().start();
  [curfew, accessOnly] = await Promise.all([
    startCurfew({ vars: { ...vars(team), CURFEW_TOKENS: JSON.stringify({ [ADMIN]: "admin" }) } }),
    startCurfew({ vars: vars(team) }),
  ]);
});
after(async () => {
  await Promise.all([curfew?.dispose(), accessOnly?.dispose()]);
  await team?.close();
});

let addresses = 0;

/** Each from an address of its own, so that no test is locked out by the wrong assertions of another. */
function send(assertion: string | undefined, more: { method?: string; path?: string; body?: string; headers?: Record<string, string>; at?: Curfew } = {}): Promise<ApiResponse> {
  const { method = "GET", path = "/v1/runs", body = "", headers = {}, at = curfew } = more;
  const sent: Record<string, string> = { "cf-connecting-ip": `198.51.100.${++addresses % 250}`, ...headers };
  if (assertion !== undefined) sent["cf-access-jwt-assertion"] = assertion;
  return rawRequest(at.url + path, method, sent, body);
}

const outcome = async (...request: Parameters<typeof send>): Promise<string> => {
  const { status, json } = await send(...request);
  return status < 400 ? String(status) : `${status} ${json?.error?.code}: ${json?.error?.message}`;
};

test("a valid assertion is accepted, in the header and in the cookie", async () => {
  const assertion = team.assertion();
  assert.equal(await outcome(assertion), "200");
  assert.equal(await outcome(undefined, { headers: { cookie: `theme=dark; CF_Authorization=${assertion}; x=y` } }), "200");
  assert.equal(await outcome(team.assertion({ aud: AUDIENCE })), "200");
  assert.equal(await outcome(assertion, { at: accessOnly }), "200");
});

test("without an assertion a request is refused, in development, too", async () => {
  // The harness sets CURFEW_DEV where no tokens are configured.
  assert.match(await outcome(undefined, { at: accessOnly }), /^401 unauthorized: sign in with Cloudflare Access$/);
  assert.match(await outcome(undefined), /^401 unauthorized: send a token/);
});

test("assertions that must not be accepted", async () => {
  const now = Math.floor(Date.now() / 1000);
  const valid = team.assertion();
  const [header, , sign] = valid.split(".");
  const forged = Buffer.from(JSON.stringify({ iss: team.url, aud: [AUDIENCE], exp: now + 600, email: "ada@example.com" })).toString("base64url");
  const stranger = newKey("k1");
  const cases: [what: string, assertion: string, expected: RegExp][] = [
    ["expired", team.assertion({ exp: now - 61 }), /has expired/],
    ["not yet valid", team.assertion({ nbf: now + 120 }), /not valid yet/],
    ["issued in the future", team.assertion({ iat: now + 120 }), /not valid yet/],
    ["of another audience", team.assertion({ aud: ["other"] }), /another application/],
    ["of another issuer", team.assertion({ iss: "https://other.cloudflareaccess.com" }), /another team/],
    ["alg none", team.assertion({}, { alg: "none" }), /RS256/],
    ["HS256 with the public key", team.assertion({}, { alg: "HS256" }), /RS256/],
    ["signed by another key of the same id", team.assertion({}, {}, stranger), /signature/],
    ["tampered payload", `${header}.${forged}.${sign}`, /signature/],
    ["no signature", `${valid.split(".").slice(0, 2).join(".")}.`, /not a JWT/],
    ["cut", valid.slice(0, -2), /signature/],
    ["no key id", team.assertion({}, { kid: undefined }), /kid/],
    ["no name", team.assertion({ email: undefined }), /neither an email/],
    ["huge", team.assertion({ groups: Array(3000).fill("group") }), /longer than 16384 bytes/],
    ["text", "not-a-jwt", /not a JWT/],
  ];
  for (const [what, assertion, expected] of cases) {
    const refused = await outcome(assertion);
    assert.match(refused, /^401 unauthorized: /, `${what}: ${refused}`);
    assert.match(refused, expected, what);
  }
  assert.equal(await outcome(valid), "200");
});

test("a bearer token is tried first", async () => {
  const headers = { authorization: `Bearer ${ADMIN}` };
  assert.equal(await outcome("not-a-jwt", { headers }), "200");
  assert.match(await outcome(team.assertion(), { headers: { authorization: "Bearer wrong" } }), /^401 .*the token is not known/);
  // Where no tokens are configured, there is none to try.
  assert.equal(await outcome(team.assertion(), { headers, at: accessOnly }), "200");
});

test("roles come from the address, its domain, groups and service tokens", async () => {
  const document = workflow({ nodes: [{ id: "a" }] });
  const store = { method: "PUT", path: `/v1/workflows/${document.id}`, body: JSON.stringify(document) };
  const cancel = { method: "POST", path: "/v1/runs/missing/cancel" };
  const start = { method: "POST", path: `/v1/workflows/${document.id}/runs`, body: "{}" };
  assert.match(await outcome(team.assertion({ email: "Ada@Example.com" }), store), /^201$/);
  const bob = { email: "bob@example.com" };
  assert.equal(await outcome(team.assertion(bob)), "200");
  assert.match(await outcome(team.assertion(bob), cancel), /^403 forbidden: the credential has the role read; this needs operate$/);
  assert.match(await outcome(team.assertion({ ...bob, groups: ["ops"] }), cancel), /^404/);
  assert.match(await outcome(team.assertion({ ...bob, groups: [{ name: "ops", id: "7" }] }), cancel), /^404/);
  assert.match(await outcome(team.assertion({ ...bob, custom: { groups: ["ops"] } }), cancel), /^404/);
  assert.match(await outcome(team.assertion({ ...bob, groups: ["ops"] }), store), /^403/);
  const service = { email: undefined, common_name: "ci.access" };
  assert.equal(await outcome(team.assertion(service), start), "201");
  assert.match(await outcome(team.assertion(service), cancel), /^403/);
  for (const claims of [{ email: "eve@example.org" }, { email: "ada@example.com.evil.example" }, { email: undefined, common_name: "other.access" }]) {
    assert.match(await outcome(team.assertion(claims)), /^403 forbidden: Access knows .*CURFEW_ACCESS_ROLES/);
  }
  const lines = await until("the refusals", async () => {
    const found = curfew.logLines("request_refused").filter(({ by }) => by === "eve@example.org");
    return found.length === 1 && found;
  });
  assert.equal(lines[0].status, 403);
});

test("a page of another origin cannot use the cookie to change something", async () => {
  const path = "/v1/events/paid";
  const cookie = `CF_Authorization=${team.assertion()}`;
  const json = { "content-type": "application/json" };
  const post = (headers: Record<string, string>) => outcome(undefined, { method: "POST", path, body: "{}", headers: { cookie, ...headers } });
  assert.match(await post({ ...json, origin: "https://evil.example" }), /^403 cross_origin/);
  assert.match(await post({ ...json, "sec-fetch-site": "cross-site" }), /^403 cross_origin/);
  assert.match(await post({ ...json, origin: "null" }), /^403 cross_origin/);
  assert.match(await post({ origin: curfew.url, "content-type": "text/plain" }), /^415 unsupported_media_type/);
  assert.equal(await post({ ...json, origin: curfew.url, "sec-fetch-site": "same-origin" }), "200");
  // cloudflared access curl -d
  assert.equal(await post({ "content-type": "application/x-www-form-urlencoded" }), "200");
  // Access turns the cookie into the header.
  const header = await outcome(team.assertion(), { method: "POST", path, body: "{}", headers: { ...json, origin: "https://evil.example" } });
  assert.match(header, /^403 cross_origin/);
});

/** A Curfew and a team of their own, for a test that changes the team. */
async function withTeam(use: (team: Team, curfew: Curfew) => Promise<void>): Promise<void> {
  const own = await new Team().start();
  const started = await startCurfew({ vars: vars(own) });
  try {
    await use(own, started);
  } finally {
    await started.dispose();
    await own.close();
  }
}

test("keys are fetched once, and again for a new key, but not for every unknown one", async () => {
  await withTeam(async (own, at) => {
    for (let count = 0; count < 3; count++) assert.equal(await outcome(own.assertion(), { at }), "200");
    assert.equal(own.fetches, 1);
    const old = own.keys[0]!;
    const fresh = newKey("k2");
    own.keys = [fresh, old];
    assert.equal(await outcome(own.assertion({}, {}, fresh), { at }), "200", "after a rotation");
    assert.equal(own.fetches, 2);
    assert.equal(await outcome(own.assertion({}, {}, old), { at }), "200");
    for (let count = 0; count < 3; count++) {
      assert.match(await outcome(own.assertion({}, {}, newKey("unknown")), { at }), /^401 .*a key that the team does not have/);
    }
    assert.equal(own.fetches, 2);
  });
});

test("a team that is down is a 503, and works again when it is back", async () => {
  await withTeam(async (own, at) => {
    const { respond } = own;
    own.respond = (response) => void response.writeHead(500).end();
    assert.match(await outcome(own.assertion(), { at }), /^503 access_unavailable/);
    assert.match(await outcome(own.assertion(), { at }), /^503 access_unavailable/);
    assert.equal(own.fetches, 1, "a failed request is not repeated at once");
    own.respond = respond;
    await until("the team to be asked again", async () => (await outcome(own.assertion(), { at })) === "200", 15_000);
    assert.equal(at.logLines("access_unavailable")[0].message, "the answer has status 500");
  });
});

for (const [what, respond, message] of [
  ["is slow", () => {}, /no answer in time/],
  ["never ends its answer", (response: ServerResponse) => void response.writeHead(200).write("{"), /no answer in time/],
  ["answers too much", (response: ServerResponse) => void response.end(`{"keys": [], "x": "${"x".repeat(1 << 20)}"}`), /too large/],
  ["answers no keys", (response: ServerResponse) => void response.end(`{"keys": []}`), /no keys for RS256/],
  ["answers a page", (response: ServerResponse) => void response.end("<html>"), /no keys for RS256/],
  ["redirects", (response: ServerResponse) => void response.writeHead(302, { location: "http://127.0.0.1:1/" }).end(), /status 302/],
] as [string, Team["respond"], RegExp][]) {
  test(`a team that ${what} is a 503 within seconds`, async () => {
    await withTeam(async (own, at) => {
      own.respond = respond;
      const began = Date.now();
      assert.match(await outcome(own.assertion(), { at }), /^503 access_unavailable/);
      assert.ok(Date.now() - began < 8_000, `${Date.now() - began} ms`);
      assert.match(at.logLines("access_unavailable")[0].message, message);
      // No key is asked for to see that an assertion is wrong.
      assert.match(await outcome(own.assertion({}, { alg: "none" }), { at }), /^401/);
    });
  });
}

test("ten wrong assertions lock an address out", async () => {
  const headers = { "cf-connecting-ip": "203.0.113.99" };
  for (let count = 0; count < 10; count++) assert.match(await outcome(team.assertion({}, { alg: "none" }), { headers }), /^401/);
  assert.match(await outcome(team.assertion(), { headers }), /^429 rate_limited/);
});

test("incomplete settings admit no request", async () => {
  for (const [partial, expected] of [
    [{ CURFEW_ACCESS_TEAM: team.url, CURFEW_ACCESS_AUD: AUDIENCE }, /set CURFEW_ACCESS_ROLES, too/],
    [{ ...vars(team), CURFEW_ACCESS_ROLES: `{"@example.com": "reader"}` }, /entry 1 of CURFEW_ACCESS_ROLES is wrong/],
    [{ ...vars(team), CURFEW_ACCESS_TEAM: "http://team.example.com" }, /CURFEW_ACCESS_TEAM is neither/],
  ] as const) {
    const at = await startCurfew({ vars: partial });
    try {
      const refused = await outcome(team.assertion(), { at });
      assert.match(refused, /^503 auth_not_configured/);
      assert.match(refused, expected);
    } finally {
      await at.dispose();
    }
  }
});
