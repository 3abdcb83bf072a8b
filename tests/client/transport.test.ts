// Requests of the client against a peer that fails: what is repeated, how often, until when, and what is thrown.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, beforeEach, test } from "node:test";
import {
  AuthError,
  ConflictError,
  ConnectionError,
  createClient,
  CurfewError,
  hasCode,
  InvalidError,
  NotFoundError,
  RateLimitError,
  UnavailableError,
  UnexpectedResponseError,
  type Client,
  type ErrorCode,
} from "../../client/index.ts";

interface Answer {
  status?: number;
  headers?: Record<string, string>;
  body?: string;
  /** Breaks the connection instead, before or during the body. */
  cut?: "before" | "during";
}

interface Seen {
  line: string;
  body: string;
  headers: Record<string, string | string[] | undefined>;
}

/** Answers in order; the last one again and again. An empty list never answers. */
let answers: Answer[] = [];
let seen: Seen[] = [];
const server = createServer(async (request, response) => {
  let body = "";
  for await (const chunk of request) body += chunk;
  seen.push({ line: `${request.method} ${request.url}`, body, headers: request.headers });
  const answer = answers.length > 1 ? answers.shift()! : answers[0];
  if (!answer) return;
  if (answer.cut === "before") return void request.socket.destroy();
  response.writeHead(answer.status ?? 200, { "content-type": "application/json", ...answer.headers });
  if (answer.cut === "during") return void response.write('{"id": ', () => request.socket.destroy());
  response.end(answer.body ?? "{}");
});

let url: string;
let client: Client;
before(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  client = createClient({ url, token: "some-token" });
});
after(() => {
  server.close();
  server.closeAllConnections();
});
beforeEach(() => {
  [answers, seen] = [[], []];
});

const refusal = (status: number, code: string, more: object = {}, headers = {}): Answer => ({ status, headers, body: JSON.stringify({ error: { code, message: `it is ${code}`, ...more } }) });
const thrown = async (call: Promise<unknown>): Promise<CurfewError> => {
  const error = await call.then(
    () => assert.fail("the call succeeded"),
    (error: unknown) => error,
  );
  assert.ok(error instanceof CurfewError, String(error));
  return error;
};

test("a read is repeated after a lost connection, a cut body, 429, 502, 503 and 504", async () => {
  const failures: Answer[] = [{ cut: "before" }, { cut: "during" }, refusal(429, "rate_limited"), { status: 502, body: "<html>" }, refusal(503, "other_build"), refusal(504, "timeout")];
  for (const failure of failures) {
    [answers, seen] = [[failure, { body: '{"id": "r"}' }], []];
    assert.equal((await client.run("r")).id, "r");
    assert.deepEqual(seen.map(({ line }) => line), ["GET /v1/runs/r", "GET /v1/runs/r"], JSON.stringify(failure));
    assert.equal(seen[0]!.headers["authorization"], "Bearer some-token");
  }
});

test("what is not a passing trouble is not repeated", async () => {
  for (const [status, code] of [[400, "invalid_request"], [401, "unauthorized"], [404, "not_found"], [500, "internal"], [503, "auth_not_configured"], [503, "not_migrated"]] as const) {
    [answers, seen] = [[refusal(status, code)], []];
    assert.equal((await thrown(client.run("r"))).code, code);
    assert.equal(seen.length, 1, code);
  }
});

test("repetitions are bounded", async () => {
  answers = [refusal(503, "other_build")];
  assert.equal((await thrown(client.run("r"))).code, "other_build");
  assert.equal(seen.length, 4);
  seen = [];
  await thrown(client.run("r", { retries: 1 }));
  assert.equal(seen.length, 2);
  seen = [];
  await thrown(createClient({ url, retries: 0 }).run("r"));
  assert.equal(seen.length, 1);
});

test("a start without a run id gets one, so that its repetition is the same request", async () => {
  answers = [{ cut: "before" }, refusal(504, "timeout"), {}];
  await client.start("hello", { input: { name: "Ada" } }, { wait_ms: 50 });
  assert.equal(seen.length, 3);
  assert.equal(new Set(seen.map(({ body }) => body)).size, 1);
  assert.match(JSON.parse(seen[0]!.body).run_id, /^[0-9a-f]{32}$/);
  assert.equal(seen[0]!.line, "POST /v1/workflows/hello/runs?wait_ms=50");
  [answers, seen] = [[{ cut: "before" }, {}], []];
  await client.startMany([{ workflow_id: "hello" }, { workflow_id: "hello", run_id: "mine" }]);
  assert.equal(seen[0]!.body, seen[1]!.body);
  const { items } = JSON.parse(seen[0]!.body);
  assert.match(items[0].run_id, /^[0-9a-f]{32}$/);
  assert.equal(items[1].run_id, "mine");
});

