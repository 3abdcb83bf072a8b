// A proxy in front of Curfew that breaks live streams after a number of bytes, or answers by itself.
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface CuttingProxy {
  url: string;
  /** The Last-Event-ID of each live connection, in order. */
  connections: string[];
  /** How many of them are open. */
  open(): number;
  /** After how many bytes the next connections are cut; the last entry counts for all that follow. */
  cutAfter: number[];
  /** How: `break` destroys the connection, `end` ends the answer as if it were complete. */
  how: "break" | "end";
  /** Statuses that the next connections are answered with instead. */
  refuse: number[];
  close(): Promise<void>;
}

/** The stream asks clients to wait this long, so that tests with many cuts take moments. */
const RETRY_MS = 5;

export async function startCuttingProxy(target: () => string): Promise<CuttingProxy> {
  let open = 0;
  const server = createServer(async (request, response) => {
    proxy.connections.push(String(request.headers["last-event-id"] ?? ""));
    const refused = proxy.refuse.shift();
    if (refused !== undefined) return void response.writeHead(refused, { "content-type": "text/html" }).end("<html>not now</html>");
    const limit = (proxy.cutAfter.length > 1 ? proxy.cutAfter.shift() : proxy.cutAfter[0]) ?? Number.POSITIVE_INFINITY;
    open += 1;
    const controller = new AbortController();
    response.on("close", () => {
      open -= 1;
      controller.abort();
    });
    await forward(target() + request.url, request.headers, response, limit, controller.signal).catch(() => response.destroy());
  });
  const forward = async (url: string, headers: Record<string, unknown>, response: ServerResponse, limit: number, signal: AbortSignal) => {
    const passed = Object.fromEntries(["accept", "authorization", "last-event-id"].flatMap((name) => (headers[name] ? [[name, String(headers[name])]] : [])));
    const answer = await fetch(url, { headers: passed, signal });
    response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "text/plain" });
    let left = limit;
    for await (const chunk of answer.body ?? []) {
      const text = Buffer.from(Buffer.from(chunk).toString("latin1").replace(/^retry: \d+/, `retry: ${RETRY_MS}`), "latin1");
      await new Promise((resolve) => response.write(text.subarray(0, left), resolve));
      left -= text.length;
      if (left <= 0) return proxy.how === "end" ? response.end() : response.destroy();
    }
    response.end();
  };
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const proxy: CuttingProxy = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    connections: [],
    open: () => open,
    cutAfter: [],
    how: "break",
    refuse: [],
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return proxy;
}
