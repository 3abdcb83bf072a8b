// The graph of a workflow: from the document to nodes and edges, and what a run has done on them. A document of a later version may have
// anything: what is not understood is left out, never thrown at.
import type { Problem, RunEvent, Token } from "../../client/index.ts";
import type { GraphInput } from "./graph_key.ts";
import { short, visible } from "./safe_text.ts";
import { isEnded } from "./statuses.ts";

type Json = Record<string, any>;

const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value);
const objectsIn = (value: unknown): Json[] => (Array.isArray(value) ? value.filter(isObject) : []);

export interface GraphNode {
  id: string;
  /** What it runs, in a word or two. */
  kind: string;
  /** A limit that the node itself has. */
  limit: string;
  width: number;
  height: number;
}

export interface GraphEdge {
  id: string;
  from: string;
  to: string;
  /** `failure` and `timeout` are drawn differently. */
  on: string;
  label: string;
}

export interface Graph {
  nodes: GraphNode[];
  edges: GraphEdge[];
}

const NODE_HEIGHT = 46;
const WARNING_HEIGHT = 16;
/** Of the name of a node, and of the smaller text below it. */
const CHARACTER = 7.4;
const SMALL_CHARACTER = 6.4;
const WIDTH_MAX = 300;
/** The margins, and the room for the sign of a state. */
const WIDTH_BESIDE_NAME = 42;
const WIDTH_BESIDE_KIND = 24;

export function graphOf(document: unknown): Graph {
  const source = isObject(document) ? document : {};
  const nodes = objectsIn(source["nodes"])
    .filter(({ id }) => typeof id === "string")
    .map((node): GraphNode => {
      const kind = kindOf(node);
      const limit = limitOf(node);
      const wanted = Math.max(shownName(node["id"]).length * CHARACTER + WIDTH_BESIDE_NAME, shownKind({ kind, limit }).length * SMALL_CHARACTER + WIDTH_BESIDE_KIND, 116);
      return { id: node["id"], kind, limit, width: Math.min(wanted, WIDTH_MAX), height: NODE_HEIGHT };
    });
  const known = new Set(nodes.map(({ id }) => id));
  const edges = objectsIn(source["transitions"])
    .filter(({ from_node_id, to_node_id }) => known.has(from_node_id) && known.has(to_node_id))
    .map((transition, index): GraphEdge => ({
      id: typeof transition["id"] === "string" ? transition["id"] : `#${index}`,
      from: transition["from_node_id"],
      to: transition["to_node_id"],
      on: typeof transition["on"] === "string" ? transition["on"] : "success",
      label: labelOf(transition),
    }));
  return { nodes, edges };
}

const NAME_CHARACTERS = Math.floor((WIDTH_MAX - WIDTH_BESIDE_NAME) / CHARACTER);
const KIND_CHARACTERS = Math.floor((WIDTH_MAX - WIDTH_BESIDE_KIND) / SMALL_CHARACTER);

/** What a node shows of its name. */
export const shownName = (id: string): string => short(visible(id), NAME_CHARACTERS - 1);
/** What it runs, and its own limit, as far as there is room. */
export const shownKind = ({ kind, limit }: Pick<GraphNode, "kind" | "limit">): string => short(visible([kind, limit].filter(Boolean).join(" · ")), KIND_CHARACTERS - 1);

function kindOf(node: Json): string {
  if (node["gate"]) return "gate";
  if (isObject(node["wait"])) return node["wait"]["signal"] ? `signal ${node["wait"]["signal"]}` : "wait";
  if (node["workflow_id"]) return `workflow ${node["workflow_id"]}`;
  if (node["task_id"]) return `task ${node["task_id"]}`;
  if (node["action_id"]) return `action ${node["action_id"]}`;
  return "pass-through";
}

function limitOf(node: Json): string {
  const value = node["timeout"] ?? node["gate"]?.["timeout"] ?? node["wait"]?.["timeout"];
  const ms = node["timeout_ms"] ?? node["gate"]?.["timeout_ms"] ?? node["wait"]?.["timeout_ms"];
  return typeof value === "string" ? value : typeof ms === "number" ? `${ms} ms` : "";
}

