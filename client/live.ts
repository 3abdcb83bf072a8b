// The live stream of a run as an iterator. Server-sent events are read by `fetch`, because an `EventSource` sends no token.
import { ConnectionError, UnexpectedResponseError } from "./errors.ts";
import { mayRepeat, parsed, pause, unexpected, type Send } from "./transport.ts";
import type { RunEvent, WatchEvent } from "./types.ts";

export type WatchKind = WatchEvent["kind"];

export interface WatchOptions<Kind extends WatchKind = WatchKind> {
  /** The `seq` of the last event that was seen. */
  after?: number | undefined;
  /** Only these kinds. */
  kinds?: readonly Kind[] | undefined;
  /** Ends the watch; its reason is thrown. */
  signal?: AbortSignal | undefined;
  /** How many connections in a row may bring nothing, 10 by default. */
  retries?: number | undefined;
}

const ENDS = ["run_completed", "run_failed", "run_timed_out", "run_cancelled"] as const satisfies RunEvent["kind"][];
const isEnd = (kind: string): boolean => (ENDS as readonly string[]).includes(kind);

const DEFAULT_RETRIES = 10;
const DELAY_MAX_MS = 30_000;
/** Curfew sends a comment every 15 s: a connection that is silent for so long is lost. */
const SILENT_MS = 45_000;
/** Until Curfew accepts the watcher. */
const ACCEPT_MS = 30_000;
/** More than the largest event; a stream without line ends is not Curfew's. */
const MESSAGE_MAX = 16 * 1024 * 1024;

/**
 * The events of a run: its history, then each commit's. Connections that are lost are made again after the last event. It ends when
 * the run has ended.
 */
export async function* watch<Kind extends WatchKind>(send: Send, runId: string, options: WatchOptions<Kind>): AsyncGenerator<Extract<WatchEvent, { kind: unknown }>, void, undefined> {
  const { after = 0, kinds, signal, retries = DEFAULT_RETRIES } = options;
  const position: Position = { seq: after, isAtEnd: false, retryMs: 2_000, isAlive: false };
  // The end is always asked for: it shows that a closed stream was not cut.
  const query = kinds && { kinds: [...new Set<string>([...kinds, ...ENDS])] };
  const isWanted = (event: WatchEvent) => !kinds || (kinds as readonly string[]).includes(event.kind);

  for (let failures = 0; ; ) {
    let failure: unknown;
    position.isAlive = false;
    try {
      const headers = { accept: "text/event-stream", "last-event-id": String(position.seq) };
      const request = { path: { run_id: runId }, query, headers, signal, retries: 0, timeout_ms: ACCEPT_MS };
      const response = await send("GET", "/v1/runs/{run_id}/live", request, async (response, what) => {
        if (response.status === 204) return undefined;
        if (response.headers.get("content-type")?.startsWith("text/event-stream") && response.body) return response.body;
        throw unexpected(what, response, await response.text());
      });
      // The run has ended, and nothing is left.
      if (!response) return;
      for await (const event of messages(response, position, signal)) {
        position.isAlive = true;
        if (isWanted(event)) yield event;
      }
    } catch (error) {
      if (!mayRepeat(error, true)) throw error;
      failure = error;
    }
    signal?.throwIfAborted();
    // An earlier end of a run that went on may be the last thing before a cut: the next answer is 204 if it was the end.
    if (position.isAtEnd && failure === undefined) continue;
    failures = position.isAlive ? 1 : failures + 1;
    if (failures > retries) throw failure ?? new ConnectionError(0, { code: "connection_lost", message: `the stream of run ${runId} ended ${failures} times before the run: check what closes it` });
    const backoff = Math.min(position.retryMs * 2 ** (failures - 1), DELAY_MAX_MS) * (1 + Math.random() / 4);
    await pause((failure as { retryAfter?: number } | undefined)?.retryAfter ?? backoff, signal);
  }
}

/** How far a watch has come. */
interface Position {
  seq: number;
  /** Whether the last event was the end of the run. */
  isAtEnd: boolean;
  /** What the server asks for before the next connection. */
  retryMs: number;
  /** Whether the connection brought something: an event, or a comment, which comes every 15 s. */
  isAlive: boolean;
}

/** The messages of one connection. It ends where the connection ends, in whatever way. */
async function* messages(body: ReadableStream<Uint8Array>, position: Position, signal: AbortSignal | undefined): AsyncGenerator<WatchEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const close = () => void reader.cancel().catch(() => {});
  signal?.addEventListener("abort", close);
  let rest = "";
  try {
    for (;;) {
      const timer = setTimeout(close, SILENT_MS);
      // A broken connection ends the stream; the caller connects again.
      const { done, value } = await reader.read().catch(() => ({ done: true, value: undefined }));
      clearTimeout(timer);
      if (done || !value) return;
      const blocks = (rest + decoder.decode(value, { stream: true })).split(/\r?\n\r?\n/);
      rest = blocks.pop() ?? "";
      if (rest.length > MESSAGE_MAX) return;
      for (const block of blocks) {
        const event = eventOf(block, position);
        if (event) yield event;
      }
    }
  } finally {
    signal?.removeEventListener("abort", close);
    close();
  }
}

/** The event of a message. Undefined for a comment, and for an event that was seen before. */
function eventOf(block: string, position: Position): WatchEvent | undefined {
  let data = "";
  let id = "";
  for (const line of block.split(/\r?\n/)) {
    if (line.startsWith(":")) position.isAlive = true;
    // JSON may hold line separators (U+2028), which are no ends of lines here.
    const [, name, value = ""] = /^(\w+): ?(.*)$/s.exec(line) ?? [];
    if (name === "data") data += value;
    if (name === "id") id = value;
    if (name === "retry" && /^\d+$/.test(value)) position.retryMs = Number(value);
  }
  if (data === "") return undefined;
  const event = parsed(data) as WatchEvent | undefined;
  if (!event) {
    const message = `the stream has an event that is no JSON, it begins with ${JSON.stringify(data.slice(0, 80))}: check what answers in front of Curfew (a proxy)`;
    throw new UnexpectedResponseError(200, { code: "unexpected_response", message });
  }
  if (id === "") return event;
  if (Number(id) <= position.seq) return undefined;
  position.seq = Number(id);
  position.isAtEnd = isEnd(event.kind);
  return event;
}
