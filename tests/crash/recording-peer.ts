// The peer: a real HTTP server in the driver's process, which survives the kills. It records every request and its effect.
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";

/** The request of a step. */
export interface StepRequest {
  value: number;
  /** The receipt of the previous step: shows which result had been decided when this step started. */
  previous: number;
  /** The callback URL of an async action. */
  callback_url?: string;
  /** The status of the run, in requests of runs that end with compensations. */
  status?: string;
}

/** An effect of the peer. Each effect has its own receipt. */
export interface Effect {
  value: number;
  receipt: number;
}

/** A request and its effect, which may be that of an earlier request with the same key. */
export interface RecordedRequest extends StepRequest, Effect {
  at: number;
  key: string;
}

export interface RecordingPeer {
  url: string;
  /** By `run/step`. */
  requests: Map<string, RecordedRequest[]>;
  /** The number of requests without a response. */
  open(): number;
  /** Those of them that undo a step or belong to an end handler. */
  openOfEndings(): number;
  close(): Promise<void>;
}

/** The peer's function of a value. The driver computes it, too. */
export const next = (value: number): number => (value * 3 + 1) % 1000;

export interface PeerOptions {
  delayMs(step: string): number;
  /** Delivers the result of an async action. */
  deliverCallback(url: string, effect: Effect): void;
}

/** `POST /keyed/{run}/{step}` honours Idempotency-Key, `POST /plain/{run}/{step}` has an effect for every request. */
export async function startRecordingPeer({ delayMs, deliverCallback }: PeerOptions): Promise<RecordingPeer> {
  const requests = new Map<string, RecordedRequest[]>();
  const done = new Map<string, Effect>();
  let [receipts, open, openOfEndings] = [0, 0, 0];

  const server = createServer(async (request, response) => {
    const [, manner, run, step] = (request.url ?? "").split("/");
    const wanted = (await body(request).catch(() => undefined)) as StepRequest | undefined;
    // A client that disconnects before its request is complete has requested nothing.
    if (wanted === undefined) return response.destroy();
    const key = String(request.headers["idempotency-key"] ?? "");
    const name = `${run}/${step}`;
    // The effect precedes the response: a caller that is killed in between has caused it.
    const effect = (manner === "keyed" && done.get(key)) || { value: next(wanted.value), receipt: ++receipts };
    if (manner === "keyed") done.set(key, effect);
    requests.set(name, [...(requests.get(name) ?? []), { ...wanted, ...effect, at: Date.now(), key }]);
    const ofEnding = /^(undo-|report)/.test(step ?? "") ? 1 : 0;
    open += 1;
    openOfEndings += ofEnding;
    response.on("close", () => {
      open -= 1;
      openOfEndings -= ofEnding;
    });
    const respond = () => response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(effect));
    if (!wanted.callback_url) return void setTimeout(respond, delayMs(name));
    respond();
    setTimeout(deliverCallback, delayMs(name), wanted.callback_url, effect);
  });
  server.on("clientError", (_error, socket) => socket.destroy());
  // The peer never closes idle connections: only a killed caller does.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    open: () => open,
    openOfEndings: () => openOfEndings,
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