test("an event keeps its key when it is published again", async () => {
  answers = [refusal(504, "timeout"), {}];
  await client.publish("user.signed-up", { name: "Ada" });
  assert.equal(seen[0]!.headers["idempotency-key"], seen[1]!.headers["idempotency-key"]);
  assert.match(String(seen[0]!.headers["idempotency-key"]), /^[0-9a-f]{32}$/);
  [answers, seen] = [[{}], []];
  await client.publish("user.signed-up", {}, { key: "mine" });
  assert.equal(seen[0]!.headers["idempotency-key"], "mine");
});

/** [the call, whether it is sent again when it is unknown whether it took effect] */
const calls: [name: string, call: () => Promise<unknown>, isRepeated: boolean][] = [
  ["put", () => client.put("tasks", { id: "t" }), true],
  ["cancel", () => client.cancel("r"), true],
  ["pause", () => client.pause("r"), true],
  ["extend until", () => client.extend("r", { until: 1 }), true],
  ["resetBreaker", () => client.resetBreaker("key"), true],
  ["resume", () => client.resume("r"), false],
  ["extend by", () => client.extend("r", { by: "10m" }), false],
  ["retry", () => client.retry("r", { mode: "retry_step" }), false],
  ["restart", () => client.restart("r"), false],
  ["signal", () => client.signal("r", "paid", {}), false],
  ["decide", () => client.decide("r", "g1", { choice: "approve" }), false],
  ["bulk", () => client.bulk("cancel", { ids: ["r"] }), false],
  ["request", () => client.request("POST", "/v1/runs/{run_id}/cancel", { path: { run_id: "r" }, body: {} }), false],
  ["request, repeatable", () => client.request("POST", "/v1/runs/{run_id}/cancel", { path: { run_id: "r" }, repeatable: true }), true],
];
for (const [name, call, isRepeated] of calls) {
  test(`${name}: ${isRepeated ? "repeated" : "not repeated"} when it may have taken effect, repeated when nothing was done`, async () => {
    for (const failure of [{ cut: "before" } as const, refusal(504, "timeout")]) {
      [answers, seen] = [[failure, {}], []];
      if (isRepeated) await call();
      else await thrown(call());
      assert.equal(seen.length, isRepeated ? 2 : 1);
    }
    for (const failure of [refusal(429, "rate_limited"), refusal(503, "other_build")]) {
      [answers, seen] = [[failure, {}], []];
      await call();
      assert.equal(seen.length, 2);
    }
  });
}

test("Retry-After is waited for, and a deadline before it ends the call at once", async () => {
  answers = [refusal(429, "rate_limited", {}, { "retry-after": "1" }), {}];
  const began = performance.now();
  await client.run("r");
  assert.ok(performance.now() - began >= 990, "it waited for a second");
  answers = [refusal(429, "rate_limited", {}, { "retry-after": "20" })];
  const error = await thrown(client.run("r", { timeout_ms: 5_000 }));
  assert.ok(error instanceof RateLimitError);
  assert.equal(error.retryAfter, 20_000);
  assert.ok(performance.now() - began < 5_000);
});

test("the deadline counts all attempts and ends one that hangs", async () => {
  const error = await thrown(client.run("r", { timeout_ms: 150 }));
  assert.ok(error instanceof ConnectionError);
  assert.deepEqual([error.code, error.status, seen.length], ["deadline_passed", 0, 1]);
  assert.match(error.message, /timeout_ms/);
});

