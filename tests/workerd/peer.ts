// A real HTTP server on loopback for the executor: it can be slow, fail, hang and disconnect, and it records every request with
// the time its connection closed.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { recordData } from "./log-check.ts";

export interface RecordedRequest {
  method: string;
  path: string;
  query: Record<string, string>;
  headers: Record<string, string | string[] | undefined>;
  body: string;
  at: number;
  /** When the response was complete or the caller disconnected. */
  closedAt?: number;
  /** The caller disconnected before the response was complete. */
  aborted?: boolean;
}

export interface Reply {
  status?: number;
  headers?: Record<string, string>;
  /** Sent as JSON. */
  body?: unknown;
  /** Instead of a body. */
  stream?: StreamedBody;
}

/** A body in chunks, each in its own packet. */
export interface StreamedBody {
  chunks: Uint8Array[];
  everyMs: number;
  /** What follows the last chunk. */
  then: "end" | "break" | "hang";
}

export interface Peer {
  url: string;
  requests: RecordedRequest[];
  /** Requests whose path is `path` or below it. */
  seen(path: string): RecordedRequest[];
  /** Answers all requests to `/held/{key}`, present and future. */
  release(key: string): void;
  /** Overrides the response for `path`, before the built-in routes. */
  route(path: string, reply: (seen: RecordedRequest, times: number) => Reply | Promise<Reply>): void;
  close(): Promise<void>;
}

const TEN_MEGABYTES = 10 * 1024 * 1024;

