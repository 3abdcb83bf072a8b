// What a layout is made of and what it is, and the name under which it is kept. Without the library that makes it.

export interface GraphInput {
  nodes: { id: string; width: number; height: number }[];
  /** With the width of its label, 0 without one. */
  edges: { key: string; from: string; to: string; width: number }[];
}

export interface Placed {
  width: number;
  height: number;
  nodes: Record<string, { x: number; y: number }>;
  /** By the key of the edge. */
  edges: Record<string, { x: number; y: number }[]>;
  /** The middles of labels, by the key of the edge. A loop at one node has none. */
  labels: Record<string, { x: number; y: number }>;
}

/** A name for a graph that is laid out alike: a hash of what the layout depends on. */
export function layoutKey(input: GraphInput): string {
  let hash = 0xcbf29ce484222325n;
  const text = JSON.stringify(input);
  for (let index = 0; index < text.length; index += 1) hash = BigInt.asUintN(64, (hash ^ BigInt(text.charCodeAt(index))) * 0x100000001b3n);
  return `curfew-graph-2-${hash.toString(16)}`;
}