function labelOf(transition: Json): string {
  const parts: string[] = [];
  if (typeof transition["condition"] === "string") parts.push(transition["condition"]);
  if (isObject(transition["foreach"])) parts.push("for each");
  else if (transition["spawn_count"] !== undefined && transition["spawn_count"] !== 1) parts.push(`×${transition["spawn_count"]}`);
  if (isObject(transition["loop_config"])) parts.push(`at most ${transition["loop_config"]["max_iterations"]} times`);
  if (isObject(transition["synchronization"])) parts.push(`join ${strategyOf(transition["synchronization"]["strategy"])}`);
  return parts.join(", ").slice(0, 80);
}

const strategyOf = (strategy: unknown): string => (isObject(strategy) ? `${strategy["m_of_n"]} of n` : String(strategy ?? "all"));

/** What fits beside an arrow. The layout knows no fonts: a character of 11 px is about so wide. */
const LABEL_CHARACTERS = 42;
const LABEL_CHARACTER_PX = 6.4;

export const layoutInput = ({ nodes, edges }: Graph): GraphInput => ({
  nodes: nodes.map(({ id, width, height }) => ({ id, width, height })),
  edges: edges.map((edge, index) => ({ key: String(index), from: edge.from, to: edge.to, width: shownEdge(edge).length * LABEL_CHARACTER_PX })),
});

/** How often it was passed, unless that is what the document says anyway; what it follows; its condition. */
export function shownEdge({ on, label }: Graph["edges"][number], times = 0): string {
  const passed = times > 1 && !label.startsWith(`×${times}`) ? `×${times}` : "";
  return short(visible([passed, on === "success" ? "" : `on ${on}`, label].filter((part) => part !== "").join(" ")), LABEL_CHARACTERS - 1);
}

/** What a run has done at a node. */
export interface NodeState {
  /** The status that matters most of its tokens. */
  status: string;
  counts: [status: string, count: number][];
  visits: number;
  /** How often a path of the run has come here: more than one for loops. */
  round: number;
  /** The status of the token that undoes its work, if there is one. */
  undo?: string;
}

/** What needs attention first. */
const ORDER = ["failed", "timed_out", "awaiting_human", "executing", "dispatched", "pending", "suspended", "waiting_for_subworkflow", "waiting_for_siblings", "completed", "cancelled"];
const rank = (status: string): number => (ORDER.includes(status) ? ORDER.indexOf(status) : ORDER.length);

export function nodeStates(tokens: readonly Token[]): Map<string, NodeState> {
  const byNode = new Map<string, Token[]>();
  const undoing = new Map<string, string>();
  for (const token of tokens) {
    // What undoes a node is no visit of it. Of several rounds the one that was not undone matters.
    if (token.compensation) {
      const before = undoing.get(token.node_id);
      if (before === undefined || rank(token.status) < rank(before)) undoing.set(token.node_id, token.status);
      continue;
    }
    const list = byNode.get(token.node_id);
    if (list) list.push(token);
    else byNode.set(token.node_id, [token]);
  }
  const states = new Map<string, NodeState>();
  for (const [node, list] of byNode) {
    const counts = new Map<string, number>();
    const instances = new Map<string, number>();
    for (const { status, branch } of list) {
      counts.set(status, (counts.get(status) ?? 0) + 1);
      const place = branch ? `${branch.instance}/${branch.index}` : "";
      instances.set(place, (instances.get(place) ?? 0) + 1);
    }
    const live = list.filter(({ status }) => !isEnded(status));
    // A round that is under way says more than one that failed before it.
    const status = (live.length > 0 ? live : list.at(-1)!.branch ? list : list.slice(-1)).reduce((most, token) => (rank(token.status) < rank(most.status) ? token : most)).status;
    const undo = undoing.get(node);
    states.set(node, { status, counts: [...counts].sort((a, b) => b[1] - a[1]), visits: list.length, round: Math.max(...instances.values()), ...(undo !== undefined && { undo }) });
  }
  return states;
}

/** What stands at a node: the round of a loop, or how many of its tokens have ended, and whether its work was undone. */
export const shownVisits = (state: NodeState): string => [visitsOf(state), state.undo === undefined ? "" : undoOf(state.undo)].filter((part) => part !== "").join(", ");

