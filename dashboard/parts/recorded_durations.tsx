// How long recorded calls, called workflows and decisions take in a replay.
import type { DocumentLimit } from "../logic/document_limits.ts";
import type { RecordedDuration } from "../logic/what_if.ts";
import { duration } from "../logic/words.ts";
import { DurationSlider } from "./duration_slider.tsx";
import { callScale } from "./scenario_controls.tsx";
import { Text } from "./text.tsx";

interface RecordedDurationSlidersProps {
  recorded: RecordedDuration[];
  limits: DocumentLimit[];
  /** Other durations, by key. */
  lengths: ReadonlyMap<string, number>;
  onChange: (lengths: ReadonlyMap<string, number>) => void;
}

export const RecordedDurationSliders = ({ recorded, limits, lengths, onChange }: RecordedDurationSlidersProps) => (
  <>
    {recorded.map((item) => {
      const { key, longestMs } = item;
      const change = (ms: number): void => {
        const next = new Map(lengths);
        if (ms === longestMs) next.delete(key);
        else next.set(key, ms);
        onChange(next);
      };
      return (
        <div key={key} class="control">
          <span>
            <Text value={titleOf(item)} max={100} />
            <span class="muted small">{spread(item)}</span>
          </span>
          <DurationSlider label={titleOf(item)} ms={lengths.get(key) ?? longestMs} initialMs={longestMs} scale={callScale(limits)} onChange={change} />
        </div>
      );
    })}
  </>
);

function titleOf({ kind, name }: RecordedDuration): string {
  if (kind === "node") return `${name} takes`;
  return `${name === "timeout" ? "the limit of the run" : name} is decided after`;
}

/** Several answers have one slider: moved, all of them take so long. */
function spread({ answers, shortestMs, longestMs }: RecordedDuration): string {
  if (answers === 1) return "";
  return shortestMs === longestMs ? ` ${answers} answers` : ` ${answers} answers, ${duration(shortestMs)} to ${duration(longestMs)}`;
}
