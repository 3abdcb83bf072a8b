import assert from "node:assert/strict";
import { test } from "node:test";
import { orderFunctions } from "./wasm_order.mjs";

/** The types of Node have it as a namespace only. @type {any} */
const { WebAssembly: compiler } = globalThis;

/** @param {number} id @param {number[]} content */
const section = (id, ...content) => [id, content.length, ...content];
const HEADER = [0, 97, 115, 109, 1, 0, 0, 0];

const END = 0x0b;
const I32_CONST = 0x41;
const CALL = 0x10;
const REF_FUNC = 0xd2;
const CALL_INDIRECT = 0x11;

/** Functions of the type () -> i32; the first is imported. The bodies are in the order 3, 2, 1 when they are sorted. */
const BODIES = [
  [CALL, 0, CALL, 2, 0x6a, CALL, 3, 0x6a], // 1: the imported one, the second and the third
  [I32_CONST, 1, I32_CONST, 0, CALL_INDIRECT, 0, 0, 0x6a], // 2: 1 + what the table has at 0
  [I32_CONST, 20], // 3
];
const bodies = BODIES.flatMap((body) => [body.length + 2, 0, ...body, END]);

const WASM = Uint8Array.from([
  ...HEADER,
  ...section(1, 1, 0x60, 0, 1, 0x7f),
  ...section(2, 1, 1, 109, 1, 105, 0, 0), // "m"."i"
  ...section(3, 3, 0, 0, 0),
  ...section(4, 1, 0x70, 0, 1),
  ...section(6, 1, 0x70, 0, REF_FUNC, 3, END),
  ...section(7, 3, 1, 97, 0, 1, 1, 98, 0, 2, 1, 103, 3, 0), // "a", "b" and the global "g"
  ...section(9, 1, 0, I32_CONST, 0, END, 1, 3),
  ...section(10, BODIES.length, ...bodies),
  ...section(0, 4, 110, 97, 109, 101), // "name"
]);

/** @param {Uint8Array} bytes */
async function answers(bytes) {
  const module = await compiler.compile(bytes);
  const instance = await compiler.instantiate(module, { m: { i: () => 300 } });
  const { a, b, g } = /** @type {any} */ (instance.exports);
  return { a: a(), b: b(), g: g.value(), sections: compiler.Module.customSections(module, "name").length };
}

test("calls, exports, tables and globals have the same functions in another order", async () => {
  const ordered = orderFunctions(WASM);
  assert.deepEqual(await answers(WASM), { a: 341, b: 21, g: 20, sections: 1 });
  assert.deepEqual(await answers(ordered), { a: 341, b: 21, g: 20, sections: 0 });
  assert.notDeepEqual(ordered, WASM.subarray(0, ordered.length));
  assert.deepEqual(orderFunctions(ordered), ordered);
});

test("functions with the same instructions become neighbours", () => {
  const constants = [[1], [2], [3], [4]].map(([value = 0], at) => (at % 2 ? [2 + 2, 0, I32_CONST, value, END] : [1 + 2 + 2, 0, I32_CONST, value, 0x67, END]));
  const wasm = (/** @type {number[][]} */ parts) => Uint8Array.from([...HEADER, ...section(1, 1, 0x60, 0, 1, 0x7f), ...section(3, 4, 0, 0, 0, 0), ...section(10, 4, ...parts.flat())]);
  const [first = [], second = [], third = [], fourth = []] = constants;
  assert.deepEqual(orderFunctions(wasm(constants)), wasm([second, fourth, first, third]));
});

test("an unknown instruction and a cut wasm are refused", () => {
  const unknown = WASM.slice();
  unknown[unknown.indexOf(0x6a)] = 0xff;
  assert.throws(() => orderFunctions(unknown), /the unknown instruction 0xff; add it/);
  assert.throws(() => orderFunctions(WASM.subarray(0, WASM.length - 3)), /the wasm ends in the middle of a section/);
});
