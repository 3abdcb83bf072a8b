// Everything about one run, kept up to date by its stream. Events are on screen as they arrive; what they do not carry (limits, outputs)
// is read again behind them.
import { computed, effect, signal, untracked } from "@preact/signals";
import { NotFoundError, type Client, type ProgressEvent, type Run, type RunEvent, type Token } from "../../client/index.ts";
import { inOrder, withEvent } from "../logic/live_tokens.ts";
import { isEnded } from "../logic/statuses.ts";
import { client, connections, lost, messageOf, signInReason } from "./session.ts";

/** Tokens of a page. Pages whose tokens have all ended are not read again. */
const PAGE = 200;
const REFRESH_MS = 250;
/** A run that has ended may be retried by someone else. */
const ENDED_EVERY_MS = 5_000;
/** How long a page has to be out of sight until its stream is closed. */
const HIDDEN_MS = 5_000;

export type RunStore = ReturnType<typeof openRun>;

export function openRun(id: string) {
  const run = signal<Run | undefined>(undefined);
  const tokenMap = signal<ReadonlyMap<string, Token>>(new Map());
  const events = signal<RunEvent[]>([]);
  const progress = signal<ReadonlyMap<string, ProgressEvent>>(new Map());
  const document = signal<Record<string, unknown> | undefined>(undefined);
  const error = signal<string | undefined>(undefined);
  const isLoaded = signal(false);
  const tokens = computed(() => inOrder(tokenMap.value));

  const closed = new AbortController();
  /** The cursor of each page, and whether all of its tokens had ended. */
  let pages: { cursor: string | undefined; isDone: boolean }[] = [{ cursor: undefined, isDone: false }];
  let reading: Promise<void> | undefined;
  let isStale = false;
  let watching: AbortController | undefined;

  async function read(current: Client): Promise<void> {
    const options = { signal: closed.signal };
    const [next] = await Promise.all([current.run(id, options), readTokens(current)]);
    const isOther = next.version !== run.peek()?.version;
    run.value = next;
    error.value = undefined;
    isLoaded.value = true;
    if (isOther) {
      const stored = await current.read("workflows", next.workflow_id, { version: next.version, ...options }).catch(() => undefined);
      document.value = stored?.document as Record<string, unknown> | undefined;
    }
  }

  async function readTokens(current: Client): Promise<void> {
    let changed: Map<string, Token> | undefined;
    for (let index = 0; index < pages.length; index += 1) {
      const page = pages[index]!;
      if (page.isDone) continue;
      const { items, next_cursor } = await current.tokens(id, { limit: PAGE, cursor: page.cursor, signal: closed.signal });
      changed ??= new Map(tokenMap.peek());
      for (const token of items) changed.set(token.id, token);
      if (next_cursor === null) continue;
      page.isDone = items.every(({ status }) => isEnded(status));
      if (index === pages.length - 1) pages.push({ cursor: next_cursor, isDone: false });
    }
    // Events that arrived meanwhile have created tokens.
    if (changed) tokenMap.value = new Map([...tokenMap.peek(), ...changed]);
  }

  /** Reads again, soon. Many events in a row are one reading. */
  function refresh({ everything = false } = {}): void {
    // A retry and a restart change tokens that had ended.
    if (everything) pages = pages.map(({ cursor }) => ({ cursor, isDone: false }));
    isStale = true;
    reading ??= (async () => {
      while (isStale && !closed.signal.aborted) {
        isStale = false;
        try {
          await read(untracked(() => client.value));
        } catch (problem) {
          if (closed.signal.aborted) return;
          error.value = problem instanceof NotFoundError ? `There is no run ${id}. Ended runs are deleted after a while.` : messageOf(problem);
        }
        await new Promise((resolve) => setTimeout(resolve, REFRESH_MS));
      }
    })().finally(() => (reading = undefined));
  }

  function take(batch: (RunEvent | ProgressEvent)[]): void {
    const news: RunEvent[] = [];
    let map = tokenMap.peek();
    const moved = new Map(progress.peek());
    for (const event of batch) {
      if (event.kind === "progress") moved.set((event as ProgressEvent).token_id, event as ProgressEvent);
      else {
        news.push(event as RunEvent);
        map = withEvent(map, event as RunEvent);
      }
    }
    progress.value = moved;
    if (news.length === 0) return;
    events.value = [...events.peek(), ...news];
    tokenMap.value = map;
    refresh({ everything: news.some(({ kind }) => kind === "run_retried" || kind === "run_restarted") });
  }

  /** Watches until the run ends or the connection is lost; `connections` begins it anew. */
  async function watch(current: Client): Promise<void> {
    watching?.abort();
    if (globalThis.document.hidden) return;
    const own = (watching = new AbortController());
    let batch: (RunEvent | ProgressEvent)[] = [];
    const flush = (): void => {
      if (batch.length === 0 || own.signal.aborted) return;
      const events = batch;
      batch = [];
      take(events);
    };
    try {
      const after = events.peek().at(-1)?.seq ?? 0;
      for await (const event of current.watch(id, { after, signal: own.signal, retries: 0 })) {
        if (batch.push(event) === 1) queueMicrotask(() => setTimeout(flush));
      }
      flush();
      refresh();
    } catch (problem) {
      flush();
      if (own.signal.aborted || problem instanceof NotFoundError) return;
      // The probe of the session says when the server answers again.
      lost();
    } finally {
      if (watching === own) watching = undefined;
    }
  }

  // Browsers have six connections to a host without HTTP/2: hidden tabs must not hold them.
  let hiddenSince: ReturnType<typeof setTimeout> | undefined;
  const onVisibility = (): void => {
    clearTimeout(hiddenSince);
    if (globalThis.document.hidden) hiddenSince = setTimeout(() => watching?.abort(), HIDDEN_MS);
    else {
      refresh();
      if (!watching) void watch(client.peek());
    }
  };
  globalThis.document.addEventListener("visibilitychange", onVisibility);

  const stop = effect(() => {
    connections.value;
    const current = client.value;
    if (signInReason.value !== undefined) return;
    untracked(() => {
      refresh();
      void watch(current);
    });
  });
  const timer = setInterval(() => {
    if (globalThis.document.hidden || watching) return;
    // The stream of an ended run is closed; the run may go on again.
    const status = run.peek()?.status;
    if (status !== undefined && !isEnded(status)) void watch(client.peek());
    refresh();
  }, ENDED_EVERY_MS);

  return {
    id,
    run,
    tokens,
    events,
    progress,
    document,
    error,
    isLoaded,
    /** After a control: its answer is the run, and the stream begins again if it was closed. */
    changed(next?: Run): void {
      if (next) run.value = next;
      refresh({ everything: true });
      if (!watching) void watch(client.peek());
    },
    close(): void {
      stop();
      clearInterval(timer);
      clearTimeout(hiddenSince);
      globalThis.document.removeEventListener("visibilitychange", onVisibility);
      closed.abort();
      watching?.abort();
    },
  };
}

