// src/worker/entry.mjs: whatever happens in the wasm, the caller gets a response, soon and without details.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Log, LogLevel, Miniflare, type WorkerOptions } from "miniflare";
import { compatibility, executorProtocolModules, localOptions, moduleWorker, root } from "./harness.ts";
import { until } from "./poll.ts";

// (module (func (export "trap") unreachable) (func (export "overflow") call 1))
const TRAP_WASM = Uint8Array.from(
  Buffer.from(
    "0061736d01000000010401600000030302000007130204747261700000086f766572666c6f7700010a0a020300000b040010010b",
    "hex",
  ),
);

let miniflare: Miniflare;
let url: string;
const logs: string[] = [];

before(async () => {
  const text = (path: string) => readFileSync(join(root, path), "utf8");
  const manifest: NonNullable<WorkerOptions["config"]["manifest"]> = {
    mainModule: "src/worker/entry.mjs",
    modulesRoot: root,
    modules: {
      "src/worker/entry.mjs": { type: "esm", contents: text("src/worker/entry.mjs") },
      ...executorProtocolModules(),
      "build/index.js": { type: "esm", contents: text("tests/workerd/workers/panicking-build.mjs") },
      "build/trap.wasm": { type: "wasm", contents: TRAP_WASM },
    },
  };
  miniflare = new Miniflare({
    ...localOptions,
    log: new Log(LogLevel.NONE),
    handleStructuredLogs: ({ message }: { message: string }) => logs.push(message),
    workers: [
      {
        config: {
          name: "curfew",
          ...compatibility,
          manifest,
          env: { RUNS: { type: "durable-object", worker: "curfew", exportName: "RunObject" } },
          exports: { RunObject: { type: "durable-object", storage: "sqlite" } },
        },
      },
      {
        config: {
          name: "executor",
          ...compatibility,
          manifest,
          triggers: [{ type: "fetch", pattern: "*/execute" }],
          env: { CURFEW_ROLE: { type: "text", value: "executor" } },
        },
      },
      moduleWorker("client", "tests/workerd/workers/disconnecting-client.mjs", {
        triggers: [{ type: "fetch", pattern: "*/client" }],
        env: { EXECUTOR: { type: "worker", worker: "executor" } },
      }),
    ],
  });
  url = (await miniflare.ready).origin;
});
after(() => miniflare.dispose());

interface AlarmState {
  alarm: number | null;
  alarms: number;
  abandoned?: number;
}

const alarmState = async (): Promise<AlarmState> => (await (await call("/object/alarm")).json()) as AlarmState;

const call = (path: string) => fetch(url + path, { signal: AbortSignal.timeout(10_000) });

async function assertInternalError(response: Response): Promise<void> {
  const text = await response.text();
  assert.equal(response.status, 500, text);
  const { error } = JSON.parse(text);
  assert.equal(error.code, "internal");
  assert.doesNotMatch(text, /detail|unreachable|wasm|stack/i);
}

for (const where of ["", "/object"]) {
  const who = where === "" ? "a Worker" : "a run object";
  test(`a panic in ${who} is answered with an error, and the next request works`, async () => {
    await assertInternalError(await call(`${where}/panic`));
    assert.equal((await call(`${where}/ok`)).status, 200);
  });

  for (const [damage, what] of [["overflow", "a wasm stack overflow"], ["dropped", "a closure that was left in the middle"]]) {
    test(`${what} in ${who} breaks the instance, too`, async () => {
      const before = (await (await call(`${where}/ok`)).json()) as { instancesBroken: number };
      await assertInternalError(await call(`${where}/${damage}`));
      const after = (await (await call(`${where}/ok`)).json()) as { instancesBroken: number };
      assert.equal(after.instancesBroken, before.instancesBroken + 1);
    });
  }

  test(`an exception in ${who} does not leak`, async () => {
    await assertInternalError(await call(`${where}/throw`));
  });
}

