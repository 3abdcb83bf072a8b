// The controls of a simulation: limits, what calls answer and when, what people decide, which signals come.
import { useState } from "preact/hooks";
import type { DocumentLimit } from "../logic/document_limits.ts";
import { scaleAround, type DurationScale } from "../logic/duration_scale.ts";
import { pretty } from "../logic/safe_text.ts";
import type { CallOutcome, Scenario, SimulatedCall } from "../logic/scenario.ts";
import { parsedJson } from "../logic/schema_form.ts";
import { words } from "../logic/words.ts";
import { DurationSlider } from "./duration_slider.tsx";
import { Text } from "./text.tsx";

interface ScenarioControlsProps {
  limits: DocumentLimit[];
  scenario: Scenario;
  onChange: (change: (scenario: Scenario) => Scenario) => void;
}

const CALLS_MOST_MS = 3_600_000;
/** Of calls and decisions: up to an hour, and beyond the longest limit where that is longer. */
export const callScale = (limits: readonly DocumentLimit[]): DurationScale => ({ least: 1, most: limits.reduce((most, { ms }) => Math.max(most, ms * 2), CALLS_MOST_MS) });
const OUTCOMES: [CallOutcome, string][] = [
  ["answers", "answers"],
  ["fails_once", "fails once, then answers"],
  ["fails", "always fails"],
  ["hangs", "never answers"],
];

/** One item of a list is another. */
const changed = <Item,>(list: readonly Item[], index: number, change: Partial<Item>): Item[] => list.map((item, at) => (at === index ? { ...item, ...change } : item));

export function ScenarioControls({ limits, scenario, onChange }: ScenarioControlsProps) {
  const scale = callScale(limits);
  const { calls, gates, signals, lengths } = scenario;
  return (
    <>
      {limits.length > 0 && (
        <fieldset class="controls">
          <legend>Limits</legend>
          <LimitSliders limits={limits} lengths={lengths} onChange={(next) => onChange((current) => ({ ...current, lengths: next }))} />
        </fieldset>
      )}
      {calls.length > 0 && (
        <fieldset class="controls">
          <legend>Calls</legend>
          {calls.map((call, index) => (
            <Call key={call.key} call={call} scale={scale} onChange={(change) => onChange((current) => ({ ...current, calls: changed(current.calls, index, change) }))} />
          ))}
        </fieldset>
      )}
      {gates.length > 0 && (
        <fieldset class="controls">
          <legend>People</legend>
          {gates.map(({ gate, choices, choice, afterMs, input }, index) => {
            const title = gate === "timeout" ? "the limit of the run" : gate;
            const set = (change: Partial<Scenario["gates"][number]>) => onChange((current) => ({ ...current, gates: changed(current.gates, index, change) }));
            return (
              <div key={gate} class="control">
                <label class="row">
                  <Text value={title} max={60} />
                  <select class="input" value={choice} onChange={(event) => set({ choice: event.currentTarget.value })}>
                    <option value="">nobody decides</option>
                    {choices.map((name) => (
                      <option key={name} value={name}>
                        {words(name)}
                      </option>
                    ))}
                  </select>
                </label>
                {choice !== "" && <DurationSlider label={`${title} is decided after`} ms={afterMs} scale={scale} onChange={(afterMs) => set({ afterMs })} />}
                {choice !== "" && input !== undefined && <JsonDetails title="What is entered" label={`What is entered at ${title}, as JSON`} value={input} onChange={(input) => set({ input })} />}
              </div>
            );
          })}
        </fieldset>
      )}
      {signals.length > 0 && (
        <fieldset class="controls">
          <legend>Signals</legend>
          {signals.map(({ name, comes, afterMs }, index) => {
            const set = (change: Partial<Scenario["signals"][number]>) => onChange((current) => ({ ...current, signals: changed(current.signals, index, change) }));
            return (
              <div key={name} class="control">
                <label class="row">
                  <input type="checkbox" checked={comes} onChange={(event) => set({ comes: event.currentTarget.checked })} />
                  <Text value={name} max={80} /> comes, after the start
                </label>
                {comes && <DurationSlider label={`the signal ${name} comes after`} ms={afterMs} scale={scale} onChange={(afterMs) => set({ afterMs })} />}
              </div>
            );
          })}
        </fieldset>
      )}
    </>
  );
}

/** One slider for each limit that the document has. */
export const LimitSliders = ({ limits, lengths, onChange }: { limits: DocumentLimit[]; lengths: ReadonlyMap<string, number>; onChange: (lengths: ReadonlyMap<string, number>) => void }) => (
  <>
    {limits.map(({ pointer, title, ms }) => (
      <div key={pointer} class="control">
        <span title={pointer}>
          <Text value={title} max={80} />
        </span>
        <DurationSlider label={`the limit of ${title}`} ms={lengths.get(pointer) ?? ms} initialMs={ms} scale={scaleAround(ms)} onChange={(next) => onChange(new Map([...lengths, [pointer, next]]))} />
      </div>
    ))}
  </>
);

function Call({ call, scale, onChange }: { call: SimulatedCall; scale: DurationScale; onChange: (change: Partial<SimulatedCall>) => void }) {
  const { key, mock, afterMs, outcome } = call;
  return (
    <div class="control">
      <label class="row">
        <Text value={key} max={80} />
        <select class="input" value={outcome} onChange={(event) => onChange({ outcome: event.currentTarget.value as CallOutcome })}>
          {OUTCOMES.map(([name, title]) => (
            <option key={name} value={name}>
              {title}
            </option>
          ))}
        </select>
      </label>
      {outcome !== "hangs" && <DurationSlider label={`${key} takes`} ms={afterMs} scale={scale} onChange={(afterMs) => onChange({ afterMs })} />}
      {outcome !== "hangs" && outcome !== "fails" && (
        <JsonDetails title="What it answers" label={`What ${key} answers, as JSON`} value={mock["result"]} onChange={(result) => onChange({ mock: { ...mock, result } })} />
      )}
    </div>
  );
}

/** A value to be opened and written. */
function JsonDetails({ title, label, value, onChange }: { title: string; label: string; value: unknown; onChange: (value: unknown) => void }) {
  const [text, setText] = useState(() => pretty(value));
  const read = parsedJson(text, "It");
  return (
    <details>
      <summary class="small">{title}</summary>
      <textarea
        class="input mono"
        rows={5}
        spellcheck={false}
        aria-label={label}
        aria-invalid={"message" in read}
        value={text}
        onInput={(event) => {
          const next = event.currentTarget.value;
          setText(next);
          const written = parsedJson(next, "It");
          if ("value" in written) onChange(written.value);
        }}
      />
      {"message" in read && <p class="small">{read.message}</p>}
    </details>
  );
}
