// `watch` of the TypeScript client: no event is lost or comes twice, however often the connection is cut.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { ConnectionError, createClient, NotFoundError, UnexpectedResponseError, type Client, type RunEvent, type WatchEvent } from "../../client/index.ts";
import { startCuttingProxy, type CuttingProxy } from "./cutting-proxy.ts";
import { fan, freshId, oneRequest, oneTask, request, workflow } from "./document-builders.ts";
import { startCurfew, type Curfew } from "./harness.ts";
import { startPeer, type Peer } from "./peer.ts";
import { until } from "./poll.ts";

let curfew: Curfew;
let peer: Peer;
let proxy: CuttingProxy;
/** Through the proxy. */
let client: Client;
before(async () => {
  [curfew, peer] = await Promise.all([startCurfew(), startPeer()]);
  proxy = await startCuttingProxy(() => curfew.url);
  client = createClient({ url: proxy.url });
});
after(async () => {
  await proxy.close();
  await Promise.all([curfew.dispose(), peer.close()]);
});
beforeEach(() => Object.assign(proxy, { connections: [], cutAfter: [], how: "break", refuse: [] }));

/** All events of an ended run, by pages. */
async function history(id: string): Promise<RunEvent[]> {
  const direct = createClient({ url: curfew.url });
  const events: RunEvent[] = [];
  for await (const event of direct.pages(({ cursor }) => direct.events(id, cursor ? { cursor } : {}))) events.push(event);
  return events;
}

async function collect<Event extends WatchEvent>(events: AsyncIterable<Event>): Promise<Event[]> {
  const all: Event[] = [];
  for await (const event of events) all.push(event);
  return all;
}

const gated = () => workflow({ nodes: [{ id: "first" }, { id: "ask", gate: { timeout: "60s" } }], transitions: [{ from_node_id: "first", to_node_id: "ask" }] });

async function approve(id: string): Promise<void> {
  const opened = await until("the gate", async () => (await curfew.events(id, "gate_opened"))[0]);
  const answer = await curfew.api("POST", `/v1/runs/${id}/gates/${opened["gate_id"]}`, { choice: "approve" });
  assert.equal(answer.status, 200, answer.text);
}

for (const how of ["break", "end"] as const) {
  test(`an ended run whose stream is cut again and again comes whole (${how})`, async () => {
    const run = await curfew.runToEnd(fan({ spawn: { spawn_count: 60 }, work: {} }));
    const all = await history(run.id);
    // Also in the middle of a message, and before the first one.
    Object.assign(proxy, { how, cutAfter: [3, 700, 701, 1_900, 40, 5_000, 6_001, 2_000_000] });
    assert.deepEqual(await collect(client.watch(run.id)), all);
    assert.ok(proxy.connections.length >= 8, String(proxy.connections));
    assert.equal(proxy.connections[0], "0");
    assert.ok(Number(proxy.connections.at(-1)) > 0);
  });
}

test("a run that is watched from its start goes on over cuts, and ends after the event that ends it", async () => {
  const id = await curfew.storeAndStart([gated()]);
  proxy.cutAfter = [150, 160, 170, 2_000_000];
  const watched = collect(client.watch(id));
  await until("the last connection", () => proxy.connections.length >= 4);
  await approve(id);
  const events = await watched;
  assert.deepEqual(events, await history(id));
  assert.equal(events.at(-1)!.kind, "run_completed");
  assert.equal(proxy.open(), 0);
});

test("a passing refusal is waited for; one that lasts is thrown after a bounded number of attempts", async () => {
  const run = await curfew.runToEnd(workflow({ nodes: [{ id: "only" }] }));
  Object.assign(proxy, { cutAfter: [200, 2_000_000], refuse: [503] });
  assert.deepEqual(await collect(client.watch(run.id)), await history(run.id));
  const quick = createClient({ url: proxy.url, fetch: (url, init) => fetch(url.replace(proxy.url, "http://127.0.0.1:1"), init) });
  const began = performance.now();
  await assert.rejects(collect(quick.watch(run.id, { retries: 0 })), ConnectionError);
  assert.ok(performance.now() - began < 2_000);
  proxy.refuse = [404];
  await assert.rejects(collect(client.watch(run.id)), UnexpectedResponseError);
});

