// The engine in the browser: a web worker that is started, and loads its wasm, with the first question.

declare const ENGINE_WORKER: string;

export interface Refusal {
  code: string;
  message: string;
  details?: unknown;
}

export type EngineAnswer = { id: number } & ({ ok: unknown } | { refused: Refusal } | { problem: string });

/** What the engine refuses, as the API would. */
export class EngineRefused extends Error {
  readonly code: string;
  readonly details: unknown;

  constructor({ code, message, details }: Refusal) {
    super(message);
    this.code = code;
    this.details = details;
  }
}

let worker: Worker | undefined;
let last = 0;
const waiting = new Map<number, { resolve: (answer: unknown) => void; reject: (error: Error) => void }>();

/** Asks the engine; `op` of the request says what for. */
export function askEngine(request: Record<string, unknown>): Promise<unknown> {
  worker ??= begun();
  const id = (last += 1);
  return new Promise((resolve, reject) => {
    waiting.set(id, { resolve, reject });
    worker!.postMessage({ id, request });
  });
}

function begun(): Worker {
  const made = new Worker(ENGINE_WORKER, { type: "module" });
  made.addEventListener("message", ({ data }: MessageEvent<EngineAnswer>) => {
    const asked = waiting.get(data.id);
    waiting.delete(data.id);
    if ("ok" in data) asked?.resolve(data.ok);
    else asked?.reject("refused" in data ? new EngineRefused(data.refused) : new Error(`the engine could not answer: ${data.problem}`));
  });
  made.addEventListener("error", (event) => {
    for (const { reject } of waiting.values()) reject(new Error(`the engine could not be started, reload the page: ${event.message || "its script could not be loaded"}`));
    waiting.clear();
    worker = undefined;
  });
  return made;
}
