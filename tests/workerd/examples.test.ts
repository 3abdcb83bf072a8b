// Every workflow in examples/ can be stored and does what its description says.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { freshId } from "./document-builders.ts";
import { root, startCurfew, type Curfew } from "./harness.ts";
import { startPeer, type Peer } from "./peer.ts";
import { until } from "./poll.ts";

let curfew: Curfew;
let peer: Peer;
const directory = join(root, "examples");
const files = readdirSync(directory).filter((name) => name.endsWith(".json"));
before(async () => {
  [curfew, peer] = await Promise.all([startCurfew(), startPeer()]);
  const documents = files.map((file) => JSON.parse(readFileSync(join(directory, file), "utf8")));
  // A parent is refused until its children are stored.
  const isParent = (document: { nodes: object[] }) => document.nodes.some((node) => "workflow_id" in node);
  for (const document of [...documents.filter((one) => !isParent(one)), ...documents.filter(isParent)]) await curfew.store(document);
});
after(() => Promise.all([curfew.dispose(), peer.close()]));

const run = async (workflowId: string, input: unknown) => curfew.ended(await curfew.start(workflowId, input));

test("every example is named after its id and is stored without a warning", async () => {
  assert.ok(files.length >= 9);
  for (const file of files) {
    const document = JSON.parse(readFileSync(join(directory, file), "utf8"));
    assert.equal(`${document.id}.json`, file);
    const response = await curfew.api("PUT", `/v1/workflows/${document.id}`, document);
    assert.equal(response.status, 200, response.text);
    assert.deepEqual(response.json.warnings, []);
  }
});

test("hello greets", async () => {
  const ended = await run("hello", { name: "Ada" });
  assert.equal(ended.status, "completed", JSON.stringify(ended.error));
  assert.deepEqual(ended.output, { greeting: "Hello, Ada!" });
  assert.equal((await curfew.api("POST", "/v1/workflows/hello/runs", { input: {} })).status, 422);
});

test("welcome is started by an event and emits another one", async () => {
  const response = await curfew.api("POST", "/v1/events/user.signed-up", { name: "Ada" });
  assert.equal(response.status, 202, response.text);
  const [started] = response.json.runs;
  assert.equal(started.workflow_id, "welcome");
  const ended = await curfew.ended(started.id);
  assert.equal(ended.status, "completed", JSON.stringify(ended.error));
  assert.deepEqual(ended.output, { name: "Ada", greeting: "Welcome, Ada!" });
  const refused = await curfew.api("POST", "/v1/events/user.signed-up", {});
  assert.deepEqual([refused.status, refused.json.runs], [200, []]);
});

test("order: a good order is charged and confirmed", async () => {
  peer.route("/good/charges", () => ({ body: { receipt: "r-1" } }));
  peer.route("/good/messages", () => ({ body: {} }));
  const order = { base_url: `${peer.url}/good`, order_id: "o-1", price: 12.5, quantity: 2 };
  const ended = await run("order", order);
  assert.equal(ended.status, "completed", JSON.stringify(ended.error));
  assert.deepEqual(ended.output, { charged: 25, outcome: "confirmed" });
  const [charge] = peer.seen("/good/charges");
  assert.deepEqual(JSON.parse(charge?.body ?? ""), { order_id: "o-1", amount: 25 });
  assert.equal(charge?.headers["idempotency-key"], "o-1");
  assert.equal(peer.seen("/good/messages").length, 1);
});

test("order: a refused card leads to an apology", async () => {
  peer.route("/poor/charges", () => ({ status: 422, body: { reason: "no money" } }));
  peer.route("/poor/messages", () => ({ body: {} }));
  const ended = await run("order", { base_url: `${peer.url}/poor`, order_id: "o-2", price: 10, quantity: 1 });
  assert.equal(ended.status, "completed", JSON.stringify(ended.error));
  assert.equal(ended.output.outcome, "refused");
  assert.match(JSON.parse(peer.seen("/poor/messages")[0]?.body ?? "").message, /could not charge your card: .*422/);
});

test("order: an order for nothing is not charged", async () => {
  const ended = await run("order", { base_url: `${peer.url}/never`, order_id: "o-3", price: 10, quantity: 0 });
  assert.equal(ended.status, "failed");
  assert.equal(ended.error?.message, "order o-3 is for 0 pieces");
  assert.equal(peer.seen("/never").length, 0);
});

