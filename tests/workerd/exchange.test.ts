// src/worker/platform/exchange.mjs and clock.mjs: what the executor's wasm does not do itself.
import assert from "node:assert/strict";
import { join } from "node:path";
import { mock, test } from "node:test";
import { root } from "./harness.ts";

const WHOLE = 0;

const { Exchange } = await import(join(root, "src/worker/platform/exchange.mjs"));
const { Clock } = await import(join(root, "src/worker/platform/clock.mjs"));

test("the body of a redirect is read unless nobody wants it", async () => {
  const peer = { fetch: async () => new Response("moved", { status: 302, headers: { location: "/there" } }) };
  for (const [bodyless, bytes] of [[0b1_1000_1110, 0], [0b1_1000_1010, 5], [0, 5]]) {
    const exchange = new Exchange();
    const ended = await new Promise((over) => {
      const how = (id: number, how: number) => over([id, how]);
      exchange.run(peer, new Clock(), "http://peer", "GET", "{}", undefined, bodyless, false, 100, -1, 7, how);
    });
    assert.deepEqual(ended, [7, WHOLE], exchange.message);
    assert.deepEqual([exchange.status, exchange.bytes().length], [302, bytes]);
  }
});

test("a clock rings for each deadline at its time, with one timer", () => {
  mock.timers.enable({ apis: ["setTimeout", "Date"] });
  try {
    const clock = new Clock();
    const rung: string[] = [];
    const late = (name: string) => () => void rung.push(name);
    const [first, second, third] = [late("first"), late("second"), late("third")];
    clock.set(300, third);
    clock.set(100, first);
    clock.set(200, second);
    mock.timers.tick(99);
    assert.deepEqual(rung, []);
    mock.timers.tick(1);
    assert.deepEqual(rung, ["first"]);
    clock.clear(second);
    mock.timers.tick(200);
    assert.deepEqual(rung, ["first", "third"], "what was taken back does not ring");
    clock.set(50, first);
    clock.stop();
    mock.timers.tick(1_000);
    assert.deepEqual(rung, ["first", "third"], "nothing rings once it is stopped");
  } finally {
    mock.timers.reset();
  }
});

test("what is set while a clock rings, or for a moment that is over, rings too", () => {
  mock.timers.enable({ apis: ["setTimeout", "Date"] });
  try {
    const clock = new Clock();
    const rung: string[] = [];
    clock.set(10, () => {
      rung.push("one");
      clock.set(0, () => rung.push("at once"));
      clock.set(20, () => rung.push("later"));
    });
    mock.timers.tick(11);
    assert.deepEqual(rung, ["one", "at once"]);
    mock.timers.tick(20);
    assert.deepEqual(rung, ["one", "at once", "later"]);
  } finally {
    mock.timers.reset();
  }
});