const undoOf = (status: string): string => (status === "completed" ? "undone" : isEnded(status) ? "not undone" : "being undone");

function visitsOf({ visits, round, counts }: NodeState): string {
  if (visits <= 1) return "";
  if (round > 1) return `round ${round.toLocaleString("en")}`;
  const ended = counts.reduce((sum, [status, count]) => (isEnded(status) ? sum + count : sum), 0);
  return ended === visits ? visits.toLocaleString("en") : `${ended.toLocaleString("en")} of ${visits.toLocaleString("en")}`;
}

/** How often each pair of nodes was passed. */
export function takenEdges(tokens: readonly Token[]): Map<string, number> {
  const byId = new Map(tokens.map((token) => [token.id, token]));
  const taken = new Map<string, number>();
  for (const token of tokens) {
    const before = token.parent_token_id === null ? undefined : byId.get(token.parent_token_id);
    if (!before || token.compensation) continue;
    const key = edgeKey(before.node_id, token.node_id);
    taken.set(key, (taken.get(key) ?? 0) + 1);
  }
  return taken;
}

export const edgeKey = (from: string, to: string): string => `${from}\u0000${to}`;

/** Warnings by the node that their pointer leads to; the others under the empty text. */
export function warningsByNode(document: unknown, warnings: readonly Problem[]): Map<string, Problem[]> {
  const found = new Map<string, Problem[]>();
  for (const warning of warnings) {
    for (const node of nodesAt(document, warning.pointer)) found.set(node, [...(found.get(node) ?? []), warning]);
  }
  return found;
}

/** The nodes that a pointer into a document is about; one empty text if it is about none. */
export function nodesAt(document: unknown, pointer: string): string[] {
  const source = isObject(document) ? document : {};
  const [, part, index] = /^\/(nodes|transitions|tasks|actions)\/(\d+)/.exec(pointer) ?? [];
  const item = part === undefined ? undefined : source[part]?.[Number(index)];
  const nodes = isObject(item) ? nodesOf(source, part!, item) : [];
  const ids = nodes.filter((id): id is string => typeof id === "string");
  return ids.length === 0 ? [""] : [...new Set(ids)];
}

function nodesOf(source: Json, part: string, item: Json): unknown[] {
  if (part === "nodes") return [item["id"]];
  if (part === "transitions") return [item["from_node_id"]];
  // A task or an action that is written inline belongs to the nodes that run it.
  const nodes = objectsIn(source["nodes"]);
  if (part === "tasks") return nodes.filter(({ task_id }) => task_id === item["id"]).map(({ id }) => id);
  const tasks = objectsIn(source["tasks"]).filter(({ steps }) => objectsIn(steps).some(({ action_id }) => action_id === item["id"]));
  const running = new Set(tasks.map(({ id }) => id));
  return nodes.filter(({ action_id, task_id }) => action_id === item["id"] || running.has(task_id)).map(({ id }) => id);
}

/** What a node says of its problems. */
export const warningLabel = (problems: readonly Problem[]): string => (problems.length === 1 ? problems[0]!.code.replaceAll("_", " ") : `${problems.length} problems`);

/** A graph whose nodes have room for what the analysis says about them. */
export const withWarnings = (graph: Graph, warnings: ReadonlyMap<string, Problem[]> | undefined): Graph => ({
  ...graph,
  nodes: graph.nodes.map((node) => {
    const problems = warnings?.get(node.id);
    return problems ? { ...node, height: node.height + WARNING_HEIGHT, width: Math.max(node.width, Math.min(warningLabel(problems).length * CHARACTER + 42, 300)) } : node;
  }),
});

/** The deadline of a node is near. */
export const nodesNearDeadline = (events: readonly RunEvent[], tokens: readonly Token[]): Set<string> => {
  const warned = new Set(events.filter(({ kind }) => kind === "deadline_warning").map(({ token_id }) => token_id));
  return new Set(tokens.filter(({ id, status }) => warned.has(id) && !isEnded(status)).map(({ node_id }) => node_id));
};
