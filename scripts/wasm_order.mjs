// Orders the functions of a wasm so that similar ones are neighbours. It does the same and is as long, but gzip, which finds only
// what repeats within 32 KiB, makes it 6 % smaller: generic code has a copy for each type, and the compiler puts the copies far
// apart. An instruction that this file does not know stops the build.
import { Reader, Writer } from "./wasm_bytes.mjs";

/** @typedef {{start: number, end: number}} Range Part of the wasm, without its length in front. */
/** @typedef {(index: number) => number} Renumber The new index of a function. */

const SECTION = { custom: 0, import: 2, function: 3, global: 6, export: 7, start: 8, element: 9, code: 10 };
const HEADER_BYTES = 8;
/** The kind of an import or export that is a function. */
const FUNCTION = 0;

/** Custom sections are left out: names of functions, which would have the old numbers, and remarks of tools. @param {Uint8Array} wasm */
export function orderFunctions(wasm) {
  const sections = sectionsOf(wasm);
  const reader = (/** @type {number} */ id) => {
    const found = sections.find((it) => it.id === id);
    return found ? new Reader(wasm, found.start, found.end) : new Reader(Uint8Array.of(0), 0, 1);
  };
  const imported = countImportedFunctions(reader(SECTION.import));
  const types = reader(SECTION.function).list((it) => it.number());
  const bodies = reader(SECTION.code).list((it) => it.range());
  const functions = bodies.map((body, old) => ({ old, body, key: keyOf(types[old] ?? 0, new Reader(wasm, body.start, body.end)) }));
  functions.sort((left, right) => Buffer.compare(left.key, right.key) || left.old - right.old);

  /** @type {number[]} */
  const places = [];
  for (const [place, { old }] of functions.entries()) places[old] = place;
  /** @type {Renumber} */
  const renumber = (index) => (index < imported ? index : imported + (places[index - imported] ?? NaN));

  const output = new Writer();
  output.bytes(wasm.subarray(0, HEADER_BYTES));
  for (const { id, start, end } of sections) {
    if (id === SECTION.custom) continue;
    const section = new Writer();
    if (id === SECTION.function) {
      section.number(types.length);
      for (const { old } of functions) section.number(types[old] ?? 0);
    } else if (id === SECTION.code) {
      section.number(bodies.length);
      for (const { body } of functions) {
        const rewritten = new Writer();
        copyBody(new Reader(wasm, body.start, body.end, rewritten), renumber);
        section.sized(rewritten);
      }
    } else {
      const copy = new Reader(wasm, start, end, section);
      REWRITTEN[id]?.(copy, renumber);
      copy.copyRest();
    }
    output.byte(id);
    output.sized(section);
  }
  return output.finish();
}

/** @param {Uint8Array} wasm */
function sectionsOf(wasm) {
  const reader = new Reader(wasm, HEADER_BYTES, wasm.length);
  const sections = [];
  while (!reader.isAtEnd()) sections.push({ id: reader.byte(), ...reader.range() });
  return sections;
}

/** Copies of one generic function have the same type and nearly the same instructions; their operands differ. @param {number} type @param {Reader} body */
function keyOf(type, body) {
  const key = new Writer();
  for (const shift of [24, 16, 8, 0]) key.byte((type >>> shift) & 255);
  skipLocals(body);
  while (!body.isAtEnd()) key.byte(instruction(body, (index) => index));
  return key.finish();
}

/** @param {Reader} body @param {Renumber} renumber */
function copyBody(body, renumber) {
  skipLocals(body);
  while (!body.isAtEnd()) instruction(body, renumber);
  body.copyRest();
}

/** @param {Reader} body */
function skipLocals(body) {
  body.list((it) => it.skipNumbers(2));
}

/** @param {Reader} imports */
function countImportedFunctions(imports) {
  const kinds = imports.list((it) => {
    it.range();
    it.range();
    const kind = it.byte();
    if (kind === FUNCTION) it.number();
    else if (kind === 1 || kind === 2) skipLimits(it, kind === 1);
    else if (kind === 3 || kind === 4) it.skipNumbers(2);
    else throw new Error(`an import of the unknown kind ${kind}`);
    return kind;
  });
  return kinds.filter((kind) => kind === FUNCTION).length;
}

