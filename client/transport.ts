// Sends requests: credential, deadline, repetition, and what an answer means.
import { ConnectionError, CurfewError, errorOf, InvalidError, UnexpectedResponseError } from "./errors.ts";
import type { CurfewBinding } from "./binding.ts";
import type { AnyRequest } from "./types.ts";

/** The part of `fetch` that is used. */
export type Fetch = (
  url: string,
  init: { method: string; headers: Record<string, string>; body: string | null; signal: AbortSignal; redirect: "manual" },
) => Promise<Response>;

export interface ClientOptions {
  /** Where the API is, `http://localhost:8787` by default. Over a service binding only its path counts. */
  url?: string | undefined;
  /** The bearer token. */
  token?: string | undefined;
  /** A service binding to Curfew, for a Worker of the same account. It needs no token. */
  binding?: Pick<CurfewBinding, "request"> | undefined;
  /** What sends requests, the global `fetch` by default. */
  fetch?: Fetch | undefined;
  /** How often a call is repeated at most, 3 by default. */
  retries?: number | undefined;
  /** The longest that a call may take with all its attempts, 60 000 by default. */
  timeout_ms?: number | undefined;
  /** Headers of every request, e.g. those of a service token of Cloudflare Access. */
  headers?: Record<string, string> | undefined;
}

const DEFAULT_URL = "http://localhost:8787";
const DEFAULT_RETRIES = 3;
const DEFAULT_TIMEOUT_MS = 60_000;
const FIRST_DELAY_MS = 100;
const DELAY_MAX_MS = 5_000;

/** A timer of JavaScript with a longer time rings at once. */
const TIMER_MAX_MS = 2 ** 31 - 1;

/** Nothing was done, so that every request may be repeated. */
const REFUSED = new Set<string>(["rate_limited", "too_many_signals", "other_build", "access_unavailable"]);
/** It may have been done, so that only a repeatable request is sent again. */
const UNKNOWN = new Set([0, 429, 502, 503, 504]);
/** These remain until the deployment is changed. */
const LASTING = new Set<string>(["auth_not_configured", "not_migrated", "deadline_passed"]);

/** Makes a result of a successful answer; `what` names the request in errors. */
type Read<T> = (response: Response, what: string) => T | Promise<T>;

export type Send = <T>(method: string, path: string, request: AnyRequest, read: Read<T>) => Promise<T>;

/** Waits, and rejects as soon as `signal` is aborted. */
export const pause = (ms: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const aborted = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", aborted);
      resolve();
    }, Math.min(ms, TIMER_MAX_MS));
    signal?.addEventListener("abort", aborted, { once: true });
  });

/** Whether the same request may succeed later. `repeatable`: it may be sent again although it may have taken effect. */
export const mayRepeat = (error: unknown, repeatable: boolean): error is CurfewError =>
  error instanceof CurfewError && !LASTING.has(error.code) && (REFUSED.has(error.code) || (repeatable && UNKNOWN.has(error.status)));

export function transport(options: ClientOptions): Send {
  const { url = DEFAULT_URL, token, binding, fetch: given } = options;
  // Neither appears in an error: errors are logged.
  if (/\/\/[^/]*@/.test(url)) throw new TypeError("url has a user name or a password: leave it out, and use token or headers");
  if (token && !/^[\x21-\x7e]+$/.test(token)) throw new TypeError("token has a character that no header may have: check it for a line break or a space at its end");
  if (!isUrl(url)) throw new TypeError(`url is ${JSON.stringify(url)}: write where Curfew is, such as ${DEFAULT_URL}, without a query`);
  const base = url.replace(/\/+$/, "");
  // A global `fetch` that is called as a method of something else is refused by browsers.
  const send: Fetch = given ?? ((to, init) => (binding ? throughBinding(binding, to, init) : fetch(to, init)));

  return async (method, path, request, read) => {
    const { body, signal, repeatable = method === "GET" || method === "PUT" } = request;
    const retries = request.retries ?? options.retries ?? DEFAULT_RETRIES;
    const timeoutMs = request.timeout_ms ?? options.timeout_ms ?? DEFAULT_TIMEOUT_MS;
    if (!(timeoutMs > 0)) throw new TypeError(`timeout_ms is ${timeoutMs}: write milliseconds, more than 0`);
    const deadline = Date.now() + timeoutMs;
    const target = base + pathOf(path, request.path) + queryOf(request.query);
    const headers: Record<string, string> = { accept: "application/json", ...options.headers, ...request.headers };
    if (token) headers["authorization"] = `Bearer ${token}`;
    if (body !== undefined) headers["content-type"] = "application/json";
    const init = { method, headers, body: body === undefined ? null : JSON.stringify(body), redirect: "manual" as const };

    for (let attempt = 0; ; attempt += 1) {
      try {
        return await once(send, target, init, signal, deadline, read);
      } catch (error) {
        signal?.throwIfAborted();
        if (attempt >= retries || !mayRepeat(error, repeatable)) throw error;
        // A random part keeps clients apart that failed together.
        const delay = error.retryAfter ?? Math.min(FIRST_DELAY_MS * 2 ** attempt, DELAY_MAX_MS) * (0.5 + Math.random() / 2);
        if (Date.now() + delay >= deadline) throw error;
        await pause(delay, signal);
      }
    }
  };
}

