// http_request on the wire: methods, bodies, redirects, statuses and refused addresses.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { freshId, oneTask, request, singleAttempt } from "./document-builders.ts";
import { startCurfew, type Curfew } from "./harness.ts";
import { startPeer, type Peer } from "./peer.ts";

let curfew: Curfew;
let guarded: Curfew;
let peer: Peer;
let otherOrigin: Peer;
before(async () => {
  [curfew, guarded, peer, otherOrigin] = await Promise.all([
    startCurfew(),
    startCurfew({ executorVars: { CURFEW_ALLOW_PRIVATE: "" } }),
    startPeer(),
    startPeer(),
  ]);
});
after(() => Promise.all([curfew.dispose(), guarded.dispose(), peer.close(), otherOrigin.close()]));

const send = (implementation: Record<string, unknown>, at: Curfew = curfew) => at.runToEnd(oneTask([request(implementation)]));

/** A path of `from` that redirects to `location`. */
function redirect(from: Peer, status: number, location: string): string {
  const path = `/go/${freshId("r")}`;
  from.route(path, () => ({ status, headers: { location, "set-cookie": "a=1" }, body: {} }));
  return path;
}

describe("http_request", { concurrency: 8 }, () => {
  test("methods are sent as they are written", async () => {
    for (const method of ["GET", "post", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "PURGE"]) {
      const run = await send({ url: `${peer.url}/ok`, method });
      assert.equal(run.output?.body.method, method.toUpperCase(), JSON.stringify(run.error));
    }
    const head = await send({ url: `${peer.url}/ok`, method: "HEAD" });
    assert.deepEqual([head.output?.status, head.output?.body], [200, ""], JSON.stringify(head.error));
    const unknown = await send({ url: `${peer.url}/ok`, method: "FROB" });
    assert.deepEqual([unknown.error?.code, unknown.error?.class], ["invalid_request", "validation"], "the platform does not know it");
    const nonsense = await send({ url: `${peer.url}/ok`, method: "${'GET /x'}" });
    assert.deepEqual([nonsense.error?.code, nonsense.error?.class], ["invalid_method", "validation"]);
  });

  test("a string is sent as text, anything else as JSON, unless a header sets the type", async () => {
    for (const [body, headers, kind, sent] of [
      ["words", {}, "text/plain; charset=utf-8", "words"],
      ["<a/>", { "Content-Type": "application/xml" }, "application/xml", "<a/>"],
      [[1, { two: "2" }], {}, "application/json", [1, { two: "2" }]],
      [true, {}, "application/json", true],
    ] as const) {
      const run = await send({ url: `${peer.url}/ok`, method: "POST", body, headers });
      assert.deepEqual([run.output?.body.headers["content-type"], run.output?.body.body], [kind, sent], JSON.stringify(run.error));
    }
  });

  test("a header cannot inject another line", async () => {
    const run = await curfew.runToEnd(oneTask([request({ url: `${peer.url}/ok`, headers: { "x-a": "${input.v}" } })]), {
      v: "1\r\nx-evil: 2",
    });
    assert.deepEqual([run.error?.code, run.error?.class], ["invalid_header", "validation"]);
  });

  test("redirects are followed with the methods of fetch", async () => {
    for (const [status, method, seen] of [
      [301, "POST", "GET"],
      [302, "POST", "GET"],
      [303, "PUT", "GET"],
      [307, "POST", "POST"],
      [308, "PUT", "PUT"],
      [302, "DELETE", "DELETE"],
    ] as const) {
      const path = redirect(peer, status, "/ok?landed=1");
      const run = await send({ url: peer.url + path, method, body: { n: 1 }, headers: { authorization: "Bearer x" } });
      const echo = run.output?.body;
      assert.deepEqual([echo?.method, echo?.query.landed], [seen, "1"], `${status} ${JSON.stringify(run.error)}`);
      assert.equal(echo.headers.authorization, "Bearer x", "the same origin");
      assert.deepEqual(echo.body, seen === "GET" ? "" : { n: 1 });
      assert.equal(peer.seen(path).length, 1);
    }
  });

  test("credentials are not sent to another origin", async () => {
    const path = redirect(peer, 307, `${otherOrigin.url}/ok`);
    const headers = { authorization: "Bearer x", cookie: "session=1", "x-mine": "kept" };
    const run = await send({ url: peer.url + path, headers });
    const echo = run.output?.body;
    assert.deepEqual(
      [echo?.headers.authorization, echo?.headers.cookie, echo?.headers["x-mine"]],
      [undefined, undefined, "kept"],
      JSON.stringify(run.error),
    );
    assert.equal(peer.seen(path)[0]?.headers["authorization"], "Bearer x");
  });

  test("a body is not sent to another origin", async () => {
    for (const [status, method] of [[307, "POST"], [308, "POST"], [301, "PUT"], [302, "PATCH"]] as const) {
      const landing = `/ok/${freshId("o")}`;
      const path = redirect(peer, status, `${otherOrigin.url}${landing}?private=1`);
      const run = await send({ url: peer.url + path, method, body: { private: true } });
      assert.deepEqual([run.error?.code, run.error?.class], ["redirected", "permanent"], `${status} ${JSON.stringify(run.output)}`);
      assert.ok(run.error?.message.includes(`redirects to ${otherOrigin.url}:`), run.error?.message);
      assert.doesNotMatch(run.error?.message ?? "", /private|ok/);
      assert.deepEqual([peer.seen(path).length, otherOrigin.seen(landing).length], [1, 0]);
    }
    // A method that becomes GET leaves the body behind.
    const run = await send({ url: peer.url + redirect(peer, 303, `${otherOrigin.url}/ok`), method: "POST", body: { private: true } });
    assert.deepEqual([run.output?.body.method, run.output?.body.body], ["GET", ""], JSON.stringify(run.error));
  });

  test("five redirects are followed, six are not, and an expected redirect is a result", async () => {
    const chain = (length: number): string => {
      let path = "/ok";
      for (let hop = 0; hop < length; hop++) path = redirect(peer, 302, path);
      return path;
    };
    const five = await send({ url: peer.url + chain(5) });
    assert.equal(five.output?.status, 200, JSON.stringify(five.error));
    const six = await send({ url: peer.url + chain(6) });
    assert.deepEqual([six.error?.code, six.error?.class], ["too_many_redirects", "permanent"]);
    const expected = await send({ url: peer.url + chain(1), expect_status: [302] });
    assert.deepEqual([expected.output?.status, expected.output?.headers.location], [302, "/ok"], JSON.stringify(expected.error));
    const away = await send({ url: peer.url + redirect(peer, 302, "ftp://example.com/") });
    assert.deepEqual([away.error?.code, away.error?.class], ["invalid_redirect", "permanent"]);
  });

  test("a body shorter than its content-length is a network failure, and surplus bytes are not read", async () => {
    const short = await send({ url: `${peer.url}/lies/100` });
    assert.deepEqual([short.status, short.error?.class], ["failed", "network"]);
    const long = await send({ url: `${peer.url}/lies/16` });
    assert.deepEqual(long.output?.body, { body: "words" }, JSON.stringify(long.error));
  });

  for (const [status, errorClass] of [[408, "network"], [429, "rate_limited"], [500, "server_error"], [529, "provider_transient"]] as const) {
    test(`status ${status} is of class ${errorClass}`, async () => {
      const run = await send({ url: `${peer.url}/status/${status}` });
      assert.deepEqual([run.error?.class, run.error?.code], [errorClass, `http_${status}`]);
    });
  }

  test("redirects of a bound Worker stay with it", async () => {
    const action = { kind: "service_call", implementation: { binding: "ECHO", path: "/moved" }, execution: singleAttempt };
    const run = await guarded.runToEnd(oneTask([{ action }]), { n: 1 });
    assert.deepEqual(run.output, { method: "GET", path: "/landed", body: "" }, JSON.stringify(run.error));
  });

  test("private addresses are refused unless the executor allows them", async () => {
    const port = new URL(peer.url).port;
    for (const host of ["127.0.0.1", "localhost", "0x7f.1", "2130706433", "[::1]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "0.0.0.0", "10.0.0.1", "db.internal", "db", "DB.", "nas.lan", "router.home.arpa", "db%2Ecorp"]) {
      const run = await send({ url: `http://${host}:${port}/ok/${freshId("p")}` }, guarded);
      assert.deepEqual([run.error?.code, run.error?.class], ["private_address", "permanent"], host);
      assert.match(run.error?.message ?? "", /CURFEW_ALLOW_PRIVATE/);
      const [token] = await guarded.tokens(run.id);
      assert.equal(token?.steps[0]?.attempts, 1);
    }
  });
});
