// Draws a graph as SVG: nodes with their state, the path taken, zoom, pan, a search, and keys for all of it.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Problem } from "../../client/index.ts";
import { edgeKey, layoutInput, shownEdge, shownKind, shownName, shownVisits, warningLabel, type Graph, type NodeState } from "../logic/graph.ts";
import type { Placed } from "../logic/graph_key.ts";
import { cut, visible } from "../logic/safe_text.ts";
import { lookOf } from "../logic/statuses.ts";
import { words } from "../logic/words.ts";
import { placedGraph } from "../state/graph_layout.ts";
import { Icon } from "./icon.tsx";
import { Problem as ProblemBox } from "./text.tsx";

interface GraphViewProps {
  graph: Graph;
  states?: Map<string, NodeState> | undefined;
  taken?: Map<string, number> | undefined;
  warnings?: Map<string, Problem[]> | undefined;
  near?: Set<string> | undefined;
  chosen?: string | undefined;
  onChoose?: ((node: string) => void) | undefined;
}

interface View {
  x: number;
  y: number;
  scale: number;
}

const clamp = (scale: number): number => Math.min(Math.max(scale, 0.05), 3);

export function GraphView({ graph, states, taken, warnings, near, chosen, onChoose }: GraphViewProps) {
  const input = useMemo(() => layoutInput(graph), [graph]);
  const [placed, setPlaced] = useState<Placed | undefined>(undefined);
  const [problem, setProblem] = useState<string | undefined>(undefined);
  const [text, setText] = useState("");
  const frame = useRef<SVGSVGElement>(null);
  const content = useRef<SVGGElement>(null);
  const view = useRef<View>({ x: 0, y: 0, scale: 1 });

  useEffect(() => {
    if (input.nodes.length === 0) return;
    let isGone = false;
    placedGraph(input).then(
      (placed) => !isGone && setPlaced(placed),
      (error) => !isGone && setProblem(`the graph could not be laid out: ${error instanceof Error ? error.message : error}`),
    );
    return () => {
      isGone = true;
    };
  }, [input]);

  // Zooming and panning change one attribute; nothing is rendered again.
  const isFitted = useRef(true);
  const apply = (next: View): void => {
    isFitted.current = false;
    view.current = next;
    content.current?.setAttribute("transform", `translate(${next.x} ${next.y}) scale(${next.scale})`);
  };
  const size = () => ({ width: frame.current?.clientWidth ?? 600, height: frame.current?.clientHeight ?? 400 });
  const fit = (): void => {
    if (!placed) return;
    const { width, height } = size();
    const right = rightOf(placed, graph);
    const scale = clamp(Math.min(width / right, height / placed.height, 1.15));
    apply({ scale, x: (width - right * scale) / 2, y: Math.max((height - placed.height * scale) / 2, 4) });
    isFitted.current = true;
  };
  const zoomAt = (factor: number, x = size().width / 2, y = size().height / 2): void => {
    const before = view.current;
    const scale = clamp(before.scale * factor);
    apply({ scale, x: x - ((x - before.x) * scale) / before.scale, y: y - ((y - before.y) * scale) / before.scale });
  };
  const show = (id: string): void => {
    const place = placed?.nodes[id];
    if (!place) return;
    const { width, height } = size();
    const scale = Math.max(view.current.scale, 0.8);
    apply({ scale, x: width / 2 - place.x * scale, y: height / 2 - place.y * scale });
  };
  useEffect(() => {
    fit();
    if (!frame.current) return;
    // A window that becomes narrow, or a token beside it: what was seen as a whole still is.
    const observer = new ResizeObserver(() => isFitted.current && fit());
    observer.observe(frame.current);
    return () => observer.disconnect();
  }, [placed]);

  const drag = useRef<{ x: number; y: number; view: View } | undefined>(undefined);
  const wanted = text.trim().toLowerCase();
  const found = wanted === "" ? [] : graph.nodes.filter(({ id, kind }) => id.toLowerCase().includes(wanted) || kind.toLowerCase().includes(wanted));

  if (problem) return <ProblemBox message={problem} />;
  if (graph.nodes.length === 0) return <div class="empty">There is no graph: the document is not known here.</div>;
  return (
    <div class="graph">
      <div class="graph-tools">
        <label class="row">
          <span class="for-readers">Find a node</span>
          <input
            class="input"
            placeholder="Find a node"
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key !== "Enter" || !found[0]) return;
              show(found[0].id);
              frame.current?.querySelector<SVGGElement>(`[data-node="${CSS.escape(found[0].id)}"]`)?.focus({ preventScroll: true });
            }}
          />
        </label>
        <span class="muted small" role="status">
          {wanted && `${found.length} found`}
        </span>
        <span class="grow" />
        <button type="button" class="button small" onClick={fit}>
          <Icon name="fit" size={12} /> Fit
        </button>
        <button type="button" class="button small" aria-label="Zoom out" onClick={() => zoomAt(1 / 1.3)}>
          <Icon name="minus" size={12} />
        </button>
        <button type="button" class="button small" aria-label="Zoom in" onClick={() => zoomAt(1.3)}>
          <Icon name="plus" size={12} />
        </button>
      </div>
      {placed ? (
        <svg
          ref={frame}
          class="graph-frame"
          style={{ height: `clamp(220px, ${Math.round(placed.height * 1.15 + 30)}px, 60vh)` }}
          role="group"
          aria-label="Graph of the workflow"
          onWheel={(event) => {
            if (!event.ctrlKey && !event.metaKey) return;
            event.preventDefault();
            const box = event.currentTarget.getBoundingClientRect();
            zoomAt(event.deltaY > 0 ? 1 / 1.12 : 1.12, event.clientX - box.left, event.clientY - box.top);
          }}
          onPointerDown={(event) => {
            if ((event.target as Element).closest("[data-node]")) return;
            event.currentTarget.setPointerCapture(event.pointerId);
            drag.current = { x: event.clientX, y: event.clientY, view: view.current };
          }}
          onPointerMove={(event) => {
            const from = drag.current;
            if (from) apply({ ...from.view, x: from.view.x + event.clientX - from.x, y: from.view.y + event.clientY - from.y });
          }}
          onPointerUp={() => (drag.current = undefined)}
          onPointerCancel={() => (drag.current = undefined)}
          onKeyDown={(event) => {
            const { x, y, scale } = view.current;
            const action = { "+": () => zoomAt(1.2), "=": () => zoomAt(1.2), "-": () => zoomAt(1 / 1.2), "0": fit, ArrowLeft: () => apply({ x: x + 60, y, scale }), ArrowRight: () => apply({ x: x - 60, y, scale }), ArrowUp: () => apply({ x, y: y + 60, scale }), ArrowDown: () => apply({ x, y: y - 60, scale }) }[event.key];
            if (!action) return;
            event.preventDefault();
            action();
          }}
        >
          <defs>
            {["plain", "taken", "failure"].map((name) => (
              <marker key={name} id={`arrow-${name}`} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse">
                <path class={`arrow ${name}`} d="M0 0 8 4 0 8z" />
              </marker>
            ))}
          </defs>
          <g ref={content} transform={`translate(${view.current.x} ${view.current.y}) scale(${view.current.scale})`}>
            {graph.edges.map((edge, index) => {
              const isLoop = edge.from === edge.to;
              const points = isLoop ? loopOf(placed.nodes[edge.from], graph.nodes.find(({ id }) => id === edge.from)?.width ?? 0) : (placed.edges[String(index)] ?? []);
              const times = taken?.get(edgeKey(edge.from, edge.to)) ?? 0;
              const look = times > 0 ? "taken" : edge.on === "success" ? "plain" : "failure";
              const label = shownEdge(edge, times);
              const middle = placed.labels[String(index)];
              const side = points[Math.floor(points.length / 2)];
              return (
                <g key={index}>
                  <path class={`edge ${look} ${edge.on === "success" ? "" : "other-way"}`} d={isLoop ? curveOf(points) : pathOf(points)} marker-end={`url(#arrow-${look})`} />
                  {label && (middle ?? side) && (
                    <text class="edge-label" x={middle ? middle.x : side!.x + 5} y={middle ? middle.y + 4 : side!.y} text-anchor={middle ? "middle" : "start"}>
                      {label}
                    </text>
                  )}
                </g>
              );
            })}
            {graph.nodes.map((node) => {
              const place = placed.nodes[node.id];
              if (!place) return null;
              const state = states?.get(node.id);
              const look = state && lookOf(state.status);
              const list = warnings?.get(node.id);
              const name = shownName(node.id);
              const kind = shownKind(node);
              const visits = state ? shownVisits(state) : "";
              const counts = state?.counts.map(([status, count]) => `${count.toLocaleString("en")} ${words(status)}`).join(", ");
              return (
                <g
                  key={node.id}
                  class={`node ${look ? `tone-${look.tone} visited` : "tone-neutral"} ${node.id === chosen ? "chosen" : ""} ${found.some(({ id }) => id === node.id) ? "found" : ""} ${near?.has(node.id) ? "near" : ""}`}
                  data-node={node.id}
                  transform={`translate(${place.x - node.width / 2} ${place.y - node.height / 2})`}
                  tabindex={0}
                  role="button"
                  aria-label={[name, kind, visits, list && warningLabel(list), counts, list && list.length > 1 && list.map(({ code }) => words(code)).join(", ")].filter(Boolean).join(" ")}
                  onClick={() => onChoose?.(node.id)}
                  onKeyDown={(event) => {
                    if (event.key === "Enter" || event.key === " ") (event.preventDefault(), onChoose?.(node.id));
                  }}
                >
                  <title>{visible([node.id, [node.kind, node.limit].filter(Boolean).join(" · "), counts, ...(list ?? []).map(({ message }) => message)].filter(Boolean).join("\n"))}</title>
                  <rect class="box" width={node.width} height={node.height} rx={7} />
                  <text class="node-name" x={12} y={19}>
                    {name}
                  </text>{" "}
                  <text class="node-kind" x={12} y={35}>
                    {kind}
                  </text>{" "}
                  {state && (
                    <g class="node-state" transform={`translate(${node.width - 8} 0)`}>
                      <svg x={-14} y={6} width={13} height={13}>
                        <Icon name={look!.shape} size={13} />
                      </svg>
                      {visits && (
                        <text class="node-count" y={-5} {...countPlace(visits, node.width)}>
                          {visits}
                        </text>
                      )}
                    </g>
                  )}
                  {list && (
                    <g class="warning" aria-hidden="true">
                      <svg x={-8} y={-9} width={18} height={18}>
                        <Icon name="warning" size={18} />
                      </svg>
                      <text class="warning-text" x={12} y={51}>
                        {visible(cut(warningLabel(list), 38).shown)}
                      </text>
                    </g>
                  )}
                </g>
              );
            })}
          </g>
        </svg>
      ) : (
        <div class="empty">Laying out the graph …</div>
      )}
    </div>
  );
}