function isUrl(url: string): boolean {
  try {
    return /^https?:\/\/[^?#]+$/.test(url) && !!new URL(url);
  } catch {
    return false;
  }
}

/** A signal cannot be sent to another Worker: the caller stops to wait. */
const throughBinding = (binding: Pick<CurfewBinding, "request">, to: string, { signal, ...init }: Parameters<Fetch>[1]): Promise<Response> =>
  new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    binding.request(new Request(to, init)).then(resolve, reject);
  });

/** One attempt. The deadline covers the body, too, as long as `read` reads it. */
async function once<T>(
  send: Fetch,
  target: string,
  init: Omit<Parameters<Fetch>[1], "signal">,
  signal: AbortSignal | undefined,
  deadline: number,
  read: Read<T>,
): Promise<T> {
  signal?.throwIfAborted();
  const controller = new AbortController();
  let isLate = false;
  const timer = setTimeout(() => controller.abort((isLate = true)), Math.min(deadline - Date.now(), TIMER_MAX_MS));
  const what = `${init.method} ${target.replace(/\?.*/, "")}`;
  try {
    // That of the caller also stops a body which is read later.
    const response = await send(target, { ...init, signal: signal ? AbortSignal.any([signal, controller.signal]) : controller.signal });
    if (!response.ok) throw await refusal(what, response);
    return await read(response, what);
  } catch (error) {
    if (error instanceof CurfewError) throw error;
    if (isLate) {
      const message = `${what} had no answer in time: read what became of it, or raise timeout_ms`;
      throw new ConnectionError(0, { code: "deadline_passed", message });
    }
    const message = `${what}: the connection failed or was lost: check that Curfew runs there and can be reached (${error instanceof Error ? error.message : error})`;
    throw new ConnectionError(0, { code: "connection_lost", message }, undefined, error);
  } finally {
    clearTimeout(timer);
  }
}

/** The error of an answer that is no success. */
async function refusal(what: string, response: Response): Promise<CurfewError> {
  const text = await response.text();
  const error = parsed(text)?.error;
  return typeof error?.code === "string" ? errorOf(response.status, error, retryAfterOf(response)) : unexpected(what, response, text);
}

/** The JSON of a successful answer. */
export async function jsonOf(response: Response, what: string): Promise<any> {
  const text = await response.text();
  const json = parsed(text);
  if (json === undefined) throw unexpected(what, response, text);
  return json;
}

/** Undefined for what is not JSON. */
export function parsed(text: string): any {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function unexpected(what: string, response: Response, text: string): UnexpectedResponseError {
  const location = response.headers.get("location");
  // A browser hides the status of a redirect, and where it leads.
  const isHidden = (response.type as string) === "opaqueredirect";
  const status = isHidden ? 302 : response.status;
  const found = location || isHidden ? `leads to ${location ?? "another place"}` : `begins with ${JSON.stringify(text.slice(0, 80))}`;
  const message = `${what}: the answer, status ${status}, is not Curfew's, it ${found}: check url, and what answers in front of Curfew (a proxy, a login)`;
  return new UnexpectedResponseError(status, { code: "unexpected_response", message }, retryAfterOf(response));
}

/** Seconds or a date. */
function retryAfterOf(response: Response): number | undefined {
  const text = response.headers.get("retry-after");
  if (!text) return undefined;
  const ms = /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.max(ms, 0);
}

/** `/v1/runs/{run_id}` with its values. */
const pathOf = (path: string, values: Record<string, string | number> = {}): string =>
  path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = String(values[name] ?? "");
    // An URL would lose these, and the request would reach another path. Curfew would answer with this, too.
    if (/^\.{0,2}$/.test(value)) throw new InvalidError(400, { code: "invalid_request", message: `${name} is ${JSON.stringify(values[name])}: it must have a value that is no dot` });
    return encodeURIComponent(value);
  });

function queryOf(query: Record<string, unknown> = {}): string {
  const parameters = new URLSearchParams();
  // A list is joined by commas.
  for (const [name, value] of Object.entries(query)) if (value !== undefined && value !== null) parameters.set(name, String(value));
  const text = String(parameters);
  return text && `?${text}`;
}