test("a panic fails all other calls of that instance", async () => {
  const hanging = call("/hang");
  const hangingObject = call("/object/hang");
  await until("both calls in flight", async () => {
    const seen = (await (await call("/ok")).json()) as { hanging: number };
    return seen.hanging === 2;
  });
  await assertInternalError(await call("/panic"));
  await assertInternalError(await hanging);
  await assertInternalError(await hangingObject);
});

test("an alarm that panics is set again", async () => {
  const setAt = Date.now();
  await call("/object/set-alarm");
  const seen = await until("the alarm after the panic", async () => {
    const { alarm, alarms } = await alarmState();
    return alarms > 0 && alarm !== null && alarm > Date.now() && { alarm };
  });
  assert.ok(seen.alarm - setAt < 30_000, "within half a minute");
});

test("a run whose alarm panics repeatedly is failed", async () => {
  for (let panics = (await alarmState()).alarms; panics < 5; panics += 1) {
    assert.equal((await alarmState()).abandoned, undefined, "not before the fifth");
    await call("/object/set-alarm");
    await until("the next panic", async () => (await alarmState()).alarms > panics);
  }
  await until("its end", async () => (await alarmState()).abandoned === 5);
  assert.equal((await alarmState()).alarm, null, "the end has its own");
});

test("a sweep that panics is logged and ends", async () => {
  const answer = await call("/cdn-cgi/local/scheduled");
  assert.equal(await answer.text(), "ok");
  await until("its log line", () => logs.some((line) => line.includes("handler_failed") && line.includes('"scheduled"')));
});

/** The executor's reports for the orders of one WebSocket, or its close code. */
class ExecutorSocket {
  #socket = new WebSocket(`${url.replace("http", "ws")}/execute`);
  #received: (string | number)[] = [];

  constructor() {
    this.#socket.addEventListener("message", ({ data }) => this.#received.push(...String(data).trimEnd().split("\n")));
    this.#socket.addEventListener("close", ({ code }) => this.#received.push(code));
  }

  async send(...orders: string[]): Promise<void> {
    if (this.#socket.readyState === WebSocket.CONNECTING) {
      await new Promise((opened) => this.#socket.addEventListener("open", opened, { once: true }));
    }
    this.#socket.send(`${orders.join("\n")}\n`);
  }

  receives(...expected: (string | number)[]): Promise<unknown> {
    return until(`${expected}, received ${this.#received}`, () => String(this.#received) === String(expected));
  }

  close(): void {
    this.#socket.close();
  }
}

test("a panic of one task closes every WebSocket of that instance, and the next one works", async () => {
  const [hanging, panicking] = [new ExecutorSocket(), new ExecutorSocket()];
  await hanging.send("a", "hang", "b");
  await hanging.receives("a: done", "b: done");
  await panicking.send("panic");
  await panicking.receives(1011);
  await hanging.receives("a: done", "b: done", 1011);
  const next = new ExecutorSocket();
  await next.send("c");
  await next.receives("c: done");
  next.close();
});

test("an invalid order closes its own WebSocket only", async () => {
  const [other, failing] = [new ExecutorSocket(), new ExecutorSocket()];
  await other.send("a");
  await failing.send("fail");
  await failing.receives(1011);
  await other.send("b");
  await other.receives("a: done", "b: done");
  other.close();
});

test("a single order is cancelled when its caller disconnects", async () => {
  const [before, meanwhile, after] = (await (await call("/client")).json()) as number[];
  assert.deepEqual([meanwhile, after], [before! + 1, before]);
});

test("a panic over a single order is a 500, and the next order works", async () => {
  const order = (body: string) => fetch(`${url}/execute`, { method: "POST", body, signal: AbortSignal.timeout(10_000) });
  assert.equal((await order("panic")).status, 500);
  const fine = await order("d");
  assert.equal(await fine.text(), "d: done");
});

test("the log names the handler and no details", () => {
  const failures = logs.filter((line) => line.includes("handler_failed"));
  assert.ok(failures.length > 0, logs.join("\n"));
  assert.ok(!failures.some((line) => line.includes("detail that nobody may see")));
});
