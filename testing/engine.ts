// The engine in its own wasm, compiled once for a process.
import { readFileSync } from "node:fs";
import { EngineError, loadEngineSync, type Engine } from "../engine/engine.mjs";

const WASM = new URL("../engine/engine.wasm", import.meta.url);

let loaded: Engine | undefined;

/** An engine with sessions. One that has stopped lost its sessions, and is never used for new ones: their numbers would begin again. */
export function engine(): Engine {
  return (loaded ??= loadEngineSync(wasm()));
}

/** Calls the engine. Its refusal, or that of a run, is thrown as an `EngineError`. */
export function call(engine: Engine, request: Record<string, unknown>): any {
  try {
    const answer = engine.call(request);
    if (answer.refused !== undefined) throw new EngineError(answer.refused);
    return answer;
  } catch (error) {
    if (!(error instanceof EngineError) && engine === loaded) loaded = undefined;
    throw error;
  }
}

function wasm(): Buffer {
  try {
    return readFileSync(WASM);
  } catch (error) {
    throw new Error("engine/engine.wasm is missing: in a checkout of Curfew, `npm run engine-wasm` builds it", { cause: error });
  }
}
