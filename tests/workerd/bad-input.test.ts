// Invalid input of callers, documents and peers: a clear 4xx or a failed token with a reason, never a hang, never a 500,
// nothing stored in part.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { check, freshId, oneRequest, oneTask, set, workflow } from "./document-builders.ts";
import { startCurfew, type Curfew } from "./harness.ts";
import { startPeer, type Peer } from "./peer.ts";

const MIB = 1024 * 1024;

const JSON_BODY = { "content-type": "application/json" };
let curfew: Curfew;
let peer: Peer;
const plain = oneTask([set({ seen: "${input}" })]);
const runs = `/v1/workflows/${plain.id}/runs`;
before(async () => {
  [curfew, peer] = await Promise.all([startCurfew(), startPeer()]);
  await curfew.store(plain);
});
after(() => Promise.all([curfew.dispose(), peer.close()]));

test("malformed JSON is a 400 for every call with a body", async () => {
  for (const [method, path] of [["PUT", "/v1/workflows/broken"], ["PUT", "/v1/tasks/broken"], ["POST", runs]] as const) {
    for (const body of ["{", " ", "{\"a\": 1,}", "\u0000", "nul", "{\"a\": 1} trailing"]) {
      const answer = await curfew.api(method, path, body);
      assert.equal(answer.status, 400, `${method} ${path} ${JSON.stringify(body)}: ${answer.text}`);
      assert.equal(answer.json.error.code, "invalid_json");
    }
  }
  assert.equal((await curfew.api("GET", "/v1/workflows/broken")).status, 404);
});

test("bytes that are not UTF-8 are a 400", async () => {
  const body = Buffer.concat([Buffer.from('{"input": "'), Buffer.from([0xff, 0xfe]), Buffer.from('"}')]);
  const response = await fetch(curfew.url + runs, { method: "POST", headers: JSON_BODY, body, signal: AbortSignal.timeout(10_000) });
  assert.equal(response.status, 400, await response.text());
});

test("JSON of the wrong type is a 4xx with a pointer", async () => {
  for (const body of ["[]", "7", "null", "\"text\""]) {
    const document = await curfew.api("PUT", "/v1/workflows/wrong-type", body);
    assert.ok([400, 422].includes(document.status), `PUT ${body}: ${document.text}`);
    const start = await curfew.api("POST", runs, body);
    assert.ok([400, 422].includes(start.status), `POST ${body}: ${start.text}`);
  }
  for (const [body, pointer] of [
    [{ run_id: 7, input: {} }, "/run_id"],
    [{ version: "one", input: {} }, "/version"],
    [{ timeout_ms: -1, input: {} }, "/timeout_ms"],
    [{ timeout_ms: "soon", input: {} }, "/timeout_ms"],
    [{ inptu: {} }, "/inptu"],
  ] as const) {
    const answer = await curfew.api("POST", runs, body);
    assert.ok([400, 422].includes(answer.status), `${JSON.stringify(body)}: ${answer.status} ${answer.text}`);
    assert.equal(answer.json.error.code, "invalid_request");
    assert.ok(answer.text.includes(pointer), `no ${pointer} in ${answer.text}`);
  }
});

test("a body over 1 MiB is a 413, with and without a content-length", async () => {
  const envelope = JSON.stringify({ input: "" }).length;
  const sized = (bytes: number) => JSON.stringify({ input: "x".repeat(bytes - envelope) });
  const over = await curfew.api("POST", runs, sized(MIB + 1));
  assert.equal(over.status, 413, over.text.slice(0, 300));
  assert.equal(over.json.error.code, "body_too_large");
  const document = await curfew.api("PUT", "/v1/workflows/large", sized(MIB + 1));
  assert.equal(document.status, 413);

  const chunked = await fetch(curfew.url + runs, {
    method: "POST",
    headers: JSON_BODY,
    body: new Blob([sized(MIB + 1024)]).stream(),
    duplex: "half",
    signal: AbortSignal.timeout(20_000),
  } as RequestInit);
  assert.equal(chunked.status, 413);
  await chunked.body?.cancel();

  const exactly = await curfew.api("POST", runs, sized(MIB));
  assert.notEqual(exactly.status, 413, "1 MiB itself is allowed");
  assert.ok(exactly.status < 500, exactly.text.slice(0, 300));
});

