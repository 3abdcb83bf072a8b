// Extends the limit of a run: by a duration that is typed, chosen or was dragged. Says what still ends earlier.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { innerLimits, runEnd } from "../logic/limits.ts";
import { duration, moment, parseDuration, words } from "../logic/words.ts";
import { now } from "../state/clock.ts";
import { attempt } from "../state/notices.ts";
import type { RunStore } from "../state/run_store.ts";
import { client } from "../state/session.ts";
import { useReturnFocus } from "./return_focus.ts";
import { Text } from "./text.tsx";

const CHOICES = ["1m", "10m", "1h", "1d"];
/** Longer is refused at once. */
const MOST_MS = 30 * 86_400_000;

/** A duration as it can be typed. */
function typed(ms: number): string {
  const seconds = Math.max(Math.round(ms / 1_000), 1);
  const parts: [number, string][] = [[Math.floor(seconds / 86_400), "d"], [Math.floor((seconds % 86_400) / 3_600), "h"], [Math.floor((seconds % 3_600) / 60), "m"], [seconds % 60, "s"]];
  return parts.filter(([value]) => value > 0).map(([value, unit]) => `${value}${unit}`).join("");
}

export function ExtendCard({ store, byMs, onClose }: { store: RunStore; byMs: number; onClose: () => void }) {
  const run = store.run.value!;
  const [text, setText] = useState(typed(byMs));
  const input = useRef<HTMLInputElement>(null);
  useReturnFocus();
  useLayoutEffect(() => {
    input.current?.focus();
    input.current?.select();
  }, []);
  const by = parseDuration(text);
  const isValid = by !== undefined && by >= 1 && by <= MOST_MS;
  const end = runEnd(run, now.value);
  const newEnd = end === undefined || !isValid ? undefined : end + by;
  const inner = newEnd === undefined ? [] : innerLimits(run, newEnd, now.value);
  const submit = async () => {
    if (!isValid) return;
    const next = await attempt(() => client.value.extend(run.id, { by_ms: by }), `The run has ${duration(by)} more.`);
    if (!next) return;
    store.changed(next);
    onClose();
  };
  return (
    <section class="card attention" aria-label="Extend the run">
      <form
        class="body stack"
        onSubmit={(event) => (event.preventDefault(), submit())}
        onKeyDown={(event) => event.key === "Escape" && onClose()}
      >
        <div class="row">
          <label class="row">
            <strong>Extend by</strong>
            <input class="input extend-by" ref={input} value={text} size={10} aria-invalid={!isValid} onInput={(event) => setText(event.currentTarget.value)} />
          </label>
          {CHOICES.map((choice) => (
            <button key={choice} type="button" class="button small" onClick={() => setText(choice)}>
              {choice}
            </button>
          ))}
          <span class="grow" />
          <button class="button primary" disabled={!isValid}>
            Extend
          </button>
          <button type="button" class="button" onClick={onClose}>
            Back
          </button>
        </div>
        {!isValid && <p class="small">Write a duration of at most 30 days, for example 30s, 10m or 1h30m.</p>}
        {newEnd !== undefined && (
          <p>
            {run.status === "paused" || run.timeout_at === null ? "If the clocks went on now, the limit would pass at " : "The limit then passes at "}
            <b class="number">{moment(newEnd, now.value)}</b>.
          </p>
        )}
        {inner.length > 0 && (
          <div>
            <h2>These limits stay, and end earlier:</h2>
            <ul class="cuts small">
              {inner.slice(0, 8).map(({ kind, node_id, token_id, at }) => (
                <li key={`${kind}${token_id}${at}`}>
                  {words(kind)} {node_id && <Text value={node_id} max={60} />} {token_id && <span class="muted">{token_id}</span>}: in <b class="number">{duration(Math.max(at - now.value, 0))}</b>
                </li>
              ))}
              {inner.length > 8 && <li>and {inner.length - 8} more</li>}
            </ul>
          </div>
        )}
      </form>
    </section>
  );
}