test("a signal ends a call and the wait between two attempts with its reason", async () => {
  const controller = new AbortController();
  const hanging = client.run("r", { signal: controller.signal });
  while (seen.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  controller.abort(new Error("no longer needed"));
  await assert.rejects(hanging, /no longer needed/);
  answers = [refusal(429, "rate_limited", {}, { "retry-after": "30" })];
  await assert.rejects(client.run("r", { signal: AbortSignal.timeout(100) }), { name: "TimeoutError" });
  await assert.rejects(client.run("r", { signal: controller.signal }), /no longer needed/);
});

test("errors have the class of their code, and the code narrows the details", async () => {
  const classes: [ErrorCode, number, new (...args: never[]) => CurfewError][] = [
    ["unauthorized", 401, AuthError],
    ["four_eyes", 403, AuthError],
    ["not_found", 404, NotFoundError],
    ["invalid_document", 422, InvalidError],
    ["gate_closed", 409, ConflictError],
    ["too_many_watchers", 429, RateLimitError],
    ["internal", 500, UnavailableError],
  ];
  for (const [code, status, Class] of classes) {
    answers = [refusal(status, code, { pointer: "/nodes/0", details: { status: "decided" } })];
    const error = await thrown(client.run("r", { retries: 0 }));
    assert.ok(error instanceof Class, code);
    assert.deepEqual([error.code, error.status, error.message, error.pointer, error.details], [code, status, `it is ${code}`, "/nodes/0", { status: "decided" }]);
    assert.equal(error.name, "CurfewError");
    if (hasCode(error, "gate_closed")) {
      const status: string | undefined = error.details?.status;
      assert.equal(status, "decided");
    }
    // @ts-expect-error No error has this code.
    assert.equal(error.code === "gate_close", false);
    if (error instanceof ConflictError) {
      // @ts-expect-error No conflict has this code.
      assert.equal(error.code === "not_found", false);
    }
  }
  answers = [refusal(409, "a_code_of_a_later_version")];
  assert.equal((await thrown(client.run("r"))).constructor, CurfewError);
});

test("an answer that is not Curfew's says what to check", async () => {
  for (const [answer, found] of [
    [{ status: 200, body: "<!doctype html>" }, /begins with "<!doctype html>"/],
    [{ status: 404, body: '{"message": "no such route"}' }, /no such route/],
    [{ status: 302, headers: { location: "https://login.example.com/" } }, /leads to https:\/\/login\.example\.com/],
    [{ status: 404, body: "null" }, /begins with "null"/],
  ] as [Answer, RegExp][]) {
    [answers, seen] = [[answer], []];
    const error = await thrown(client.run("r"));
    assert.ok(error instanceof UnexpectedResponseError);
    assert.match(error.message, found);
    assert.match(error.message, /check url/);
    assert.deepEqual([error.status, seen.length], [answer.status, 1]);
  }
});

test("a server that cannot be reached is a lost connection that names it", async () => {
  const gone = createServer();
  await new Promise<void>((resolve) => gone.listen(0, "127.0.0.1", resolve));
  const address = `http://127.0.0.1:${(gone.address() as AddressInfo).port}`;
  await new Promise((resolve) => gone.close(resolve));
  const error = await thrown(createClient({ url: address, retries: 1 }).run("r"));
  assert.ok(error instanceof ConnectionError);
  assert.equal(error.code, "connection_lost");
  assert.ok(error.message.includes(`GET ${address}/v1/runs/r`) && error.message.includes("check that Curfew runs there"), error.message);
  assert.ok(error.cause instanceof Error);
});

test("values of a path are encoded, and one that would change the path is refused before anything is sent", async () => {
  answers = [{}];
  await client.run("r~1/../x y");
  assert.equal(seen[0]!.line, "GET /v1/runs/r~1%2F..%2Fx%20y");
  for (const id of ["", ".", ".."]) {
    const error = await thrown(client.run(id));
    assert.ok(error instanceof InvalidError, String(error));
    assert.deepEqual([error.code, error.message], ["invalid_request", `run_id is ${JSON.stringify(id)}: it must have a value that is no dot`]);
  }
  assert.equal(seen.length, 1);
});

test("the url may have a path and a slash at its end; one that is no address is refused at once", async () => {
  answers = [{ body: '{"items": [], "next_cursor": null}' }];
  await createClient({ url: `${url}/curfew//` }).runs({ status: ["failed", "timed_out"], workflow: undefined, limit: 5 });
  assert.equal(seen[0]!.line, "GET /curfew/v1/runs?status=failed%2Ctimed_out&limit=5");
  for (const wrong of ["", "localhost:8787", "not a url", "http://", "ftp://x", "http://x:99999", "http://x/?a=1", null, 5]) {
    assert.throws(() => createClient({ url: wrong as string }), { name: "TypeError", message: `url is ${JSON.stringify(wrong)}: write where Curfew is, such as http://localhost:8787, without a query` });
  }
  assert.throws(() => createClient({ url: "nowhere" }), TypeError);
});

test("a function or a binding sends the requests, and headers are added", async () => {
  const sent: [string, Record<string, string>][] = [];
  const send = async (to: string, { headers }: { headers: Record<string, string> }) => {
    sent.push([to, headers]);
    return Response.json({ id: "r" });
  };
  await createClient({ fetch: send, headers: { "x-a": "1" } }).run("r", { headers: { "x-b": "2" } });
  const request = (request: Request) => send(request.url, { headers: Object.fromEntries(request.headers) });
  await createClient({ binding: { request } }).run("r");
  assert.deepEqual(sent, [
    ["http://localhost:8787/v1/runs/r", { accept: "application/json", "x-a": "1", "x-b": "2" }],
    ["http://localhost:8787/v1/runs/r", { accept: "application/json" }],
  ]);
});

test("requests to known paths are typed; others are taken as they are", async () => {
  answers = [{ body: '{"id": "r", "status": "ok"}' }];
  const run = await client.request("GET", "/v1/runs/{run_id}", { path: { run_id: "r" }, query: { wait_ms: 5 } });
  const id: string = run.id;
  assert.equal(id, "r");
  const later = await client.request<{ status: string }>("GET", "/v1/some/later/{thing}", { path: { thing: "x" }, query: { a: 1 } });
  assert.equal(later.status, "ok");
  assert.deepEqual(seen.map(({ line }) => line), ["GET /v1/runs/r?wait_ms=5", "GET /v1/some/later/x?a=1"]);
  // @ts-expect-error The path needs its value.
  await assert.rejects(client.request("GET", "/v1/runs/{run_id}", { query: { wait_ms: 5 } }), /run_id/);
  // @ts-expect-error No such parameter.
  await client.request("GET", "/v1/runs/{run_id}", { path: { run_id: "r" }, query: { wait: 5 } });
});

test("pages goes through a list until its end, also past an empty page", async () => {
  const pages = [{ items: [1, 2], next_cursor: "a" }, { items: [], next_cursor: "b" }, { items: [3], next_cursor: null }];
  const cursors: (string | undefined)[] = [];
  const items: number[] = [];
  for await (const item of client.pages(async ({ cursor }) => (cursors.push(cursor), pages.shift()!))) items.push(item);
  assert.deepEqual([items, cursors], [[1, 2, 3], [undefined, "a", "b"]]);
});

test("a deadline may be longer than a timer takes, and must be a time", async () => {
  const client = createClient({ url: "http://curfew.test", fetch: async () => Response.json({ name: "ada" }) });
  for (const timeout_ms of [Infinity, 2 ** 31, 2 ** 53]) assert.equal(((await client.me({ timeout_ms })) as any).name, "ada");
  for (const timeout_ms of [NaN, 0, -1]) await assert.rejects(client.me({ timeout_ms }), /timeout_ms is .*: write milliseconds/);
});

test("a redirect that a browser hides is not repeated", async () => {
  let requests = 0;
  const hidden = Object.defineProperties(new Response(null), { type: { value: "opaqueredirect" }, status: { value: 0 }, ok: { value: false } });
  const client = createClient({ url: "http://curfew.test", fetch: async () => ((requests += 1), hidden) });
  await assert.rejects(client.me(), (error) => error instanceof UnexpectedResponseError && error.status === 302 && /leads to another place.*a login/.test(error.message));
  assert.equal(requests, 1);
});

test("a signal also stops a body that is read later", async () => {
  const sent = Promise.withResolvers<AbortSignal>();
  const client = createClient({ url: "http://curfew.test", fetch: async (_, init) => (sent.resolve(init.signal), new Response("slow")) });
  const controller = new AbortController();
  await client.raw("GET", "/v1/me", { signal: controller.signal });
  controller.abort();
  assert.equal((await sent.promise).aborted, true);
});

test("an address with a password and a token that no header may have are refused, without being shown", () => {
  for (const options of [{ url: "http://ada:secret@curfew.test" }, { token: "secret\n" }, { token: "secret token" }, { token: "secret\u20ac" }]) {
    assert.throws(() => createClient(options), (error: Error) => error instanceof TypeError && !error.message.includes("secret"), JSON.stringify(options));
  }
});

test("an empty token is none", async () => {
  answers = [{}];
  await createClient({ url, token: "" }).me();
  assert.equal(seen[0]!.headers["authorization"], undefined);
});