test("a document over 512 KiB is refused with the limit in the message", async () => {
  const answer = await curfew.api("PUT", "/v1/workflows/fat", { ...plain, id: "fat", description: "x".repeat(600 * 1024) });
  assert.ok([413, 422].includes(answer.status), answer.text.slice(0, 300));
  assert.match(answer.text, /512 KiB|524288/);
  assert.equal((await curfew.api("GET", "/v1/workflows/fat")).status, 404);
});

test("more nodes than the limit are refused", async () => {
  const nodes = Array.from({ length: 501 }, (_, index) => ({ id: `n${index}` }));
  const answer = await curfew.api("PUT", "/v1/workflows/wide", workflow({ id: "wide", nodes }));
  assert.equal(answer.status, 422, answer.text.slice(0, 300));
  const problem = answer.json.error.details.find((detail: { pointer: string }) => detail.pointer === "/nodes");
  assert.match(problem?.message ?? "", /500/);
});

test("deeply nested JSON is a 4xx", async () => {
  for (const depth of [200, 5_000, 200_000]) {
    const nested = "[".repeat(depth) + "]".repeat(depth);
    for (const [method, path, body] of [
      ["PUT", "/v1/workflows/deep", nested],
      ["PUT", "/v1/workflows/deep", `{"id": "deep", "nodes": [{"id": "a", "input_mapping": ${nested}}]}`],
      ["POST", runs, `{"input": ${nested}}`],
    ] as const) {
      const answer = await curfew.api(method, path, body);
      assert.equal(answer.status, 422, `${method} depth ${depth}: ${answer.status} ${answer.text.slice(0, 200)}`);
      assert.match(answer.json.error.message, /nested deeper than the limit of 100/);
    }
  }
  assert.equal((await curfew.api("GET", "/healthz")).status, 200);
});

test("unknown routes and methods are a 4xx in the common error format", async () => {
  for (const [method, path] of [
    ["GET", "/v1/nonsense"],
    ["GET", "/v1"],
    ["GET", "/v2/runs"],
    ["DELETE", `/v1/workflows/${plain.id}`],
    ["POST", "/v1/runs/x/dance"],
    ["GET", "/v1/runs/%E0%A4%A"],
    ["GET", `/v1/runs/${"x".repeat(3000)}`],
  ] as const) {
    const answer = await curfew.api(method, path);
    assert.ok([400, 404, 405, 422].includes(answer.status), `${method} ${path}: ${answer.status} ${answer.text}`);
    assert.equal(typeof answer.json?.error?.code, "string", answer.text);
  }
});

test("an expression over 4096 characters, or nested too deeply, is a 422", async () => {
  const long = `"${"x".repeat(4100)}" == "x"`;
  const parentheses = "(".repeat(2_000) + "1" + ")".repeat(2_000) + " > 0";
  const negations = `${"!".repeat(4_000)}true`;
  const lists = "[".repeat(2_000) + "]".repeat(2_000);
  for (const condition of [long, parentheses, negations, `${lists} == []`]) {
    const document = oneTask([check(condition, "no")]);
    const answer = await curfew.api("PUT", `/v1/workflows/${document.id}`, document);
    assert.equal(answer.status, 422, `${condition.slice(0, 20)}...: ${answer.status} ${answer.text.slice(0, 300)}`);
    assert.equal(answer.json.error.details[0].pointer, "/tasks/0/steps/0/action/implementation/condition");
  }
});

test("an expression with exponential cost fails its token in bounded time", async () => {
  const ten = "[0,1,2,3,4,5,6,7,8,9]";
  // 10^9 evaluations, and a list of 10^9 elements.
  const count = (inner: string, depth: number): string =>
    depth === 0 ? inner : `${ten}.all(x${depth}, ${count(inner, depth - 1)})`;
  const grow = (depth: number): string => (depth === 0 ? "[0]" : `${ten}.map(x${depth}, ${grow(depth - 1)})`);
  for (const condition of [count("true", 9), `size(${grow(9)}) > 0`]) {
    const startedAt = Date.now();
    const run = await curfew.runToEnd(oneTask([check(condition, "no")]));
    assert.equal(run.status, "failed");
    assert.equal(run.error?.class, "validation");
    assert.ok(Date.now() - startedAt < 15_000);
  }
});

test("invalid arithmetic fails its token", async () => {
  const document = oneTask([set({ x: "${input.a / input.b}" })]);
  await curfew.store(document);
  for (const input of [{ a: 1, b: 0 }, { a: "one", b: 2 }, {}]) {
    const run = await curfew.ended(await curfew.start(document.id, input));
    assert.equal(run.status, "failed", JSON.stringify(input));
    assert.equal(run.error?.class, "validation");
    assert.match(run.error?.message ?? "", /input\.a \/ input\.b/);
  }
});

