// Reads and writes the parts of a wasm file: bytes, numbers (LEB128), lists and ranges with their length in front.

export class Reader {
  #wasm;
  #at;
  #end;
  #copied;
  #copy;

  /** What is read is copied to `copy`, except for replaced numbers. @param {Uint8Array} wasm @param {number} start @param {number} end @param {Writer} [copy] */
  constructor(wasm, start, end, copy) {
    this.#wasm = wasm;
    this.#at = start;
    this.#end = end;
    this.#copied = start;
    this.#copy = copy;
  }

  isAtEnd() {
    return this.#at >= this.#end;
  }

  byte() {
    const byte = this.#at < this.#end ? this.#wasm[this.#at] : undefined;
    if (byte === undefined) throw new Error("the wasm ends in the middle of a section");
    this.#at++;
    return byte;
  }

  /** Without its sign: only the place after a signed number matters here. */
  number() {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = this.byte();
      value += (byte & 127) * factor;
      if (byte < 128) return value;
    }
  }

  /** @param {number} count */
  skipNumbers(count) {
    for (let left = count; left > 0; left--) while (this.byte() >= 128);
  }

  /** @param {number} bytes */
  skip(bytes) {
    if (this.#at + bytes > this.#end) throw new Error("the wasm ends in the middle of a section");
    this.#at += bytes;
  }

  range() {
    const length = this.number();
    const start = this.#at;
    this.skip(length);
    return { start, end: start + length };
  }

  /** @template T @param {(reader: Reader) => T} item @returns {T[]} */
  list(item) {
    return Array.from({ length: this.number() }, () => item(this));
  }

  /** @param {(value: number) => number} change */
  replaceNumber(change) {
    this.#copyRead();
    const value = change(this.number());
    this.#copy?.number(value);
    this.#copied = this.#at;
  }

  copyRest() {
    this.#at = this.#end;
    this.#copyRead();
  }

  #copyRead() {
    this.#copy?.bytes(this.#wasm.subarray(this.#copied, this.#at));
    this.#copied = this.#at;
  }
}

export class Writer {
  #buffer = new Uint8Array(256);
  #length = 0;

  /** @param {number} value */
  byte(value) {
    this.#reserve(1);
    this.#buffer[this.#length++] = value;
  }

  /** @param {Uint8Array} values */
  bytes(values) {
    this.#reserve(values.length);
    this.#buffer.set(values, this.#length);
    this.#length += values.length;
  }

  /** @param {number} value */
  number(value) {
    if (!Number.isSafeInteger(value) || value < 0) throw new Error("the wasm refers to a function that it does not have");
    let left = value;
    for (; left > 127; left = Math.floor(left / 128)) this.byte((left % 128) | 128);
    this.byte(left);
  }

  /** Another output with its length in front. @param {Writer} part */
  sized(part) {
    this.number(part.#length);
    this.bytes(part.#buffer.subarray(0, part.#length));
  }

  finish() {
    return this.#buffer.slice(0, this.#length);
  }

  /** @param {number} more */
  #reserve(more) {
    if (this.#length + more <= this.#buffer.length) return;
    const larger = new Uint8Array(Math.max(this.#buffer.length * 2, this.#length + more));
    larger.set(this.#buffer);
    this.#buffer = larger;
  }
}