/** How far a node that leads to itself reaches beyond its side, and a character of the label beside that. */
const LOOP_PX = 42;
const LABEL_CHARACTER_PX = 6.4;

/** The right border of what is drawn: the layout has no room for nodes that lead to themselves. */
const rightOf = (placed: Placed, { nodes, edges }: Graph): number =>
  edges.reduce((most, edge) => {
    const place = edge.from === edge.to ? placed.nodes[edge.from] : undefined;
    const half = (nodes.find(({ id }) => id === edge.from)?.width ?? 0) / 2;
    return place ? Math.max(most, place.x + half + LOOP_PX + shownEdge(edge).length * LABEL_CHARACTER_PX) : most;
  }, placed.width);

const COUNT_CHARACTER_PX = 7;

/** Beyond the corner, or, where that is too long, from the middle on, where an arrow comes to the node. */
const countPlace = (text: string, width: number) => (text.length * COUNT_CHARACTER_PX < width / 2 ? { x: 26, "text-anchor": "end" as const } : { x: 20 - width / 2, "text-anchor": "start" as const });

/** A node that leads to itself: beside it, where the layout has no room for it. */
function loopOf(place: { x: number; y: number } | undefined, width: number): { x: number; y: number }[] {
  if (!place) return [];
  const right = place.x + width / 2;
  return [{ x: right, y: place.y - 12 }, { x: right + 40, y: place.y - 26 }, { x: right + 32, y: place.y + 4 }, { x: right + 40, y: place.y + 26 }, { x: right, y: place.y + 12 }];
}

const curveOf = ([from, one, , two, to]: { x: number; y: number }[]): string => (from && one && two && to ? `M${from.x} ${from.y}C${one.x} ${one.y} ${two.x} ${two.y} ${to.x} ${to.y}` : "");

function pathOf(points: { x: number; y: number }[]): string {
  const [first, ...rest] = points;
  if (!first) return "";
  if (rest.length < 2) return `M${first.x} ${first.y}${rest.map(({ x, y }) => `L${x} ${y}`).join("")}`;
  // Through the middle of each part, so that corners are round.
  let path = `M${first.x} ${first.y}`;
  for (let index = 0; index < rest.length - 1; index += 1) {
    const at = rest[index]!;
    const next = rest[index + 1]!;
    const end = index === rest.length - 2 ? next : { x: (at.x + next.x) / 2, y: (at.y + next.y) / 2 };
    path += `Q${at.x} ${at.y} ${end.x} ${end.y}`;
  }
  return path;
}
