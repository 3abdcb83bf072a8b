// Waits for the end of a run by long polling. A run that waits for a person says so once, and so does a connection that is lost.
import { CurfewError, type Run } from "../client/index.ts";
import { mayRepeat, pause } from "../client/transport.ts";
import type { Invocation } from "./command.ts";
import { EXIT, exitCodeOf } from "./exit_codes.ts";
import { CommandError } from "./failures.ts";
import { escaped } from "./terminal_text.ts";

/** The longest that the API waits. */
const WAIT_MS = 30_000;
/** How often Curfew may fail to answer in a row, as in `watch`: about three minutes. */
const FAILURES_MAX = 10;
const FIRST_PAUSE_MS = 1_000;
const PAUSE_MAX_MS = 30_000;

export async function waitForEnd(started: Run, { client, terminal, output }: Invocation): Promise<Run> {
  const interrupted = new AbortController();
  const { signal } = interrupted;
  const stopListening = terminal.onInterrupt(() => interrupted.abort());
  const id = escaped(started.id);
  const next = `watch it: ${output.command(`watch ${id}`)}`;
  let run = started;
  let isNoted = false;
  let failures = 0;
  try {
    while (exitCodeOf(run.status) === undefined) {
      const isAsking = run.gate !== undefined || (run.counts["awaiting_human"] ?? 0) > 0;
      if (isAsking && !isNoted) {
        output.note(`${id} waits for a person: ${output.command(`inbox --run ${id}`)}`);
        isNoted = true;
      }
      try {
        // A short first wait shows a gate that opens soon.
        run = await client().run(started.id, { wait_ms: run === started ? 2_000 : WAIT_MS, signal });
        failures = 0;
      } catch (error) {
        if (signal.aborted || !mayRepeat(error, true)) throw error;
        if (failures === 0) output.note(`Curfew does not answer; asking for ${id} again ...`);
        failures += 1;
        if (failures > FAILURES_MAX) throw new CommandError(`Curfew does not answer any more; ${id} has started, and goes on with Curfew`, { exitCode: EXIT.notReachable, next });
        await pause(Math.min(FIRST_PAUSE_MS * 2 ** (failures - 1), PAUSE_MAX_MS), signal);
      }
    }
  } catch (error) {
    if (signal.aborted) throw new CommandError(`${id} goes on`, { exitCode: EXIT.interrupted, next });
    if (!(error instanceof CurfewError)) throw error;
    // A refusal, after which nothing else names the run.
    output.note(`${id} has started; ${next}`);
    throw error;
  } finally {
    stopListening();
  }
  return run;
}