test("an end that a run went on from does not end the watch", async () => {
  const path = `/${freshId("broken")}`;
  peer.route(path, (_, times) => (times === 1 ? { status: 404 } : { body: {} }));
  const run = await curfew.runToEnd(oneRequest(peer.url + path));
  assert.equal(run.status, "failed");
  const before = (await history(run.id)).length;
  assert.equal((await curfew.api("POST", `/v1/runs/${run.id}/restart`, {})).status, 200);
  await curfew.ended(run.id);
  const all = await history(run.id);
  assert.ok(all.length > before);
  // The stream is cut right behind the first end.
  const bytes = all.slice(0, before).reduce((sum, event) => sum + `id: ${event.seq}\ndata: ${JSON.stringify(event)}\n\n`.length, `retry: 5\n\n`.length);
  Object.assign(proxy, { how: "end", cutAfter: [bytes, 2_000_000] });
  assert.deepEqual(await collect(client.watch(run.id)), all);
});

test("after and kinds choose events; the end is found though it is not among the kinds", async () => {
  const run = await curfew.runToEnd(fan({ spawn: { spawn_count: 5 }, work: {} }));
  const all = await history(run.id);
  proxy.cutAfter = [500, 900, 2_000_000];
  const created = await collect(client.watch(run.id, { kinds: ["token_created"] }));
  const kind: "token_created" = created[0]!.kind;
  assert.equal(kind, "token_created");
  assert.deepEqual(created, all.filter(({ kind }) => kind === "token_created"));
  proxy.cutAfter = [];
  assert.deepEqual(await collect(client.watch(run.id, { after: 3 })), all.slice(3));
  assert.deepEqual(await collect(client.watch(run.id, { after: all.length })), []);
  assert.deepEqual(await collect(client.watch(run.id, { kinds: ["gate_opened"] })), []);
});

test("progress comes between the events, without a number", async () => {
  const key = freshId("held");
  const id = await curfew.storeAndStart([oneTask([request({ url: `${peer.url}/ok` }), request({ url: `${peer.url}/held/${key}` })])]);
  const seen: WatchEvent[] = [];
  for await (const event of client.watch(id)) {
    seen.push(event);
    if (event.kind !== "progress") continue;
    assert.deepEqual([event.node_id, event.step_index, event.steps_total, "seq" in event], ["work", 1, 2, false]);
    peer.release(key);
  }
  assert.ok(seen.some(({ kind }) => kind === "progress"));
  assert.deepEqual(seen.filter(({ kind }) => kind !== "progress"), await history(id));
});

test("a wrong run, a wrong kind and a wrong credential end it at once", async () => {
  await assert.rejects(collect(client.watch(freshId("no-run"))), NotFoundError);
  await assert.rejects(collect(client.watch("x", { kinds: ["gate_opend" as "gate_opened"] })), /did you mean "gate_opened"/);
  assert.equal(proxy.connections.length, 2);
});

test("a signal ends a watch with its reason, and leaving the loop closes the connection", async () => {
  const id = await curfew.storeAndStart([gated()]);
  const controller = new AbortController();
  const watched = collect(client.watch(id, { signal: controller.signal }));
  await until("the connection", () => proxy.open() === 1);
  controller.abort(new Error("enough"));
  await assert.rejects(watched, /enough/);
  await until("its end", () => proxy.open() === 0);
  for await (const event of client.watch(id)) if (event.kind === "gate_opened") break;
  await until("the end of the other one", () => proxy.open() === 0);
  await assert.rejects(collect(client.watch(id, { signal: AbortSignal.abort(new Error("before")) })), /before/);
  await approve(id);
});
