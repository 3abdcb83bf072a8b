// Clients that watch a run: server-sent events by fetch, and a WebSocket.
import type { EventView } from "./api-types.ts";
import { until } from "./poll.ts";

/** One message of an event stream. */
export interface SentEvent {
  /** Undefined for what is no part of the history. */
  id?: string;
  event: string;
  data: any;
}

export interface Watcher {
  status: number;
  headers: Headers;
  /** The body of a response that is no stream. */
  text: string;
  sent: SentEvent[];
  comments: string[];
  /** What the stream said about reconnecting. */
  retry: number | undefined;
  /** The events of the history, without others. */
  events(): EventView[];
  /** Whether the server has ended the stream. */
  isEnded(): boolean;
  /** Waits until the server has ended the stream, and returns the events. */
  ended(deadlineMs?: number): Promise<EventView[]>;
  close(): void;
}

/** Reads the stream in the background until it ends or is closed. `onSent` is called with each message as it arrives. */
export async function watch(
  url: string,
  runId: string,
  query = "",
  headers: Record<string, string> = {},
  onSent: (sent: SentEvent) => void = () => {},
): Promise<Watcher> {
  const controller = new AbortController();
  const response = await fetch(`${url}/v1/runs/${runId}/live${query}`, { headers, signal: controller.signal });
  const sent: SentEvent[] = [];
  const comments: string[] = [];
  let hasEnded = false;
  const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
  const watcher: Watcher = {
    status: response.status,
    headers: response.headers,
    text: isStream ? "" : await response.text(),
    sent,
    comments,
    retry: undefined,
    events: () => sent.filter(({ id }) => id !== undefined).map(({ data }) => data),
    isEnded: () => hasEnded,
    ended: async (deadlineMs) => {
      await until(`the end of the stream of ${runId}`, () => hasEnded, deadlineMs);
      return watcher.events();
    },
    close: () => controller.abort(),
  };
  if (!isStream) return watcher;
  const read = async () => {
    let rest = "";
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
      rest += chunk;
      for (let end = rest.indexOf("\n\n"); end >= 0; end = rest.indexOf("\n\n")) {
        take(rest.slice(0, end), watcher, onSent);
        rest = rest.slice(end + 2);
      }
    }
  };
  read().then(
    () => (hasEnded = true),
    // Closed by this side, or the server was stopped.
    () => {},
  );
  return watcher;
}

function take(block: string, watcher: Watcher, onSent: (sent: SentEvent) => void): void {
  const fields: Record<string, string> = {};
  for (const line of block.split("\n")) {
    if (line.startsWith(":")) {
      watcher.comments.push(line.slice(1).trim());
      continue;
    }
    const colon = line.indexOf(": ");
    fields[line.slice(0, colon)] = line.slice(colon + 2);
  }
  if (fields["retry"] !== undefined) watcher.retry = Number(fields["retry"]);
  if (fields["data"] === undefined) return;
  const id = fields["id"];
  const sent = { ...(id === undefined ? {} : { id }), event: fields["event"] ?? "message", data: JSON.parse(fields["data"]) };
  watcher.sent.push(sent);
  onSent(sent);
}
