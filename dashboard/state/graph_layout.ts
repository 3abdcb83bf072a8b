// Layouts of graphs: made once by a Web Worker, then kept in session storage under the hash of their content.
import { layoutKey, type GraphInput, type Placed } from "../logic/graph_key.ts";

declare const GRAPH_WORKER: string;

/** More does not fit beside others. */
const STORED_CHARACTERS = 500_000;

let worker: Worker | undefined;
let last = 0;
const waiting = new Map<number, { resolve: (placed: Placed) => void; reject: (error: Error) => void }>();

export async function placedGraph(graph: GraphInput): Promise<Placed> {
  const key = layoutKey(graph);
  const stored = sessionStorage.getItem(key);
  if (stored !== null) return JSON.parse(stored);
  const placed = await laidOut(graph);
  const text = JSON.stringify(placed);
  try {
    if (text.length <= STORED_CHARACTERS) sessionStorage.setItem(key, text);
  } catch {
    // It is full: the layout is made again the next time.
  }
  return placed;
}

function laidOut(graph: GraphInput): Promise<Placed> {
  worker ??= begun();
  const id = (last += 1);
  return new Promise((resolve, reject) => {
    waiting.set(id, { resolve, reject });
    worker!.postMessage({ id, graph });
  });
}

function begun(): Worker {
  const made = new Worker(GRAPH_WORKER, { type: "module" });
  made.addEventListener("message", ({ data }: MessageEvent<{ id: number; placed?: Placed; problem?: string }>) => {
    const asked = waiting.get(data.id);
    waiting.delete(data.id);
    if (data.placed) asked?.resolve(data.placed);
    else asked?.reject(new Error(data.problem ?? "no answer"));
  });
  made.addEventListener("error", (event) => {
    for (const { reject } of waiting.values()) reject(new Error(event.message || "its script could not be loaded"));
    waiting.clear();
    worker = undefined;
  });
  return made;
}