test("a regular expression cannot stall the executor", async () => {
  const condition = "input.text.matches('^(a+)+$')";
  const document = oneTask([check(condition, "no match")]);
  const stored = await curfew.api("PUT", `/v1/workflows/${document.id}`, document);
  // A build without `matches` refuses the expression, which is fine, too.
  if (stored.status === 422) return assert.match(stored.text, /matches/);
  const run = await curfew.ended(await curfew.start(document.id, { text: `${"a".repeat(5_000)}!` }));
  assert.equal(run.status, "failed");
});

for (const [what, path] of [
  ["10 MB", "/huge"],
  ["10 MB in a few KB", "/bomb"],
  ["more than 512 KiB", "/sized/600"],
  ["half a body and a broken connection", "/half"],
  ["JSON that is none", "/broken-json"],
  ["JSON nested 100 000 deep", "/deep/100000"],
] as const) {
  test(`a peer that returns ${what} fails the token with a reason`, async () => {
    const run = await curfew.runToEnd(oneRequest("${input.url}"), { url: peer.url + path });
    assert.equal(run.status, "failed");
    assert.ok(run.error?.class && run.error.message, JSON.stringify(run.error));
    assert.equal(run.error.node_id, "work");
    assert.ok(run.error.message.length < 2_000, "the message does not carry the body");
  });
}

test("a context over 1 MiB fails the run with the limit in the message", async () => {
  const nodes = ["a", "b", "c"].map((id) => ({ id, action_id: "get" }));
  const run = await curfew.runToEnd(
    workflow({
      nodes,
      transitions: [
        { from_node_id: "a", to_node_id: "b" },
        { from_node_id: "b", to_node_id: "c" },
      ],
      actions: [{ id: "get", kind: "http_request", implementation: { url: "${input.url}" } }],
    }),
    { url: `${peer.url}/sized/450` },
  );
  assert.equal(run.status, "failed");
  assert.match(`${run.error?.code} ${run.error?.message}`, /limit|1 MiB|1048576/i);
});

test("unusual but valid JSON is returned unchanged", async () => {
  const input = {
    "": "empty key",
    "a/b~c": "pointer characters",
    unicode: "\u{1F600} \u0000 \u2028 ünïcödé",
    big: 9007199254740991,
    tiny: 1e-300,
    zero: -0.5,
    nothing: null,
    "__proto__x": [[], {}],
    dollar: "$ {not} $$ text",
  };
  const run = await curfew.runToEnd(plain, input);
  assert.equal(run.status, "completed", JSON.stringify(run.error));
  assert.deepEqual(run.output.seen, input);
});

test("an input that looks like a template is data", async () => {
  const run = await curfew.runToEnd(oneTask([set({ text: "${input.text}" })]), { text: "${1 + 1} ${secret.KEY}" });
  assert.equal(run.output.text, "${1 + 1} ${secret.KEY}");
});

test("a refused start creates no run", async () => {
  const run_id = freshId("run");
  assert.ok((await curfew.api("POST", runs, { run_id, input: {}, timeout_ms: -5 })).status >= 400);
  assert.equal((await curfew.api("GET", `/v1/runs/${run_id}`)).status, 404);
});