export async function startPeer(): Promise<Peer> {
  const requests: RecordedRequest[] = [];
  const counters = new Map<string, number>();
  const count = (key: string) => {
    const next = (counters.get(key) ?? 0) + 1;
    counters.set(key, next);
    return next;
  };

  const held: Held = { released: new Set(), waiting: new Map() };
  const routes = new Map<string, (seen: RecordedRequest, times: number) => Reply | Promise<Reply>>();

  const server = createServer(async (request, response) => {
    const seen = await record(request);
    requests.push(seen);
    response.on("close", () => {
      seen.closedAt = Date.now();
      seen.aborted = !response.writableFinished;
    });
    const custom = routes.get(seen.path);
    if (!custom) return respond(seen, response, count, held);
    const { status = 200, headers = {}, body, stream } = await custom(seen, count(`route ${seen.path}`));
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    if (stream) return sendStream(response, status, stream);
    json(response, status, body);
  });
  // The client disconnected during its request: there is no one to respond to.
  server.on("clientError", (_error, socket) => socket.destroy());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    route: (path, reply) => routes.set(path, reply),
    release: (key) => {
      held.released.add(key);
      for (const reply of held.waiting.get(key) ?? []) reply();
      held.waiting.delete(key);
    },
    seen: (path) => requests.filter((one) => one.path === path || one.path.startsWith(`${path}/`)),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Requests to /held, which are answered when the test releases them. */
interface Held {
  released: Set<string>;
  waiting: Map<string, (() => void)[]>;
}

async function record(request: IncomingMessage): Promise<RecordedRequest> {
  const url = new URL(request.url ?? "/", "http://peer");
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return {
    method: request.method ?? "",
    path: url.pathname,
    query: Object.fromEntries(url.searchParams),
    headers: request.headers,
    body: Buffer.concat(chunks).toString("utf8"),
    at: Date.now(),
  };
}

/**
 * /ok                        200, the request as JSON
 * /status/404                that status; ?retry_after=2 adds the header
 * /slow/250                  as /ok, after so many ms
 * /hang                      never answers
 * /drip/{ms}/{n}             a word of text each so many ms, "1 2 3 ", until there are n
 * /held/{key}                as /ok, once the test releases the key
 * /hang-first/{key}/{n}      hangs for the first n requests of the key, then 200 {count}
 * /half                      promises 100 bytes, sends some, breaks the connection
 * /lies/{n}                  says content-length: n, sends {"body":"words"} (16 bytes), closes
 * /bomb                      as /huge, in a few KB of gzip
 * /huge                      a JSON string of 10 MB
 * /sized/{kib}               a JSON string of so many KiB
 * /deep/{n}                  n arrays in one another
 * /text                      text/plain
 * /broken-json               says application/json and is not
 * /count/{key}               {count}: how often this key was requested; ?ready_at=3 adds `ready`
 * /flaky/{key}/{n}/{status}  that status for the first n requests of the key, then 200 {count}
 */
function respond(seen: RecordedRequest, response: ServerResponse, count: (key: string) => number, held: Held): void {
  const [route, first = "", second = "0", third = "500"] = seen.path.split("/").slice(1);
  const echo = { method: seen.method, path: seen.path, query: seen.query, headers: seen.headers, body: parsed(seen.body) };
  switch (route) {
    case "ok":
      return json(response, 200, echo);
    case "status": {
      if (seen.query["retry_after"]) response.setHeader("retry-after", seen.query["retry_after"]);
      return json(response, Number(first), { status: Number(first) });
    }
    case "slow": {
      const timer = setTimeout(() => json(response, 200, echo), Number(first));
      response.on("close", () => clearTimeout(timer));
      return;
    }
    case "hang":
      return;
    case "drip":
      return drip(response, Number(first), Number(second));
    case "held": {
      const reply = () => json(response, 200, echo);
      if (held.released.has(first)) return reply();
      held.waiting.set(first, [...(held.waiting.get(first) ?? []), reply]);
      return;
    }
    case "hang-first": {
      const times = count(first);
      return times <= Number(second) ? undefined : json(response, 200, { count: times });
    }
    case "half":
      response.writeHead(200, { "content-type": "application/json", "content-length": "100" });
      response.write('{"half": "', () => response.destroy());
      return;
    case "lies":
      return sendWrongLength(response, Number(first));
    case "bomb":
      response.writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" });
      response.end(gzipSync(JSON.stringify("x".repeat(TEN_MEGABYTES))));
      return;
    case "huge":
      return json(response, 200, "x".repeat(TEN_MEGABYTES));
    case "sized":
      return json(response, 200, "x".repeat(Number(first) * 1024));
    case "deep":
      response.writeHead(200, { "content-type": "application/json" }).end("[".repeat(Number(first)) + "]".repeat(Number(first)));
      return;
    case "text":
      response.writeHead(200, { "content-type": "text/plain" }).end("plain words");
      return;
    case "broken-json":
      response.writeHead(200, { "content-type": "application/json" }).end('{"open": ');
      return;
    case "count": {
      const times = count(first);
      return json(response, 200, { count: times, ready: times >= Number(seen.query["ready_at"] ?? "1") });
    }
    case "flaky": {
      const times = count(first);
      return json(response, times <= Number(second) ? Number(third) : 200, { count: times });
    }
    default:
      return json(response, 404, { error: `the peer has no route ${seen.path}` });
  }
}

/** Writes to the socket, because Node would correct the content-length. */
function sendWrongLength(response: ServerResponse, length: number): void {
  const lines = ["HTTP/1.1 200 OK", "content-type: application/json", `content-length: ${length}`, "connection: close"];
  response.socket?.end(`${lines.join("\r\n")}\r\n\r\n{"body":"words"}`);
}

function drip(response: ServerResponse, everyMs: number, words: number): void {
  response.writeHead(200, { "content-type": "text/plain" });
  let written = 0;
  const timer = setInterval(() => {
    written += 1;
    response.write(`${written} `);
    if (written === words) response.end();
  }, everyMs);
  response.on("close", () => clearInterval(timer));
}

function sendStream(response: ServerResponse, status: number, { chunks, everyMs, then }: StreamedBody): void {
  response.writeHead(status);
  response.socket?.setNoDelay(true);
  const left = [...chunks];
  const timer = setInterval(() => {
    const chunk = left.shift();
    if (chunk) return void response.write(chunk);
    clearInterval(timer);
    if (then === "end") response.end();
    if (then === "break") response.destroy();
  }, everyMs);
  response.on("close", () => clearInterval(timer));
}

function json(response: ServerResponse, status: number, body: unknown): void {
  // The body of a notification consists of names, which logs have, too; the answer repeats it.
  if (!("webhook-id" in response.req.headers)) recordData(body);
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return body;
  }
}
