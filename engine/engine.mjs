// Loads the engine's wasm and calls it: an object in, an object out. Works in Node, in browsers and in Workers, because it needs
// nothing but WebAssembly. The wasm has one function for all operations; docs/simulation.md has them.

/** Workers cannot compile, and their types say so; there the source is a module already. @type {any} */
const compiler = WebAssembly;

/** The refusal of a request, as the API would answer it. */
export class EngineError extends Error {
  /** @param {{status: number, code: string, message: string, pointer?: string, details?: unknown}} error */
  constructor(error) {
    super(error.message);
    this.name = "EngineError";
    this.status = error.status;
    this.code = error.code;
    this.pointer = error.pointer;
    this.details = error.details;
  }
}

/**
 * The engine. `source` is the wasm: its bytes, or a compiled module, as Workers import it.
 * @param {BufferSource | WebAssembly.Module} source
 */
export async function loadEngine(source) {
  /** @type {WebAssembly.Module} */
  const module = source instanceof WebAssembly.Module ? source : await compiler.compile(source);
  return new Engine(module, await WebAssembly.instantiate(module));
}

/** The same where nothing may be awaited. Browsers refuse it for a large module outside of workers. @param {BufferSource | WebAssembly.Module} source */
export function loadEngineSync(source) {
  const module = source instanceof WebAssembly.Module ? source : new compiler.Module(source);
  return new Engine(module, new WebAssembly.Instance(module));
}

export class Engine {
  #module;
  #exports;

  /** @param {WebAssembly.Module} module @param {WebAssembly.Instance} instance */
  constructor(module, instance) {
    this.#module = module;
    this.#exports = exportsOf(instance);
  }

  /**
   * Answers a request: `{op: "check" | "resolve" | "simulate", ...}`.
   * @param {Record<string, unknown>} request
   * @returns {any}
   */
  call(request) {
    const answer = JSON.parse(this.callText(JSON.stringify(request)));
    if (answer.error !== undefined) throw new EngineError(answer.error);
    return answer.ok;
  }

  /** The text of the answer to the text of a request. @param {string} request */
  callText(request) {
    const bytes = new TextEncoder().encode(request);
    try {
      const pointer = this.#exports.curfew_alloc(bytes.length);
      // After the allocation: it may have replaced the buffer of the memory.
      new Uint8Array(this.#exports.memory.buffer, pointer, bytes.length).set(bytes);
      const answer = this.#exports.curfew_call(pointer, bytes.length);
      const [address, length] = [Number(answer & 0xffffffffn), Number(answer >> 32n & 0xffffffffn)];
      const text = new TextDecoder().decode(new Uint8Array(this.#exports.memory.buffer, address, length));
      this.#exports.curfew_free(address, length);
      return text;
    } catch (error) {
      // The memory of an instance that stopped in the middle cannot be relied on.
      this.#exports = exportsOf(new WebAssembly.Instance(this.#module));
      const why = error instanceof Error ? error.message : String(error);
      throw new Error(`the engine stopped (${why}). This is a bug in Curfew: please report it with the request. The engine can be used again.`, { cause: error });
    }
  }
}

/**
 * @typedef {{
 *   memory: WebAssembly.Memory,
 *   curfew_alloc(length: number): number,
 *   curfew_call(pointer: number, length: number): bigint,
 *   curfew_free(pointer: number, length: number): void,
 * }} Exports
 */

/** @param {WebAssembly.Instance} instance @returns {Exports} */
function exportsOf(instance) {
  const exports = /** @type {Partial<Exports>} */ (/** @type {unknown} */ (instance.exports));
  const { memory, curfew_alloc, curfew_call, curfew_free } = exports;
  if (!memory || !curfew_alloc || !curfew_call || !curfew_free) {
    throw new Error("this wasm is not Curfew's engine; `npm run engine-wasm` builds it as engine/engine.wasm");
  }
  return { memory, curfew_alloc, curfew_call, curfew_free };
}
