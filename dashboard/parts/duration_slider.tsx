// A duration on a slider, and as text for who knows it exactly.
import { useState } from "preact/hooks";
import { written } from "../logic/document_limits.ts";
import { msAt, POSITIONS, positionOf, type DurationScale } from "../logic/duration_scale.ts";
import { duration, parseDuration } from "../logic/words.ts";

interface DurationSliderProps {
  label: string;
  ms: number;
  scale: DurationScale;
  /** What it was at first: then there is a way back to it. */
  initialMs?: number;
  onChange: (ms: number) => void;
}

export function DurationSlider({ label, ms, scale, initialMs, onChange }: DurationSliderProps) {
  const [typed, setTyped] = useState<string | undefined>(undefined);
  const typedMs = typed === undefined ? undefined : parseDuration(typed);
  const isWrong = typed !== undefined && (typedMs === undefined || typedMs < 1);
  return (
    <div class="duration-slider">
      <input
        type="range"
        min={0}
        max={POSITIONS}
        value={positionOf(ms, scale)}
        aria-label={label}
        aria-valuetext={duration(ms)}
        onInput={(event) => {
          setTyped(undefined);
          const position = Number(event.currentTarget.value);
          // Back on its first place it is what it was, not what it is rounded to.
          onChange(initialMs !== undefined && position === positionOf(initialMs, scale) ? initialMs : msAt(position, scale));
        }}
      />
      <input
        class="input number"
        size={7}
        aria-label={`${label}, as text`}
        aria-invalid={isWrong}
        title="For example 800ms, 30s, 10m or 1h30m"
        value={typed ?? written(ms)}
        onInput={(event) => {
          const text = event.currentTarget.value;
          setTyped(text);
          const next = parseDuration(text);
          if (next !== undefined && next >= 1) onChange(next);
        }}
        onBlur={() => setTyped(undefined)}
      />
      {initialMs !== undefined && ms !== initialMs && (
        <button type="button" class="link-button small" onClick={() => (setTyped(undefined), onChange(initialMs))}>
          back to {written(initialMs)}
        </button>
      )}
    </div>
  );
}
