// Addresses of pages. Every view is a link: what it shows is in its address.

export type Route =
  | { page: "runs" }
  | { page: "run"; run: string; token: string | undefined }
  | { page: "inbox" }
  | { page: "workflows" }
  | { page: "workflow"; id: string }
  | { page: "breakers" }
  | { page: "health" }
  | { page: "unknown"; path: string };

/** The page of a path. A part that cannot be decoded leads to no page. */
export function routeOf(path: string): Route {
  const parts = path.split("/").filter((part) => part !== "").map(decoded);
  if (parts.includes(undefined)) return { page: "unknown", path };
  const [first, second, third, fourth] = parts as string[];
  const is = (length: number) => parts.length === length;
  if (is(0) || (is(1) && first === "runs")) return { page: "runs" };
  if (first === "runs" && is(2)) return { page: "run", run: second!, token: undefined };
  if (first === "runs" && is(4) && third === "tokens") return { page: "run", run: second!, token: fourth! };
  if (first === "workflows" && is(1)) return { page: "workflows" };
  if (first === "workflows" && is(2)) return { page: "workflow", id: second! };
  if (is(1) && (first === "inbox" || first === "breakers" || first === "health")) return { page: first };
  return { page: "unknown", path };
}

function decoded(part: string): string | undefined {
  try {
    return decodeURIComponent(part);
  } catch {
    return undefined;
  }
}

export const runPath = (run: string): string => `/runs/${encodeURIComponent(run)}`;
export const tokenPath = (run: string, token: string): string => `${runPath(run)}/tokens/${encodeURIComponent(token)}`;
export const workflowPath = (id: string, version?: number): string => `/workflows/${encodeURIComponent(id)}${version === undefined ? "" : `?version=${version}`}`;

/** A path with a query; parameters without a value are left out. */
export function withQuery(path: string, query: Record<string, string | undefined>): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value) parameters.set(name, value);
  const text = parameters.toString().replaceAll("%2C", ",");
  return text ? `${path}?${text}` : path;
}
