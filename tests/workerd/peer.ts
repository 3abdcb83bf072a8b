// A real HTTP server on loopback for the executor to talk to: it can be slow, fail, hang, break off, and it remembers
// every request, with the moment its connection went away.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";

export interface Seen {
  method: string;
  path: string;
  query: Record<string, string>;
  headers: Record<string, string | string[] | undefined>;
  body: string;
  at: number;
  /** When the response was over or the caller went away. */
  closedAt?: number;
  /** The caller went away before it had the whole answer. */
  aborted?: boolean;
}

export interface Reply {
  status?: number;
  headers?: Record<string, string>;
  /** Sent as JSON. */
  body?: unknown;
  /** In place of a body. */
  stream?: Streamed;
}

/** A body that comes in pieces, each in a packet of its own. */
export interface Streamed {
  pieces: Uint8Array[];
  everyMs: number;
  /** What follows the last one. */
  then: "end" | "break" | "hang";
}

export interface Peer {
  url: string;
  requests: Seen[];
  /** Requests whose path is `path` or below it. */
  seen(path: string): Seen[];
  /** Lets every request to `/held/{key}` have its answer, those to come too. */
  release(key: string): void;
  /** Answers `path` in this way from now on, before the built-in routes. */
  route(path: string, reply: (seen: Seen, asked: number) => Reply): void;
  close(): Promise<void>;
}

const TEN_MEGABYTES = 10 * 1024 * 1024;

export async function startPeer(): Promise<Peer> {
  const requests: Seen[] = [];
  const counters = new Map<string, number>();
  const count = (key: string) => {
    const next = (counters.get(key) ?? 0) + 1;
    counters.set(key, next);
    return next;
  };

  const held: Held = { released: new Set(), waiting: new Map() };
  const routes = new Map<string, (seen: Seen, asked: number) => Reply>();

  const server = createServer(async (request, response) => {
    const seen = await record(request);
    requests.push(seen);
    response.on("close", () => {
      seen.closedAt = Date.now();
      seen.aborted = !response.writableFinished;
    });
    const custom = routes.get(seen.path);
    if (!custom) return answer(seen, response, count, held);
    const { status = 200, headers = {}, body, stream } = custom(seen, count(`route ${seen.path}`));
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    if (stream) return send(response, status, stream);
    json(response, status, body);
  });
  // Whoever breaks off in mid-request is a client of ours; there is nothing to answer.
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

/** Requests to /held: answered when the test says so. */
interface Held {
  released: Set<string>;
  waiting: Map<string, (() => void)[]>;
}

async function record(request: IncomingMessage): Promise<Seen> {
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
 * /count/{key}               {count}: how often this key was asked; ?ready_at=3 adds `ready`
 * /flaky/{key}/{n}/{status}  that status for the first n requests of the key, then 200 {count}
 */
function answer(seen: Seen, response: ServerResponse, count: (key: string) => number, held: Held): void {
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
      const asked = count(first);
      return asked <= Number(second) ? undefined : json(response, 200, { count: asked });
    }
    case "half":
      response.writeHead(200, { "content-type": "application/json", "content-length": "100" });
      response.write('{"half": "', () => response.destroy());
      return;
    case "lies":
      return lie(response, Number(first));
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
      const asked = count(first);
      return json(response, 200, { count: asked, ready: asked >= Number(seen.query["ready_at"] ?? "1") });
    }
    case "flaky": {
      const asked = count(first);
      return json(response, asked <= Number(second) ? Number(third) : 200, { count: asked });
    }
    default:
      return json(response, 404, { error: `the peer has no route ${seen.path}` });
  }
}

/** Past Node's own bookkeeping, which would not let a length be wrong. */
function lie(response: ServerResponse, length: number): void {
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

function send(response: ServerResponse, status: number, { pieces, everyMs, then }: Streamed): void {
  response.writeHead(status);
  response.socket?.setNoDelay(true);
  const left = [...pieces];
  const timer = setInterval(() => {
    const piece = left.shift();
    if (piece) return void response.write(piece);
    clearInterval(timer);
    if (then === "end") response.end();
    if (then === "break") response.destroy();
  }, everyMs);
  response.on("close", () => clearInterval(timer));
}

function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return body;
  }
}
