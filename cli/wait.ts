// Waits for the end of a run by long polling. A run that waits for a person says so once.
import type { Run } from "../client/index.ts";
import type { Invocation } from "./command.ts";
import { EXIT, exitCodeOf } from "./exit_codes.ts";
import { CommandError } from "./failures.ts";
import { escaped } from "./terminal_text.ts";

/** The longest that the API waits. */
const WAIT_MS = 30_000;

export async function waitForEnd(started: Run, { client, terminal, output }: Invocation): Promise<Run> {
  const interrupted = new AbortController();
  const stopListening = terminal.onInterrupt(() => interrupted.abort());
  const id = escaped(started.id);
  let run = started;
  let isNoted = false;
  try {
    while (exitCodeOf(run.status) === undefined) {
      const isAsking = run.gate !== undefined || (run.counts["awaiting_human"] ?? 0) > 0;
      if (isAsking && !isNoted) {
        output.note(`${id} waits for a person: ${output.command(`inbox --run ${id}`)}`);
        isNoted = true;
      }
      // A short first wait shows a gate that opens soon.
      run = await client().run(started.id, { wait_ms: run === started ? 2_000 : WAIT_MS, signal: interrupted.signal });
    }
  } catch (error) {
    if (!interrupted.signal.aborted) throw error;
    throw new CommandError(`${id} goes on`, { exitCode: EXIT.interrupted, next: `watch it: ${output.command(`watch ${id}`)}` });
  } finally {
    stopListening();
  }
  return run;
}
