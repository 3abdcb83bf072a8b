// The types of engine.mjs, also where there are none of `WebAssembly`: neither those of browsers nor those of Workers.

/** The wasm: its bytes, or a compiled `WebAssembly.Module`, as Workers import it. */
export type EngineSource = ArrayBuffer | ArrayBufferView | object;

/** The engine. */
export function loadEngine(source: EngineSource): Promise<Engine>;

/** The same where nothing may be awaited. Browsers refuse it for a large module outside of workers. */
export function loadEngineSync(source: EngineSource): Engine;

export interface Engine {
  /** Answers a request, `{op: "simulate", ...}`. A refusal is thrown as an `EngineError`. */
  call(request: Record<string, unknown>): any;
  /** The text of the answer to the text of a request. */
  callText(request: string): string;
}

/** The refusal of a request, as the API would answer it. */
export class EngineError extends Error {
  constructor(error: { status: number; code: string; message: string; pointer?: string; details?: unknown });
  readonly status: number;
  readonly code: string;
  readonly pointer: string | undefined;
  readonly details: any;
}
