// What the executor's wasm hands to JavaScript is a look into its memory, which moves when it grows: here it grows while the
// peer is being asked, as it does under load.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { root } from "./harness.ts";

const WHOLE = 0;

test("an exchange outlives the memory it was ordered from", async () => {
  const { Exchange } = await import(join(root, "src/platform/exchange.mjs"));
  const memory = new ArrayBuffer(1024);
  const bodyless = new Uint16Array(memory, 0, 2);
  bodyless.set([301, 302]);
  const peer = {
    fetch: async () => {
      memory.transfer(2048); // what growing does to the buffer that was there
      return new Response("moved", { status: 302, headers: { location: "/there" } });
    },
  };
  const exchange = new Exchange();
  const how = await new Promise((over) => {
    exchange.run(peer, "http://peer", "GET", "[]", undefined, bodyless, false, 100, -1, 7, (id: number, how: number) => over([id, how]));
  });
  assert.deepEqual(how, [7, WHOLE], exchange.message);
  assert.deepEqual([exchange.status, exchange.bytes().length], [302, 0], "the statuses are those it was ordered with");
});
