// GET /v1/runs/{id}/live: the history of a run as it is committed, by server-sent events and by WebSocket.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { chainOf, fan, freshId, oneRequest, workflow } from "./document-builders.ts";
import { ADMIN, OPERATE, READ, roleVars, startCurfew, type Curfew } from "./harness.ts";
import { startPeer, type Peer } from "./peer.ts";
import { until } from "./poll.ts";
import { watch } from "./watcher.ts";
import type { EventView } from "./api-types.ts";

let curfew: Curfew;
let peer: Peer;
before(async () => {
  [curfew, peer] = await Promise.all([startCurfew(), startPeer()]);
});
after(async () => {
  await Promise.all([curfew.dispose(), peer.close()]);
});

const gated = () => workflow({ nodes: [{ id: "first" }, { id: "ask", gate: { timeout: "60s" } }], transitions: [{ from_node_id: "first", to_node_id: "ask" }] });

async function startGated(): Promise<string> {
  const id = await curfew.storeAndStart([gated()]);
  await until("the gate", async () => (await curfew.events(id, "gate_opened")).length === 1);
  return id;
}

const approve = async (id: string) => {
  const [opened] = await curfew.events(id, "gate_opened");
  const answer = await curfew.api("POST", `/v1/runs/${id}/gates/${opened!["gate_id"]}`, { choice: "approve" });
  assert.equal(answer.status, 200, answer.text);
};

const allEvents = async (id: string, at = curfew): Promise<EventView[]> => {
  const events: EventView[] = [];
  for (let cursor: string | null = "0"; cursor !== null; ) {
    const { json } = await at.api("GET", `/v1/runs/${id}/events?after=${cursor}&limit=1000`);
    events.push(...json.items);
    cursor = json.next_cursor;
  }
  return events;
};

test("the history comes first, then what is committed, and the end of the run closes the stream", async () => {
  const id = await startGated();
  const watcher = await watch(curfew.url, id);
  assert.equal(watcher.status, 200);
  assert.match(watcher.headers.get("content-type")!, /^text\/event-stream/);
  assert.equal(watcher.headers.get("cache-control"), "no-store");
  const before = await allEvents(id);
  await until("the history", () => watcher.events().length === before.length);
  assert.deepEqual(watcher.events(), before);
  assert.equal(watcher.retry, 2000);
  assert.equal(watcher.isEnded(), false);
  await approve(id);
  const events = await watcher.ended();
  assert.deepEqual(events, await allEvents(id));
  assert.equal(events.at(-1)?.kind, "run_completed");
  assert.deepEqual(watcher.sent.map((sent) => sent.id), events.map(({ seq }) => String(seq)));
});

test("Last-Event-ID and after continue the stream, the header first", async () => {
  const id = await startGated();
  const all = await allEvents(id);
  const from = async (query: string, headers: Record<string, string> = {}) => {
    const watcher = await watch(curfew.url, id, query, headers);
    await until("an event", () => watcher.events().length > 0);
    watcher.close();
    return watcher.events()[0]!.seq;
  };
  assert.equal(await from("?after=2"), 3);
  assert.equal(await from("", { "last-event-id": "3" }), 4);
  assert.equal(await from("?after=1", { "last-event-id": "2" }), 3);
  // Behind the last event there is nothing yet: what follows is sent.
  const watcher = await watch(curfew.url, id, `?after=${all.length + 100}`);
  await approve(id);
  const events = await watcher.ended();
  assert.equal(events[0]!.seq, all.length + 1);
});

test("kinds are chosen, and a wrong one is refused with the nearest", async () => {
  const id = await startGated();
  const watcher = await watch(curfew.url, id, "?kinds=gate_opened,run_completed");
  await approve(id);
  assert.deepEqual((await watcher.ended()).map(({ kind }) => kind), ["gate_opened", "run_completed"]);
  for (const [query, part] of [
    ["?kinds=gate_opend", 'did you mean \\"gate_opened\\"?'],
    ["?kinds=", "has no value"],
    ["?after=x", "after"],
    ["?limit=3", "unknown query parameter"],
  ] as const) {
    const refused = await watch(curfew.url, id, query);
    assert.equal(refused.status, 400, query);
    assert.ok(refused.text.includes(part), refused.text);
  }
  assert.equal((await watch(curfew.url, id, "", { "last-event-id": "seven" })).status, 400);
  assert.equal((await curfew.api("POST", `/v1/runs/${id}/live`, {})).status, 405);
});

