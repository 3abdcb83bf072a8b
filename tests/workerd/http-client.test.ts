// src/worker/platform/http_client.mjs and clock.mjs, without the wasm that uses them.
import assert from "node:assert/strict";
import { join } from "node:path";
import { mock, test } from "node:test";
import { root } from "./harness.ts";

const READY = 0;
const END_OF_BODY = 7;

const { Exchange } = await import(join(root, "src/worker/platform/http_client.mjs"));
const { Clock } = await import(join(root, "src/worker/platform/clock.mjs"));

test("the body of a redirect is read unless it is to be skipped", async () => {
  const peer = { fetch: async () => new Response("moved", { status: 302, headers: { location: "/there" } }) };
  for (const [skipBodyOf, bytes] of [[0b1_1000_1110, 0], [0b1_1000_1010, 5], [0, 5]]) {
    const exchange = new Exchange();
    const ended = await new Promise((done) => {
      const how = (id: number, how: number) => done([id, how]);
      exchange.fetchWhole(peer, new Clock(), "http://peer", "GET", "{}", undefined, skipBodyOf, false, 100, -1, 7, how);
    });
    assert.deepEqual(ended, [7, READY], exchange.message);
    assert.deepEqual([exchange.status, exchange.bytes().length], [302, bytes]);
  }
});

test("a streamed body is read chunk by chunk to its end", async () => {
  const chunks = ["a", "bc"].map((text) => new TextEncoder().encode(text));
  const body = new ReadableStream({ start: (to) => (chunks.forEach((chunk) => to.enqueue(chunk)), to.close()) });
  const exchange = new Exchange();
  const step = (start: (done: (id: number, how: number) => void) => void) =>
    new Promise<number>((resolve) => start((_, how) => resolve(how)));
  const peer = { fetch: async () => new Response(body, { headers: { "x-name": "value" } }) };
  assert.equal(await step((done) => exchange.open(peer, "http://peer", "GET", "{}", undefined, 1, done)), READY);
  assert.deepEqual([exchange.status, exchange.header("x-name"), exchange.header("other")], [200, "value", undefined]);
  for (const chunk of chunks) {
    assert.equal(await step((done) => exchange.readChunk(2, done)), READY);
    assert.deepEqual(exchange.bytes(), chunk);
  }
  assert.equal(await step((done) => exchange.readChunk(3, done)), END_OF_BODY);
});

test("a clock calls back at each deadline, with one timer", () => {
  mock.timers.enable({ apis: ["setTimeout", "Date"] });
  try {
    const clock = new Clock();
    const called: string[] = [];
    const callback = (name: string) => () => void called.push(name);
    const [first, second, third] = [callback("first"), callback("second"), callback("third")];
    clock.set(300, third);
    clock.set(100, first);
    clock.set(200, second);
    mock.timers.tick(99);
    assert.deepEqual(called, []);
    mock.timers.tick(1);
    assert.deepEqual(called, ["first"]);
    clock.clear(second);
    mock.timers.tick(200);
    assert.deepEqual(called, ["first", "third"], "a cleared deadline is not called");
    clock.set(50, first);
    clock.stop();
    mock.timers.tick(1_000);
    assert.deepEqual(called, ["first", "third"], "nothing is called once it is stopped");
  } finally {
    mock.timers.reset();
  }
});

test("deadlines that are set in a callback, or in the past, are called, too", () => {
  mock.timers.enable({ apis: ["setTimeout", "Date"] });
  try {
    const clock = new Clock();
    const called: string[] = [];
    clock.set(10, () => {
      called.push("one");
      clock.set(0, () => called.push("at once"));
      clock.set(20, () => called.push("later"));
    });
    mock.timers.tick(11);
    assert.deepEqual(called, ["one", "at once"]);
    mock.timers.tick(20);
    assert.deepEqual(called, ["one", "at once", "later"]);
  } finally {
    mock.timers.reset();
  }
});
