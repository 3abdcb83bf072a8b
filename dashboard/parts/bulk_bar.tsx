// One control for many runs: those that are ticked, or all that match the filter. It goes on in the background and is counted here.
import { useState } from "preact/hooks";
import type { BulkControl, Operation } from "../../client/index.ts";
import { filterWords, selectionOf, type RunFilter } from "../logic/run_filter.ts";
import { count, parseDuration } from "../logic/words.ts";
import { currentTime } from "../state/clock.ts";
import { attempt, notify } from "../state/notices.ts";
import { client, messageOf } from "../state/session.ts";
import { Dialog } from "./dialog.tsx";
import { Text } from "./text.tsx";

const TITLES: Record<BulkControl, string> = { cancel: "Cancel", pause: "Pause", resume: "Resume", extend: "Extend", retry: "Retry" };
const POLL_MS = 300;

interface BulkBarProps {
  ids: string[];
  filter: RunFilter;
  onDone: () => void;
  onClear: () => void;
}

export function BulkBar({ ids, filter, onDone, onClear }: BulkBarProps) {
  const [control, setControl] = useState<BulkControl | undefined>(undefined);
  const what = ids.length > 0 ? count(ids.length, "selected run") : "all runs that match the filter";
  return (
    <div class="bulk" role="group" aria-label="Actions for several runs">
      <span class="grow">
        For <strong>{what}</strong>:
      </span>
      {(Object.keys(TITLES) as BulkControl[]).map((name) => (
        <button key={name} type="button" class={`button small ${name === "cancel" ? "danger" : ""}`} onClick={() => setControl(name)}>
          {TITLES[name]} …
        </button>
      ))}
      {ids.length > 0 && (
        <button type="button" class="button quiet small" onClick={onClear}>
          Clear the selection
        </button>
      )}
      {control && <BulkDialog control={control} ids={ids} filter={filter} what={what} onClose={() => setControl(undefined)} onDone={onDone} />}
    </div>
  );
}

function BulkDialog({ control, ids, filter, what, onClose, onDone }: Omit<BulkBarProps, "onClear"> & { control: BulkControl; what: string; onClose: () => void }) {
  const [by, setBy] = useState("10m");
  const [mode, setMode] = useState<"retry_step" | "discard_and_retry" | "escalate">("retry_step");
  const byMs = parseDuration(by);
  const isValid = control !== "extend" || byMs !== undefined;
  const submit = async () => {
    if (!isValid) return;
    const which = ids.length > 0 ? { ids } : { filter: selectionOf(filter, currentTime()) };
    const body = { ...which, ...(control === "extend" ? { with: { by_ms: byMs } } : control === "retry" ? { with: { mode } } : {}) };
    const started = await attempt(() => client.value.bulk(control, body as never));
    if (!started) return;
    onClose();
    await follow(started.operation_id, TITLES[control]);
    onDone();
  };
  return (
    <Dialog
      title={`${TITLES[control]} ${what}`}
      onClose={onClose}
      onSubmit={submit}
      footer={
        <>
          <button type="button" class="button" onClick={onClose}>
            Back
          </button>
          <button class={`button ${control === "cancel" ? "danger" : "primary"}`} disabled={!isValid}>
            {TITLES[control]} {what}
          </button>
        </>
      }
    >
      {ids.length === 0 && (
        <p>
          All runs with:{" "}
          <strong>
            <Text value={filterWords(filter)} max={400} />
          </strong>
          . Those on pages that are not shown are among them.
        </p>
      )}
      {control === "extend" && (
        <label class="field">
          <span class="label">By how much</span>
          <input class="input" value={by} autofocus aria-invalid={!isValid} onInput={(event) => setBy(event.currentTarget.value)} />
          <span class="hint">For example 30s, 10m or 1h30m.</span>
        </label>
      )}
      {control === "retry" && (
        <label class="field">
          <span class="label">How</span>
          <select class="input" autofocus value={mode} onChange={(event) => setMode(event.currentTarget.value as typeof mode)}>
            <option value="retry_step">Go on from what failed</option>
            <option value="discard_and_retry">Drop what the failed steps did, then go on</option>
            <option value="escalate">Ask a person first</option>
          </select>
        </label>
      )}
      <p class="muted">It goes on in the background. Runs for which there is nothing to do are skipped.</p>
    </Dialog>
  );
}

/** Counts the operation until it is done. */
async function follow(id: string, title: string): Promise<void> {
  try {
    let operation: Operation;
    do {
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      operation = await client.value.operation(id);
    } while (operation.status === "running");
    const { done, skipped, failed, errors } = operation;
    const why = errors[0] ? ` The first refusal: ${errors[0].run_id}: ${errors[0].message}` : "";
    notify(failed > 0 ? "bad" : "good", `${title}: ${done} done, ${skipped} skipped, ${failed} refused.${why}`);
  } catch (error) {
    notify("bad", `${title}: how far it is could not be read: ${messageOf(error)}`);
  }
}