test("a run that has ended is sent whole; when nothing is left the answer is 204, at which an EventSource stops", async () => {
  const run = await curfew.runToEnd(workflow({ nodes: [{ id: "only" }] }));
  const events = await (await watch(curfew.url, run.id)).ended();
  assert.deepEqual(events, await allEvents(run.id));
  const again = await watch(curfew.url, run.id, "", { "last-event-id": String(events.at(-1)!.seq) });
  assert.equal(again.status, 204);
  // A WebSocket learns it by the code of its close.
  const socket = new WebSocket(`${curfew.url.replace("http", "ws")}/v1/runs/${run.id}/live?after=${events.at(-1)!.seq}`);
  const closed = Promise.withResolvers<{ code: number; reason: string }>();
  socket.addEventListener("close", ({ code, reason }) => closed.resolve({ code, reason }));
  assert.deepEqual(await closed.promise, { code: 1000, reason: "ended" });
  assert.equal((await watch(curfew.url, freshId("no-such-run"))).status, 404);
});

test("a long history comes in pages, also of a run that has ended", async () => {
  const run = await curfew.runToEnd(fan({ spawn: { spawn_count: 700 }, work: {} }));
  const all = await allEvents(run.id);
  assert.ok(all.length > 1_400);
  assert.deepEqual(await (await watch(curfew.url, run.id)).ended(), all);
});

test("a run that is restarted goes on for a new watcher", async () => {
  const failing = oneRequest(`${peer.url}/missing`);
  peer.route("/missing", (_, times) => (times === 1 ? { status: 404 } : { body: {} }));
  const run = await curfew.runToEnd(failing);
  assert.equal(run.status, "failed");
  const before = await allEvents(run.id);
  assert.equal((await curfew.api("POST", `/v1/runs/${run.id}/restart`, {})).status, 200);
  const watcher = await watch(curfew.url, run.id);
  const events = await watcher.ended();
  assert.deepEqual(events, await allEvents(run.id));
  assert.ok(events.length > before.length, "an earlier end of the run does not end the stream");
  assert.equal(events.at(-1)?.kind, "run_completed");
});

test("a WebSocket gets the same events, one a message", async () => {
  const id = await startGated();
  const socket = new WebSocket(`${curfew.url.replace("http", "ws")}/v1/runs/${id}/live?after=1`);
  const events: EventView[] = [];
  const closed = Promise.withResolvers<{ code: number; reason: string }>();
  socket.addEventListener("message", ({ data }) => events.push(JSON.parse(data)));
  socket.addEventListener("close", ({ code, reason }) => closed.resolve({ code, reason }));
  await until("the history", () => events.length > 2);
  await approve(id);
  assert.deepEqual(await closed.promise, { code: 1000, reason: "ended" });
  assert.deepEqual(events, (await allEvents(id)).slice(1));
});

test("a HEAD is answered at once, and takes no place of a watcher", async () => {
  const id = await startGated();
  for (let number = 0; number < 105; number += 1) {
    const { status, headers } = await fetch(`${curfew.url}/v1/runs/${id}/live`, { method: "HEAD", signal: AbortSignal.timeout(10_000) });
    assert.equal(status, 200);
    assert.match(headers.get("content-type") ?? "", /^text\/event-stream/);
  }
  assert.equal((await fetch(`${curfew.url}/v1/runs/no-such-run/live`, { method: "HEAD" })).status, 404);
  await approve(id);
});

test("curl reads the stream", async () => {
  const run = await curfew.runToEnd(workflow({ nodes: [{ id: "only" }] }));
  const { stdout } = await promisify(execFile)("curl", ["--silent", "--no-buffer", "--max-time", "20", `${curfew.url}/v1/runs/${run.id}/live`]);
  const [last] = stdout.trim().split("\n\n").slice(-1);
  assert.match(last!, /^id: \d+\ndata: \{.*"kind":"run_completed".*\}$/s);
});

test("watching needs the role read and a credential that reaches the workflow", async () => {
  const scoped = "scoped-token-0123456789";
  const tokens = JSON.stringify({ ...JSON.parse(roleVars.CURFEW_TOKENS), [scoped]: { name: "other", roles: ["read"], workflows: ["other-*"] } });
  const guarded = await startCurfew({ vars: { CURFEW_TOKENS: tokens, CURFEW_DEV: "off" } });
  try {
    const document = workflow({ nodes: [{ id: "only" }] });
    assert.equal((await guarded.api("PUT", `/v1/workflows/${document.id}`, document, ADMIN)).status, 201);
    const { json } = await guarded.api("POST", `/v1/workflows/${document.id}/runs?wait_ms=10000`, { input: {} }, OPERATE);
    const status = async (token?: string) => {
      const watcher = await watch(guarded.url, json.id, "", token === undefined ? {} : { authorization: `Bearer ${token}` });
      watcher.close();
      return watcher.status;
    };
    assert.equal(await status(), 401);
    assert.equal(await status("wrong-token-0123456789"), 401);
    assert.equal(await status(scoped), 403);
    assert.equal(await status(READ), 200);
  } finally {
    await guarded.dispose();
  }
});