test("poll-until-ready: polls until the job is ready", async () => {
  const job_id = freshId("job");
  peer.route(`/jobs/${job_id}`, (_seen, asked) => ({ body: { ready: asked >= 3, count: asked } }));
  const ended = await run("poll-until-ready", { base_url: peer.url, job_id });
  assert.equal(ended.status, "completed", JSON.stringify(ended.error));
  assert.deepEqual(ended.output, { outcome: "ready", job: { ready: true, count: 3 } });
  const pauses = (await curfew.tokens(ended.id)).filter(({ node_id }) => node_id === "pause");
  const lengths = pauses.map(({ started_at, ended_at }) => (ended_at ?? 0) - (started_at ?? 0));
  assert.equal(lengths.length, 2);
  assert.ok(lengths[0]! >= 100 && lengths[1]! >= 200, `paused for ${lengths} ms`);
});

test("poll-until-ready: gives up after six attempts", async () => {
  const job_id = freshId("job");
  peer.route(`/jobs/${job_id}`, (_seen, asked) => ({ body: { ready: false, count: asked } }));
  const ended = await run("poll-until-ready", { base_url: peer.url, job_id });
  assert.equal(ended.status, "completed", JSON.stringify(ended.error));
  assert.equal(ended.output.outcome, "not ready in time");
  assert.equal(peer.seen(`/jobs/${job_id}`).length, 6);
});

const lead = (domain: string) => ({ base_url: `${peer.url}/crm`, email: "ada@example.com", domain });

test("enrich-lead: a large company goes to sales", async () => {
  peer.route("/crm/companies/large.example", () => ({ body: { name: "Large", employees: 5_000 } }));
  peer.route("/crm/sales", () => ({ body: {} }));
  const ended = await run("enrich-lead", lead("large.example"));
  assert.equal(ended.status, "completed", JSON.stringify(ended.error));
  assert.deepEqual(ended.output, {
    handled_by: "sales",
    lead: { email: "ada@example.com", company: "Large", score: 90, lookup_failed: false },
  });
  assert.equal(JSON.parse(peer.seen("/crm/sales")[0]?.body ?? "").company, "Large");
});

test("enrich-lead: no company and a failed lookup go to the newsletter", async () => {
  peer.route("/crm/companies/gone.example", () => ({ status: 404, body: {} }));
  for (const [domain, lookup_failed] of [["", false], ["gone.example", true]] as const) {
    const ended = await run("enrich-lead", lead(domain));
    assert.equal(ended.status, "completed", JSON.stringify(ended.error));
    assert.equal(ended.output.handled_by, "newsletter");
    assert.deepEqual(ended.output.lead, { email: "ada@example.com", company: "unknown", score: 10, lookup_failed });
  }
});

test("judges: three verdicts are enough", async () => {
  const name = freshId("panel");
  peer.route(`/${name}/judge`, (seen) => {
    const { judge, answer } = JSON.parse(seen.body);
    assert.equal(answer, "42");
    if (judge === "ill") return { status: 404, body: {} };
    return { body: { accept: judge !== "strict", reason: `${judge} says so` } };
  });
  const input = { base_url: `${peer.url}/${name}`, answer: "42", judges: ["ill", "strict", "kind", "young"] };
  const ended = await run("judges", input);
  assert.equal(ended.status, "completed", JSON.stringify(ended.error));
  assert.equal(ended.output.accepted, true);
  assert.deepEqual(ended.output.verdicts, [
    { judge: "strict", accept: false, reason: "strict says so" },
    { judge: "kind", accept: true, reason: "kind says so" },
    { judge: "young", accept: true, reason: "young says so" },
  ]);
  const hopeless = await run("judges", { ...input, judges: ["ill", "ill", "strict"] });
  assert.equal(hopeless.status, "failed");
  assert.match(hopeless.error?.message ?? "", /cannot be met/);
});

/** Starts an approval of 250 and decides it. */
async function approval(decision: unknown) {
  const id = await curfew.start("approval", { title: "a chair", amount: 250 });
  const gate = await until("the gate", async () => {
    const { json } = await curfew.api("GET", "/v1/gates");
    return json.items.find((one: { run_id: string }) => one.run_id === id);
  });
  assert.equal(gate.prompt, "Pay 250 for a chair?");
  const response = await curfew.api("POST", `/v1/runs/${id}/gates/${gate.id}`, decision);
  assert.equal(response.status, 200, response.text);
  return curfew.ended(id);
}

test("approval: a person approves all or less, or rejects", async () => {
  const all = await approval({ choice: "approve", by: "ada" });
  assert.equal(all.status, "completed", JSON.stringify(all.error));
  assert.deepEqual(all.output, { outcome: "paid", receipt: "250 for a chair" });
  const less = await approval({ choice: "approve", input: { amount: 120 } });
  assert.deepEqual(less.output, { outcome: "paid", receipt: "120 for a chair" });
  const none = await approval({ choice: "reject", by: "bob", comment: "we have chairs" });
  assert.deepEqual(none.output, { outcome: "declined", by: "bob", comment: "we have chairs" });
});

