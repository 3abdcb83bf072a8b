// The layout of a graph, from top to bottom. It runs in a Web Worker, and in tests.
import { Graph, layout as layOut } from "@dagrejs/dagre";
import type { GraphInput, Placed } from "./graph_key.ts";

const LABEL_HEIGHT = 14;

export function layout({ nodes, edges }: GraphInput): Placed {
  const graph = new Graph({ multigraph: true });
  graph.setGraph({ rankdir: "TB", nodesep: 34, ranksep: 44, edgesep: 14, marginx: 16, marginy: 16 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { id, width, height } of nodes) graph.setNode(id, { width, height });
  for (const { key, from, to, width } of edges) graph.setEdge(from, to, width > 0 && from !== to ? { width, height: LABEL_HEIGHT, labelpos: "c" } : {}, key);
  layOut(graph);
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  const place = (id: string) => graph.node(id) as { x: number; y: number };
  const edgeAt = ({ from, to, key }: GraphInput["edges"][number]) => graph.edge(from, to, key) as { points?: { x: number; y: number }[]; x?: number; y?: number };
  const labels = edges.filter(({ from, to, width }) => width > 0 && from !== to).map((edge) => [edge.key, { x: edgeAt(edge).x ?? 0, y: edgeAt(edge).y ?? 0 }]);
  return {
    width,
    height,
    nodes: Object.fromEntries(nodes.map(({ id }) => [id, { x: place(id).x, y: place(id).y }])),
    edges: Object.fromEntries(edges.map((edge) => [edge.key, edgeAt(edge).points ?? []])),
    labels: Object.fromEntries(labels),
  };
}
