// The filters of the list of runs: from the address of the page, to the query of the API and to the body of a bulk operation.
import { RUN_STATUSES } from "./statuses.ts";
import { parseDuration, words } from "./words.ts";

export interface RunFilter {
  status: string[];
  workflow: string;
  tag: string;
  id_prefix: string;
  parent: string;
  /** A duration before now, as `24h`. */
  within: string;
  sort: "started" | "remaining";
}

const TEXTS = ["workflow", "tag", "id_prefix", "parent"] as const;

export function filterOf(query: URLSearchParams): RunFilter {
  const text = (name: string) => query.get(name) ?? "";
  return {
    status: text("status").split(",").filter((status) => (RUN_STATUSES as readonly string[]).includes(status)),
    workflow: text("workflow"),
    tag: text("tag"),
    id_prefix: text("id_prefix"),
    parent: text("parent"),
    within: parseDuration(text("within")) === undefined ? "" : text("within"),
    sort: text("sort") === "remaining" ? "remaining" : "started",
  };
}

/** Whether anything is filtered: the order is no filter. */
export const isFiltered = (filter: RunFilter): boolean => filter.status.length > 0 || filter.within !== "" || TEXTS.some((name) => filter[name] !== "");

/** The filter in words: what a control for all runs that match it is sent to. */
export function filterWords(filter: RunFilter): string {
  const { status, workflow, tag, id_prefix, parent, within } = filter;
  const parts = [
    status.length > 0 && `status ${status.map(words).join(" or ")}`,
    workflow && `workflow ${workflow}`,
    id_prefix && `id begins with ${id_prefix}`,
    tag && `tag ${tag}`,
    parent && `called by run ${parent}`,
    within && `started in the last ${within}`,
  ];
  return parts.filter(Boolean).join("; ");
}

type Selection = { status?: string[]; workflow?: string; tag?: string; id_prefix?: string; parent?: string; since?: number };

/** What the API takes, in a query and in the `filter` of a bulk operation. */
export function selectionOf(filter: RunFilter, now: number): Selection {
  const selection: Selection = {};
  if (filter.status.length > 0) selection.status = filter.status;
  for (const name of TEXTS) if (filter[name] !== "") selection[name] = filter[name];
  const within = parseDuration(filter.within);
  if (within !== undefined) selection.since = now - within;
  return selection;
}

/** Views that operators open most. */
export const VIEWS: { title: string; query: string }[] = [
  { title: "All", query: "" },
  { title: "Live", query: "status=running,waiting,paused,compensating" },
  { title: "Nearest deadline", query: "sort=remaining" },
  { title: "Waiting or paused", query: "status=waiting,paused" },
  { title: "Failed", query: "status=failed,timed_out" },
  { title: "Last 24 hours", query: "within=24h" },
];

/** Whether two queries mean the same view. */
export function isSameView(one: string, other: string): boolean {
  const parts = (query: string) => [...new URLSearchParams(query)].filter(([, value]) => value !== "").map(([name, value]) => `${name}=${value}`).sort();
  return parts(one).join("&") === parts(other).join("&");
}
