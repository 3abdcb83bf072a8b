// The engine's wasm off the main thread. Its script has a policy of its own, the only one that allows to compile wasm.
import { EngineError, loadEngine, type Engine } from "../engine/engine.mjs";
import type { EngineAnswer } from "./state/engine.ts";

declare const ENGINE_WASM: string;

let engine: Promise<Engine> | undefined;

async function load(): Promise<Engine> {
  const response = await fetch(ENGINE_WASM);
  if (!response.ok) throw new Error(`its wasm could not be loaded (status ${response.status}): reload the page`);
  return loadEngine(await response.arrayBuffer());
}

addEventListener("message", async (event: MessageEvent<{ id: number; request: Record<string, unknown> }>) => {
  const { id, request } = event.data;
  const answer = (answer: EngineAnswer): void => postMessage(answer);
  try {
    // A failed load is tried again by the next request.
    engine ??= load().catch((error) => {
      engine = undefined;
      throw error;
    });
    const loaded = await engine;
    answer({ id, ok: loaded.call(request) });
  } catch (error) {
    if (error instanceof EngineError) answer({ id, refused: { code: error.code, message: error.message, details: error.details } });
    else answer({ id, problem: error instanceof Error ? error.message : String(error) });
  }
});