test("approval: a small sum needs no approval", async () => {
  const ended = await run("approval", { title: "tea", amount: 3 });
  assert.deepEqual(ended.output, { outcome: "paid", receipt: "3 for tea" });
});

const trip = (name: string) => ({ base_url: `${peer.url}/${name}`, traveller: "Ada", city: "Turin", date: "2026-12-01" });

test("trip: both children book, in runs of their own", async () => {
  peer.route("/both/flights", () => ({ body: { booking: "f-1" } }));
  peer.route("/both/hotels", () => ({ body: { booking: "h-1" } }));
  const ended = await run("trip", trip("both"));
  assert.equal(ended.status, "completed", JSON.stringify(ended.error));
  assert.deepEqual(ended.output, { bookings: { flight: "f-1", hotel: "h-1" }, outcome: "complete" });
  assert.equal(JSON.parse(peer.seen("/both/hotels")[0]?.body ?? "").city, "Turin");
  const children = await Promise.all(["t2", "t3"].map((token) => curfew.run(`${ended.id}~${token}`)));
  assert.deepEqual(children.map((child) => [child.workflow_id, child.parent?.run_id]), [
    ["book-flight", ended.id],
    ["book-hotel", ended.id],
  ]);
});

test("trip: one booking is a partial trip, no booking is a failure", async () => {
  peer.route("/half/flights", () => ({ body: { booking: "f-2" } }));
  peer.route("/half/hotels", () => ({ status: 409, body: {} }));
  const half = await run("trip", trip("half"));
  assert.equal(half.status, "completed", JSON.stringify(half.error));
  assert.deepEqual(half.output, { bookings: { flight: "f-2" }, outcome: "partial" });
  const none = await run("trip", trip("nowhere"));
  assert.equal(none.status, "failed");
  assert.match(none.error?.message ?? "", /cannot be met: 0 of 2/);
});

test("research: when its time is over, a person extends it", async () => {
  let seen = 0;
  let enough = Number.POSITIVE_INFINITY;
  peer.route("/agent/think", () => {
    seen += 1;
    return { body: { note: `thought ${seen}`, done: seen >= enough } };
  });
  const input = { base_url: `${peer.url}/agent`, question: "why?" };
  const id = await curfew.start("research", input, { timeout_ms: 300 });
  const paused = await until("the run's gate to open", async () => {
    const run = await curfew.run(id);
    return run.status === "paused" && run;
  });
  assert.equal(paused.timeout_ms, 300);
  enough = seen + 2;
  const gate = paused.gate;
  assert.equal(gate?.kind, "workflow_timeout");
  const decided = await curfew.api("POST", `/v1/runs/${id}/gates/${gate?.id}`, { choice: "extend", input: { by_ms: 60_000 }, by: "ada" });
  assert.equal(decided.status, 200, decided.text);
  const ended = await curfew.ended(id);
  assert.equal(ended.status, "completed", JSON.stringify(ended.error));
  const notes = (ended.output as { notes: string[] }).notes;
  assert.deepEqual(notes, Array.from({ length: notes.length }, (_, index) => `thought ${index + 1}`));
  assert.equal(notes.length, enough);
});

test("summarize: a model's stream becomes a summary that matches the schema", async () => {
  const summary = { title: "Über Tee", points: ["Er ist heiß."] };
  const chunk = (content: string, finish_reason: string | null) =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason }] })}\n\n`;
  const text = JSON.stringify(summary);
  const usage = 'data: {"choices":[],"usage":{"prompt_tokens":40,"completion_tokens":12}}\n\n';
  const response = chunk(text.slice(0, 12), null) + chunk(text.slice(12), "stop") + usage + "data: [DONE]\n\n";
  peer.route("/models/v1/chat/completions", () => ({
    headers: { "content-type": "text/event-stream" },
    stream: { chunks: response.split(/(?<=\n\n)/).map((event) => Buffer.from(event)), everyMs: 5, then: "end" },
  }));
  const ended = await run("summarize", { base_url: `${peer.url}/models/v1`, model: "tiny", text: "Tee ist heiß." });
  assert.equal(ended.status, "completed", JSON.stringify(ended.error));
  assert.deepEqual(ended.output, { summary, tokens: 12 });
  const asked = JSON.parse(peer.seen("/models/v1/chat/completions")[0]?.body ?? "");
  assert.deepEqual([asked.model, asked.messages.at(-1).content, asked.stream], ["tiny", "Tee ist heiß.", true]);
});
