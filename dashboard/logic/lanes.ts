// The rows of the timeline: one for each token; the branches of a fan-out are one row until it is opened.
import type { Token } from "../../client/index.ts";
import { isEnded } from "./statuses.ts";

export interface TokenRow {
  kind: "token";
  key: string;
  depth: number;
  token: Token;
}

export interface GroupRow {
  kind: "group";
  key: string;
  depth: number;
  instance: number;
  group: string;
  isOpen: boolean;
  /** All tokens inside, those of inner fan-outs, too. */
  tokens: Token[];
  /** The number of branches. */
  branches: number;
  /** How many tokens have each status. */
  counts: [status: string, count: number][];
  from: number;
  /** Undefined while a token is live. */
  to: number | undefined;
}

export type Row = TokenRow | GroupRow;

interface Group {
  instance: number;
  name: string;
  branches: number;
  /** The instance that it was created in. */
  outer: number | undefined;
  /** The branch of the outer instance that it was created in. */
  outerIndex: number;
  tokens: Token[];
}

/** What a fan-out is called: its node, or its group where branches have several nodes. */
export const groupName = ({ tokens, group }: Pick<GroupRow, "tokens" | "group">): string => {
  const nodes = new Set(tokens.map(({ node_id }) => node_id));
  return nodes.size === 1 ? [...nodes][0]! : group;
};

export const numberOf = (token: string): number => Number(token.slice(1)) || 0;

export function rowsOf(tokens: readonly Token[], open: ReadonlySet<number>): Row[] {
  const byId = new Map(tokens.map((token) => [token.id, token]));
  const groups = new Map<number, Group>();
  const items = new Map<number | undefined, (Token | Group)[]>();
  const put = (place: number | undefined, item: Token | Group): void => {
    const list = items.get(place);
    if (list) list.push(item);
    else items.set(place, [item]);
  };
  for (const token of tokens) {
    const { branch } = token;
    if (!branch || branch.total <= 1) {
      put(branch ? outerOf(token, byId)?.instance : undefined, token);
      continue;
    }
    let group = groups.get(branch.instance);
    if (!group) {
      const outer = outerOf(token, byId);
      group = { instance: branch.instance, name: branch.group, branches: branch.total, outer: outer?.instance, outerIndex: outer?.index ?? 0, tokens: [] };
      groups.set(branch.instance, group);
      put(group.outer, group);
    }
    group.tokens.push(token);
    put(branch.instance, token);
  }

  const everything = (group: Group): Token[] => (items.get(group.instance) ?? []).flatMap((item) => ("tokens" in item ? everything(item) : [item]));
  const rows: Row[] = [];
  const emit = (place: number | undefined, depth: number): void => {
    const list = items.get(place) ?? [];
    const ordered = place === undefined ? list : [...list].sort((a, b) => indexOf(a) - indexOf(b) || firstOf(a) - firstOf(b));
    for (const item of ordered) {
      if (!("tokens" in item)) {
        rows.push({ kind: "token", key: item.id, depth, token: item });
        continue;
      }
      const isOpen = open.has(item.instance);
      rows.push({ kind: "group", key: `g${item.instance}`, depth, instance: item.instance, group: item.name, isOpen, branches: item.branches, ...summaryOf(everything(item)) });
      if (isOpen) emit(item.instance, depth + 1);
    }
  };
  emit(undefined, 0);
  return rows;
}

const indexOf = (item: Token | Group): number => ("tokens" in item ? item.outerIndex : (item.branch?.index ?? 0));
const firstOf = (item: Token | Group): number => numberOf("tokens" in item ? item.tokens[0]!.id : item.id);

/** The branch around a fan-out: that of the nearest token before it that is in another instance. */
function outerOf(token: Token, byId: Map<string, Token>): { instance: number; index: number } | undefined {
  const own = token.branch?.instance;
  let before = token.parent_token_id === null ? undefined : byId.get(token.parent_token_id);
  for (let steps = 0; before && before.branch?.instance === own && steps < 10_000; steps += 1) before = before.parent_token_id === null ? undefined : byId.get(before.parent_token_id);
  // Inner fan-outs have higher numbers: a token after a join has an outer instance and follows an inner one.
  return before?.branch && before.branch.total > 1 && own !== undefined && before.branch.instance < own ? before.branch : undefined;
}

function summaryOf(tokens: Token[]): Pick<GroupRow, "tokens" | "counts" | "from" | "to"> {
  const counts = new Map<string, number>();
  let from = Infinity;
  let to: number | undefined = 0;
  for (const token of tokens) {
    counts.set(token.status, (counts.get(token.status) ?? 0) + 1);
    from = Math.min(from, token.created_at);
    if (!isEnded(token.status)) to = undefined;
    else if (to !== undefined) to = Math.max(to, token.ended_at ?? token.created_at);
  }
  return { tokens, counts: [...counts].sort((a, b) => b[1] - a[1]), from, to };
}

/** The instances that have to be open so that a token has a row. */
export function instancesAround(tokens: readonly Token[], id: string): number[] {
  const byId = new Map(tokens.map((token) => [token.id, token]));
  const found: number[] = [];
  let token = byId.get(id);
  for (let steps = 0; token && steps < 10_000; steps += 1) {
    const instance = token.branch && token.branch.total > 1 ? token.branch.instance : undefined;
    if (instance !== undefined && !found.includes(instance)) found.push(instance);
    token = token.parent_token_id === null ? undefined : byId.get(token.parent_token_id);
  }
  return found;
}

/** The rows that are seen, and a few around them. */
export function visibleRows(scrollTop: number, height: number, rowHeight: number, total: number): { first: number; last: number } {
  const first = Math.max(Math.floor(scrollTop / rowHeight) - 4, 0);
  return { first, last: Math.min(Math.ceil((scrollTop + height) / rowHeight) + 4, total) };
}