/** Of a memory or, with its type, of a table. @param {Reader} reader @param {boolean} hasType */
function skipLimits(reader, hasType) {
  if (hasType) reader.skipNumbers(1);
  reader.skipNumbers(reader.number() & 1 ? 2 : 1);
}

/** What has indices of functions besides code. @type {Record<number, (section: Reader, renumber: Renumber) => void>} */
const REWRITTEN = {
  [SECTION.global]: (section, renumber) => {
    section.list((it) => {
      it.skipNumbers(2);
      expression(it, renumber);
    });
  },
  [SECTION.export]: (section, renumber) => {
    section.list((it) => {
      it.range();
      if (it.byte() === FUNCTION) it.replaceNumber(renumber);
      else it.number();
    });
  },
  [SECTION.start]: (section, renumber) => section.replaceNumber(renumber),
  [SECTION.element]: (section, renumber) => {
    section.list((it) => {
      const flags = it.number();
      if (flags > 7) throw new Error(`an element segment of the unknown kind ${flags}`);
      const isActive = (flags & 1) === 0;
      if (isActive && flags & 2) it.number();
      if (isActive) expression(it, renumber);
      if (flags & 3) it.byte();
      it.list((item) => (flags & 4 ? expression(item, renumber) : item.replaceNumber(renumber)));
    });
  },
};

/** A constant expression with the `end` that closes it. @param {Reader} reader @param {Renumber} renumber */
function expression(reader, renumber) {
  while (instruction(reader, renumber) !== END);
}

const END = 0x0b;

/** How many numbers follow an instruction; the ones with other operands are in `instruction`. @type {Map<number, number>} */
const NUMBERS = new Map([
  ...opcodes(0, [0x00, 0x01], [0x05], [0x0a, 0x0b], [0x0f], [0x19, 0x1b], [0x45, 0xc4], [0xd1]),
  ...opcodes(1, [0x02, 0x04], [0x06, 0x09], [0x0c, 0x0d], [0x18], [0x20, 0x26], [0x3f, 0x42], [0xd0]),
  ...opcodes(2, [0x11], [0x28, 0x3e]),
]);
/** The same for what follows 0xfc. @type {Map<number, number>} */
const LATER_NUMBERS = new Map([...opcodes(0, [0x00, 0x07]), ...opcodes(1, [0x09], [0x0b], [0x0d], [0x0f, 0x11]), ...opcodes(2, [0x08], [0x0a], [0x0c], [0x0e])]);

/** @param {number} numbers @param {number[][]} ranges @returns {[number, number][]} */
function opcodes(numbers, ...ranges) {
  return ranges.flatMap(([first = 0, last = first]) => Array.from({ length: last - first + 1 }, (_, at) => /** @type {[number, number]} */ ([first + at, numbers])));
}

/** Reads one instruction and returns its first byte. @param {Reader} reader @param {Renumber} renumber */
function instruction(reader, renumber) {
  const opcode = reader.byte();
  const numbers = opcode === 0xfc ? LATER_NUMBERS.get(reader.number()) : NUMBERS.get(opcode);
  if (numbers !== undefined) {
    reader.skipNumbers(numbers);
    return opcode;
  }
  switch (opcode) {
    case 0x10: // call
    case 0x12: // return_call
    case 0xd2: // ref.func
      reader.replaceNumber(renumber);
      break;
    case 0x0e: // br_table
      reader.skipNumbers(reader.number() + 1);
      break;
    case 0x1c: // select with types
      reader.range();
      break;
    case 0x1f: // try_table: a catch has a kind, a tag unless it catches all, and a label
      reader.number();
      reader.list((it) => it.skipNumbers(it.byte() < 2 ? 2 : 1));
      break;
    case 0x43: // f32.const
      reader.skip(4);
      break;
    case 0x44: // f64.const
      reader.skip(8);
      break;
    default:
      throw new Error(`the wasm has the unknown instruction 0x${opcode.toString(16)}; add it to scripts/wasm_order.mjs`);
  }
  return opcode;
}