test("an unknown field of a request is a 400 with a suggestion, and has no effect", async () => {
  const gated = workflow({ nodes: [{ id: "ask", gate: { prompt: "?" } }] });
  await curfew.store(gated);
  const id = await curfew.start(gated.id);
  const before = await curfew.run(id);
  for (const [path, body, pointer, meant] of [
    ["restart", { from_node: "ask" }, "/from_node", "from_node_id"],
    ["cancel", { resaon: "x" }, "/resaon", "reason"],
    ["cancel", { sender: { run_id: "x" } }, "/sender", ""],
    ["pause", { until: 1 }, "/until", ""],
    ["resume", { now: true }, "/now", ""],
    ["extend", { by_mss: 1 }, "/by_mss", "by_ms"],
    ["retry", { mode: "retry_step", token: "t1" }, "/token", "token_id"],
    ["gates/g1", { choice: "approve", coment: "x" }, "/coment", "comment"],
  ] as const) {
    const answer = await curfew.api("POST", `/v1/runs/${id}/${path}`, body);
    assert.deepEqual([answer.status, answer.json.error.code, answer.json.error.pointer], [400, "invalid_request", pointer], `${path}: ${answer.text}`);
    if (meant !== "") assert.ok(answer.json.error.message.includes(`did you mean "${meant}"?`), answer.text);
    assert.match(answer.json.error.message, /known/);
  }
  for (const path of ["cancel", "pause", "resume", "extend", "retry", "restart"]) {
    const answer = await curfew.api("POST", `/v1/runs/${id}/${path}`, "[]");
    assert.deepEqual([answer.status, answer.json.error.code], [422, "invalid_request"], `${path}: ${answer.text}`);
  }
  const run = await curfew.run(id);
  assert.deepEqual([run.status, run.attempt, run.timeout_at], [before.status, 1, before.timeout_at]);
  const start = await curfew.api("POST", runs, { inptu: {} });
  assert.deepEqual([start.status, start.json.error.pointer], [400, "/inptu"]);
  assert.match(start.json.error.message, /did you mean "input"\?.*run_id, .*version, .*input/);
  const reset = await curfew.api("POST", "/v1/breakers/none/reset", { force: true });
  assert.deepEqual([reset.status, reset.json.error.pointer], [400, "/force"]);
});

test("an unknown, repeated or empty query parameter is a 400", async () => {
  for (const [path, message] of [
    ["/v1/runs?statsu=failed", /did you mean "status"\?.*workflow, tag, since, until, parent, id_prefix, sort, limit, cursor/],
    ["/v1/runs?status=", /has no value/],
    ["/v1/runs?limit", /has no value/],
    ["/v1/runs?tag=a&tag=b", /more than once/],
    ["/v1/runs?status=done", /status is one or several of/],
    ["/v1/gates?runs=x", /did you mean "run"/],
    ["/v1/gates?run=a%20b", /^run: a run id is/],
    ["/v1/runs/none?wait=1", /did you mean "wait_ms"/],
    ["/v1/runs/none/tokens?cursor=x", /number of the last/],
    ["/v1/runs/none/events?after=1&cursor=2", /one of them/],
    [`/v1/workflows/${plain.id}?versoin=1`, /did you mean "version"/],
    [`/v1/workflows/${plain.id}?version=0`, /version is a whole number/],
    ["/healthz?x=1", /unknown query parameter "x"/],
  ] as const) {
    const answer = await curfew.api("GET", path);
    assert.deepEqual([answer.status, answer.json.error.code], [400, "invalid_request"], `${path}: ${answer.text}`);
    assert.match(answer.json.error.message, message);
  }
  const refused = await curfew.api("POST", `${runs}?wait=1`, { input: {} });
  assert.equal(refused.status, 400, refused.text);
  assert.equal((await curfew.api("GET", "/v1/runs?cursor=&limit=1")).status, 200, "an empty cursor is the beginning");
});

test("an unknown version and an unknown workflow are different errors", async () => {
  const start = await curfew.api("POST", runs, { version: 9 });
  const read = await curfew.api("GET", `/v1/workflows/${plain.id}?version=9`);
  for (const answer of [start, read]) {
    assert.deepEqual([answer.status, answer.json.error.code], [404, "not_found"], answer.text);
    assert.equal(answer.json.error.message, `version 9 of workflow "${plain.id}" does not exist; the newest is 1`);
  }
  for (const answer of [
    await curfew.api("POST", "/v1/workflows/never-stored/runs", { version: 9 }),
    await curfew.api("GET", "/v1/workflows/never-stored?version=9"),
    await curfew.api("GET", "/v1/workflows/never-stored"),
  ]) {
    assert.equal(answer.json.error.message, 'workflow "never-stored" does not exist');
  }
  const caller = workflow({ nodes: [{ id: "call", workflow_id: plain.id, workflow_version: 9 }] });
  const stored = await curfew.api("PUT", `/v1/workflows/${caller.id}`, caller);
  assert.equal(stored.status, 422, stored.text);
  assert.match(stored.json.error.message, new RegExp(`/nodes/0/workflow_id: version 9 of workflow "${plain.id}" does not exist; the newest is 1`));
});

test("no run may have the id . or ..", async () => {
  for (const run_id of [".", ".."]) {
    const answer = await curfew.api("POST", runs, { run_id, input: {} });
    assert.deepEqual([answer.status, answer.json.error.pointer], [422, "/run_id"], answer.text);
  }
});
