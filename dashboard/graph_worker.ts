// Lays out a graph off the main thread: a large definition takes longer than a frame.
import type { GraphInput } from "./logic/graph_key.ts";
import { layout } from "./logic/graph_layout.ts";

addEventListener("message", (event: MessageEvent<{ id: number; graph: GraphInput }>) => {
  const { id, graph } = event.data;
  try {
    postMessage({ id, placed: layout(graph) });
  } catch (error) {
    postMessage({ id, problem: error instanceof Error ? error.message : String(error) });
  }
});
