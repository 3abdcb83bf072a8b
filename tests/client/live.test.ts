// What a watch makes of the bytes of a live stream. Streams of real runs are in tests/workerd/client-watch.test.ts.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createClient, type WatchEvent } from "../../client/index.ts";

const event = (seq: number, kind: string, more: object = {}) => `id: ${seq}\ndata: ${JSON.stringify({ seq, kind, at: 1, ...more })}\n\n`;

/** A client whose connections bring these texts, one after the other; at the last one the run has ended. */
function clientOf(...connections: string[]) {
  let number = 0;
  const connect = () => {
    const text = connections[number++];
    return text === undefined ? new Response(null, { status: 204 }) : new Response(`retry: 1\n\n${text}`, { headers: { "content-type": "text/event-stream" } });
  };
  return createClient({ url: "http://curfew.test", fetch: async () => connect() });
}

async function collect(events: AsyncIterable<WatchEvent>): Promise<number[]> {
  const numbers: number[] = [];
  for await (const event of events) numbers.push((event as { seq: number }).seq);
  return numbers;
}

test("texts may hold the separators of lines that Unicode has", async () => {
  const stream = event(1, "run_started") + event(2, "run_paused", { by: "Ann\u2028Lee" }) + event(3, "run_cancelled", { reason: "a\u2029b\u0085c" });
  assert.deepEqual(await collect(clientOf(stream).watch("r1")), [1, 2, 3]);
});

test("connections that bring comments are alive, however long nothing happens", async () => {
  const quiet = Array.from({ length: 12 }, () => ": alive\n\n");
  assert.deepEqual(await collect(clientOf(event(1, "run_started"), ...quiet, event(2, "run_completed")).watch("r1", { retries: 2 })), [1, 2]);
});

test("connections that bring nothing are not repeated for ever", async () => {
  await assert.rejects(collect(clientOf(event(1, "run_started"), "", "", "", "").watch("r1", { retries: 2 })), /ended 3 times before the run/);
});

test("a stream that is cut at any byte comes whole", async () => {
  const events = [event(1, "run_started", { note: "äß€😀" }), event(2, "run_paused"), event(3, "run_completed")];
  const bytes = new TextEncoder().encode(events.join(""));
  for (let cut = 0; cut <= bytes.length; cut += 1) {
    let number = 0;
    const connect = (after: number) => {
      const rest = number++ === 0 ? bytes.slice(0, cut) : new TextEncoder().encode(events.slice(after).join(""));
      const stream = new ReadableStream({ start: (to) => (to.enqueue(new TextEncoder().encode("retry: 1\n\n")), to.enqueue(rest), to.close()) });
      return after === 3 ? new Response(null, { status: 204 }) : new Response(stream, { headers: { "content-type": "text/event-stream" } });
    };
    const client = createClient({ url: "http://curfew.test", fetch: async (_, { headers }) => connect(Number(headers["last-event-id"])) });
    assert.deepEqual(await collect(client.watch("r1")), [1, 2, 3], `cut at ${cut}`);
  }
});

test("an event that is no JSON says what to check", async () => {
  await assert.rejects(collect(clientOf(event(1, "run_started"), "id: 2\ndata: <html>\n\n").watch("r1")), { name: "CurfewError", code: "unexpected_response", message: /begins with "<html>": check what answers/ });
});
