// The address of the page as a signal. Links are ordinary links; a click on one that stays in the dashboard changes the address without
// loading the page again.
import { computed, signal } from "@preact/signals";
import { routeOf, withQuery, type Route } from "../logic/routes.ts";

const address = signal({ path: location.pathname, search: location.search });

export const route = computed<Route>(() => routeOf(address.value.path));
export const query = computed<URLSearchParams>(() => new URLSearchParams(address.value.search));

export function navigate(url: string, { replace = false } = {}): void {
  if (url === location.pathname + location.search) return;
  history[replace ? "replaceState" : "pushState"](null, "", url);
  const isSamePage = location.pathname === address.value.path;
  address.value = { path: location.pathname, search: location.search };
  if (!isSamePage) scrollTo(0, 0);
}

/** Changes parameters of the address and keeps the others. Filters are typed: no entry of the history for each letter. */
export function setQuery(changes: Record<string, string | undefined>, { replace = true } = {}): void {
  const all = { ...Object.fromEntries(query.value), ...changes };
  navigate(withQuery(location.pathname, all), { replace });
}

/** Called once. */
export function followLinks(): void {
  addEventListener("popstate", () => (address.value = { path: location.pathname, search: location.search }));
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element | null)?.closest?.("a");
    if (!link || link.origin !== location.origin || link.target || link.hasAttribute("download") || link.dataset["external"] !== undefined) return;
    event.preventDefault();
    navigate(link.pathname + link.search);
  });
}
