// The engine's wasm in Node: its answers are those of the native code and of workerd, and it survives a stop.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { EngineError, loadEngine, loadEngineSync } from "./engine.mjs";

const wasm = readFileSync(new URL("engine.wasm", import.meta.url));
const { request, answer } = JSON.parse(readFileSync(new URL("../tests/golden/simulation.json", import.meta.url), "utf8"));

test("a simulation has the answer that it has natively and in workerd", async () => {
  const engine = await loadEngine(wasm);
  assert.deepEqual(engine.call({ op: "simulate", ...request }), answer);
  assert.deepEqual(loadEngineSync(await WebAssembly.compile(wasm)).call({ op: "simulate", ...request }), answer);
});

test("a session has the answer of the simulation, step by step", async () => {
  const engine = await loadEngine(wasm);
  const { session, at_ms, status } = engine.call({ op: "open", ...request });
  assert.deepEqual([at_ms, status], [0, "running"]);
  for (let hour = 0; hour < 48; hour += 1) engine.call({ op: "advance", session, by: "1h" });
  const { gates, at_ms: moment, ...seen } = engine.call({ op: "view", session });
  assert.deepEqual([gates, moment], [[], 48 * 3_600_000]);
  assert.deepEqual(seen, answer);
  assert.equal(engine.call({ op: "control", session, control: "cancel" }).refused.code, "run_finished");
  engine.call({ op: "close", session });
  assert.throws(() => engine.call({ op: "view", session }), (/** @type {unknown} */ error) => error instanceof EngineError && error.status === 404);
});

test("documents are checked and resolved", async () => {
  const engine = await loadEngine(wasm);
  const document = { id: "flow", nodes: [{ id: "ä", gate: {} }] };
  const { problems } = engine.call({ op: "check", document });
  assert.equal(problems[0].code, "invalid_id");
  assert.equal(engine.call({ op: "resolve", document: { id: "flow", nodes: [{ id: "a" }] } }).workflow.id, "flow");
});

test("a refusal is an error with its status and code", async () => {
  const engine = await loadEngine(wasm);
  const refused = { op: "simulate", ...request, mocks: [] };
  assert.throws(
    () => engine.call(refused),
    (/** @type {unknown} */ error) => error instanceof EngineError && error.status === 422 && error.code === "no_mock" && error.message.includes('{"node":"reserve"'),
  );
  assert.throws(() => engine.call({ op: "explode" }), /"op" is one of check, resolve, simulate/);
});

test("after a stop the engine has a new instance", async () => {
  const engine = await loadEngine(wasm);
  const large = " ".repeat(1 << 20);
  // More memory than wasm has: the allocation stops the instance.
  const original = TextEncoder.prototype.encode;
  TextEncoder.prototype.encode = () => /** @type {any} */ ({ length: 0xffff_0000 });
  try {
    assert.throws(() => engine.callText(large), /the engine stopped .* can be used again/);
  } finally {
    TextEncoder.prototype.encode = original;
  }
  assert.deepEqual(engine.call({ op: "simulate", ...request }), answer);
});

test("the wasm imports nothing: it has no dependency on JavaScript", async () => {
  assert.deepEqual(WebAssembly.Module.imports(await WebAssembly.compile(wasm)), []);
});

test("another wasm is refused", async () => {
  await assert.rejects(loadEngine(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])), /is not Curfew's engine/);
});