test("the object leaves memory with ten idle watchers, and wakes with them", async () => {
  const id = await startGated();
  const watchers = await Promise.all(Array.from({ length: 10 }, () => watch(curfew.url, id)));
  const before = await allEvents(id);
  await until("the history", () => watchers.every((watcher) => watcher.events().length === before.length));
  // The bill counts what the object did since it came into memory.
  const requests = async () => {
    const bill = (await curfew.api("GET", `/v1/runs/${id}`)).headers.get("x-curfew-bill") ?? "";
    return Number(/object_requests=(\d+)/.exec(bill)?.[1]);
  };
  const held = await requests();
  assert.ok(held >= 10, `${held} requests reached the object`);
  // The platform evicts an object that was idle for ten seconds; asking would keep it in memory.
  const idleUntil = Date.now() + 16_000;
  await until("the object to be idle", () => Date.now() > idleUntil, 20_000, 500);
  assert.equal(await requests(), 1, "the object came into memory again");
  assert.ok(watchers.every((watcher) => !watcher.isEnded()));
  assert.ok(watchers.every(({ comments }) => comments.includes("alive")), "a comment every 15 s");
  await approve(id);
  const all = await allEvents(id);
  for (const watcher of watchers) assert.deepEqual(await watcher.ended(), all);
});

test("a watcher that confirms nothing is sent a bounded part, does not delay the run, and gets the rest when it confirms", async () => {
  const document = fan({ spawn: { spawn_count: 1_000 }, work: { wait: { sleep: "100ms" } } });
  await curfew.store(document);
  const id = await curfew.start(document.id, {});
  const runs = (await curfew.miniflare.getBindings<{ RUNS: any }>("curfew")).RUNS;
  const call = encodeURIComponent(JSON.stringify({ request: { read_live: { after: 0 } } }));
  const response = await runs.get(runs.idFromName(id)).fetch("http://run/live/2", { headers: { upgrade: "websocket", "curfew-live-call": call } });
  assert.equal(response.status, 101);
  const socket: WebSocket & { accept(): void } = response.webSocket;
  const numbers: number[] = [];
  let isClosed = false;
  socket.addEventListener("message", ({ data }) => numbers.push(...String(data).split("\n").map((line) => Number(line.split(" ")[0]))));
  socket.addEventListener("close", () => (isClosed = true));
  socket.accept();
  assert.equal((await curfew.ended(id)).status, "completed");
  const all = await allEvents(id);
  assert.ok(all.length > 2_000, `${all.length} events`);
  assert.ok(numbers.length < all.length, `${numbers.length} of ${all.length} events were sent without a confirmation`);
  await until("all events", () => {
    if (!isClosed) socket.send(String(numbers.at(-1)));
    return numbers.length === all.length && isClosed;
  });
  assert.deepEqual(numbers, all.map(({ seq }) => seq));
});

test("a client that is cut off twenty times has every event once", async () => {
  const document = fan({ spawn: { spawn_count: 1_000 }, work: { wait: { sleep: "200ms" } } });
  await curfew.store(document);
  const id = await curfew.start(document.id, {});
  const events: EventView[] = [];
  for (let cuts = 0; ; ) {
    const last = String(events.at(-1)?.seq ?? 0);
    const watcher = await watch(curfew.url, id, "", { "last-event-id": last });
    if (watcher.status === 204) break;
    const wanted = 1 + Math.floor(Math.random() * 100);
    const isCut = cuts < 20;
    await until("some events", () => watcher.isEnded() || (isCut && watcher.events().length >= wanted), 30_000, 1);
    watcher.close();
    events.push(...watcher.events());
    cuts += 1;
  }
  assert.deepEqual(events, await allEvents(id));
});

test("no more than a hundred clients watch a run", async () => {
  const id = await startGated();
  const socket = new WebSocket(`${curfew.url.replace("http", "ws")}/v1/runs/${id}/live`);
  await until("the socket", () => socket.readyState === WebSocket.OPEN);
  const watchers = await Promise.all(Array.from({ length: 99 }, () => watch(curfew.url, id)));
  assert.ok(watchers.every(({ status }) => status === 200));
  const refused = await watch(curfew.url, id);
  assert.equal(refused.status, 429);
  assert.match(refused.text, /too_many_watchers/);
  socket.close();
  await until("a place", async () => {
    const next = await watch(curfew.url, id);
    next.close();
    return next.status === 200;
  });
  for (const watcher of watchers) watcher.close();
  await approve(id);
  assert.equal((await curfew.ended(id)).status, "completed");
});

test("a run without watchers and one with a watcher write the same rows", async () => {
  const rows = async (isWatched: boolean) => {
    const document = chainOf(10, { steps: [{ ref: "s", action: { kind: "service_call", implementation: { binding: "ECHO" } } }] });
    await curfew.store(document);
    const id = await curfew.start(document.id, {});
    const watcher = isWatched ? await watch(curfew.url, id) : undefined;
    await curfew.ended(id);
    await watcher?.ended();
    const bill = (await curfew.api("GET", `/v1/runs/${id}`)).headers.get("x-curfew-bill") ?? "";
    return Number(/rows_written=(\d+)/.exec(bill)?.[1]);
  };
  assert.equal(await rows(true), await rows(false));
});
