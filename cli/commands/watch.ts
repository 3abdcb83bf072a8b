// `curfew watch`: a run as it goes. On a terminal a screen that is redrawn in place, elsewhere one line for each event.
import type { Client, ResumeOptions, Run, Token } from "../../client/index.ts";
import { mayRepeat } from "../../client/transport.ts";
import type { Command, Invocation } from "../command.ts";
import { EXIT, exitCodeOf, type ExitCode } from "../exit_codes.ts";
import { endLines, outcomeLines, waysBack } from "../run_text.ts";
import { eventLine } from "../watch/event_line.ts";
import { frame } from "../watch/frame.ts";
import { Screen } from "../watch/screen.ts";
import { stateOf, withAnswer, withEvent, type WatchState } from "../watch/state.ts";

/** How often the time left is redrawn. */
const TICK_MS = 250;
/** The pause between two answers of the API after events; asking takes at most a fifth of the time. */
const REFRESH_MS = 400;
const REFRESH_SHARE = 4;
/** Not every change has an event: a branch that comes to its join has none. */
const REFRESH_WITHOUT_EVENTS_MS = 1_500;

export const watch: Command = {
  name: "watch",
  summary: "Shows a run as it goes, until it ends: tokens, deadlines, progress, gates.",
  positionals: [{ name: "run", candidates: "run" }],
  flags: [],
  examples: ["curfew watch order-1", "curfew watch order-1 --json | jq .kind"],
  run: (invocation) => watchRun(invocation.words[0]!, invocation),
};

export async function watchRun(runId: string, invocation: Invocation): Promise<ExitCode> {
  const { terminal, output } = invocation;
  const interrupted = new AbortController();
  const stopListening = terminal.onInterrupt(() => interrupted.abort());
  try {
    const isScreen = terminal.isOutputTerminal && !output.isJson;
    const run = await (isScreen ? onScreen : asLines)(runId, invocation, interrupted.signal);
    return exitCodeOf(run.status) ?? EXIT.refused;
  } catch (error) {
    if (!interrupted.signal.aborted) throw error;
    output.note(`the run goes on; watch it again: ${output.command(`watch ${runId}`)}`);
    return EXIT.interrupted;
  } finally {
    stopListening();
  }
}

async function asLines(runId: string, { client, output, terminal }: Invocation, signal: AbortSignal): Promise<Run> {
  const api = client();
  // A watch repeats its connection; a Curfew that does not answer at all, or does not know the run, is a failure at once.
  await api.run(runId, { signal });
  for await (const event of api.watch(runId, { signal })) {
    if (output.isJson) output.jsonLine(event);
    else if (event.kind !== "progress") output.lines(eventLine(event, terminal.now()));
  }
  const run = await api.run(runId, { signal });
  if (!output.isJson) output.lines(...endLines(run, await waysBack(run, api), output));
  return run;
}

async function onScreen(runId: string, { client, output, terminal }: Invocation, signal: AbortSignal): Promise<Run> {
  const api = client();
  const screen = new Screen(terminal);
  let state = await answer(api, runId, terminal.now, signal).then(({ run, tokens, at }) => stateOf(run, tokens, at));
  let ways: ResumeOptions | undefined;
  const draw = () => screen.draw(frame(state, terminal.columns(), screen.height, terminal.now(), output));
  const refresh = refresher(async () => {
    const { run, tokens, at } = await answer(api, runId, terminal.now, signal);
    state = withAnswer(state, run, tokens, at);
    draw();
  });
  const ticks = [setInterval(draw, TICK_MS), setInterval(refresh.request, REFRESH_WITHOUT_EVENTS_MS)];
  const stopListening = [terminal.onResize(draw), terminal.onSuspend(() => screen.close(), draw)];
  try {
    draw();
    for await (const event of api.watch(runId, { signal })) {
      state = withEvent(state, event);
      // Progress comes with all that it changes.
      if (event.kind !== "progress") refresh.request();
      refresh.check();
    }
    await refresh.finish();
    const last: WatchState = state;
    ways = await waysBack(last.run, api);
    return last.run;
  } finally {
    ticks.forEach(clearInterval);
    stopListening.forEach((stop) => stop());
    screen.close();
    if (!signal.aborted) output.lines(...outcomeLines(state.run, ways, output));
  }
}

async function answer(api: Client, runId: string, now: () => number, signal: AbortSignal): Promise<{ run: Run; tokens: Token[]; at: number }> {
  const [{ run, at }, tokens] = await Promise.all([
    api.run(runId, { signal }).then((run) => ({ run, at: now() })),
    all(api.pages((page) => api.tokens(runId, { limit: 1_000, signal, ...page }))),
  ]);
  return { run, tokens, at };
}

export async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const collected: Item[] = [];
  for await (const item of items) collected.push(item);
  return collected;
}

/**
 * Asks the API again after events, but not for each one: a fan-out of a thousand branches has thousands of them, and an answer with all
 * its tokens is large. While Curfew does not answer, the screen keeps what it shows, and the next request asks again: how long that may last is
 * decided by the stream. A refusal is thrown at the next event.
 */
function refresher(ask: () => Promise<void>): { request(): void; check(): void; finish(): Promise<void> } {
  let isWanted = false;
  let isRunning = false;
  let failure: unknown;
  let current: Promise<void> = Promise.resolve();

  const loop = async () => {
    while (isWanted) {
      isWanted = false;
      const startedAt = Date.now();
      await ask();
      const tookMs = Date.now() - startedAt;
      if (isWanted) await new Promise((resolve) => setTimeout(resolve, Math.max(REFRESH_MS, tookMs * REFRESH_SHARE)));
    }
  };
  const check = () => {
    if (failure !== undefined) throw failure;
  };
  return {
    request: () => {
      isWanted = true;
      if (isRunning) return;
      isRunning = true;
      current = loop()
        .catch((error: unknown) => {
          if (!mayRepeat(error, true)) failure = error;
        })
        .finally(() => (isRunning = false));
    },
    check,
    finish: async () => {
      await current;
      check();
      await ask();
    },
  };
}
