// Text, times and JSON of a run. Everything is rendered as text; what is long is cut with a way to see the rest.
import { useState } from "preact/hooks";
import { cut, pretty, SHOWN_CHARACTERS, visible } from "../logic/safe_text.ts";
import { lookOf } from "../logic/statuses.ts";
import { ago, bytes, moment, words, zone } from "../logic/words.ts";
import { now } from "../state/clock.ts";
import { Icon } from "./icon.tsx";

/** Text from outside, in one line or as it is. */
export function Text({ value, line = false, max = SHOWN_CHARACTERS, className = "" }: { value: string; line?: boolean; max?: number; className?: string }) {
  const [isWhole, setWhole] = useState(false);
  const { shown, left } = isWhole ? { shown: value, left: 0 } : cut(value, max);
  return (
    <>
      <bdi class={`data ${line ? "line" : ""} ${className}`}>{visible(shown)}</bdi>
      {left > 0 && (
        <>
          {"… "}
          <button type="button" class="link-button small" onClick={() => setWhole(true)}>
            Show all ({bytes(value.length)})
          </button>
        </>
      )}
    </>
  );
}

const JSON_SHOWN = 20_000;

/** A value as indented JSON. */
export function Json({ value, label }: { value: unknown; label: string }) {
  const [isWhole, setWhole] = useState(false);
  const text = pretty(value);
  const { shown, left } = isWhole ? { shown: text, left: 0 } : cut(text, JSON_SHOWN);
  return (
    <div>
      <pre class="json" tabIndex={0} aria-label={label}>
        {visible(shown)}
        {left > 0 && "…"}
      </pre>
      {left > 0 && (
        <button type="button" class="button small" onClick={() => setWhole(true)}>
          Show all ({bytes(text.length)})
        </button>
      )}
    </div>
  );
}

/** A status of a run, a token, a gate or a breaker, with its shape. */
export function Status({ status }: { status: string }) {
  const { tone, shape } = lookOf(status);
  return (
    <span class={`status tone-${tone}`} data-status={status}>
      <Icon name={shape} size={12} />
      <bdi class="data">{visible(cut(words(status), 60).shown)}</bdi>
    </span>
  );
}

/** A moment in words, exact in its title. */
export const When = ({ at }: { at: number }) => (
  <time class="nowrap number" dateTime={Number.isFinite(at) && Math.abs(at) < 8.64e15 ? new Date(at).toISOString() : ""} title={`${moment(at)} ${zone(at)}`}>
    {ago(at, now.value)}
  </time>
);

export const Problem = ({ message }: { message: string }) => (
  <div class="problem-box" role="alert">
    <Text value={message} />
  </div>
);
