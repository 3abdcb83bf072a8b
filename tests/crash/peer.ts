// The world outside: a real HTTP server in the driver's process, so it survives the kills. It remembers every request and
// what it did about it.
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";

/** What a step asks for. */
export interface Demand {
  value: number;
  /** The receipt of the step before: says what had been decided when this one began. */
  previous: number;
  /** Where an async action's result is to be brought. */
  bring_to?: string;
}

/** What the peer did. The receipt is different for each effect. */
export interface Effect {
  value: number;
  receipt: number;
}

/** A request and the effect it was answered with, its own or that of an earlier one with the same key. */
export interface Asked extends Demand, Effect {
  at: number;
  key: string;
}

export interface LedgerPeer {
  url: string;
  /** By `run/step`. */
  asked: Map<string, Asked[]>;
  /** Requests that have no answer yet. */
  open(): number;
  close(): Promise<void>;
}

/** What the peer makes of a value. The driver computes it too. */
export const next = (value: number): number => (value * 3 + 1) % 1000;

export interface PeerOptions {
  delayMs(step: string): number;
  /** Brings the result of an async action. */
  bring(url: string, effect: Effect): void;
}

/** `POST /keyed/{run}/{step}` honours Idempotency-Key, `POST /plain/{run}/{step}` does its work for every request. */
export async function startLedgerPeer({ delayMs, bring }: PeerOptions): Promise<LedgerPeer> {
  const asked = new Map<string, Asked[]>();
  const done = new Map<string, Effect>();
  let [receipts, open] = [0, 0];

  const server = createServer(async (request, response) => {
    const [, manner, run, step] = (request.url ?? "").split("/");
    const demand = (await body(request).catch(() => undefined)) as Demand | undefined;
    // Whoever breaks off before it has said what it wants has asked for nothing.
    if (demand === undefined) return response.destroy();
    const key = String(request.headers["idempotency-key"] ?? "");
    const name = `${run}/${step}`;
    // The effect comes before the answer: a caller that is killed in between has caused it all the same.
    const effect = (manner === "keyed" && done.get(key)) || { value: next(demand.value), receipt: ++receipts };
    if (manner === "keyed") done.set(key, effect);
    asked.set(name, [...(asked.get(name) ?? []), { ...demand, ...effect, at: Date.now(), key }]);
    open += 1;
    response.on("close", () => (open -= 1));
    const answer = () => response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(effect));
    if (!demand.bring_to) return void setTimeout(answer, delayMs(name));
    answer();
    setTimeout(bring, delayMs(name), demand.bring_to, effect);
  });
  server.on("clientError", (_error, socket) => socket.destroy());
  // A connection is closed by whoever was killed, never by the peer between two requests.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    open: () => open,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function body(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return JSON.parse(Buffer.concat(chunks).toString("utf8"));
}
