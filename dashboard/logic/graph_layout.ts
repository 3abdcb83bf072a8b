// The layout of a graph, from top to bottom. It runs in a Web Worker, and in tests.
import { Graph, layout as layOut } from "@dagrejs/dagre";
import type { GraphInput, Placed } from "./graph_key.ts";

export function layout({ nodes, edges }: GraphInput): Placed {
  const graph = new Graph({ multigraph: true });
  graph.setGraph({ rankdir: "TB", nodesep: 34, ranksep: 44, edgesep: 14, marginx: 16, marginy: 16 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { id, width, height } of nodes) graph.setNode(id, { width, height });
  for (const { key, from, to } of edges) graph.setEdge(from, to, {}, key);
  layOut(graph);
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  const place = (id: string) => graph.node(id) as { x: number; y: number };
  return {
    width,
    height,
    nodes: Object.fromEntries(nodes.map(({ id }) => [id, { x: place(id).x, y: place(id).y }])),
    edges: Object.fromEntries(edges.map(({ key, from, to }) => [key, (graph.edge(from, to, key) as { points?: { x: number; y: number }[] }).points ?? []])),
  };
}
