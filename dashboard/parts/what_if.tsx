// What would have been, had the limits of the document or the recorded durations been others. The engine replays the run in this page.
import { signal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { limitsOf, patchOf } from "../logic/document_limits.ts";
import { drawn, durationsOf, lengthsOf, lengthsText, summary, whatIfOf, type RecordedDuration, type WhatIf } from "../logic/what_if.ts";
import { duration, words } from "../logic/words.ts";
import { query, setQuery } from "../state/location.ts";
import { replayOf } from "../state/replay.ts";
import type { RunStore } from "../state/run_store.ts";
import { messageOf } from "../state/session.ts";
import { RecordedDurationSliders } from "./recorded_durations.tsx";
import { LimitSliders } from "./scenario_controls.tsx";
import { Json, Problem, Status, Text } from "./text.tsx";
import { Timeline, type TimelineSource } from "./timeline.tsx";

export const WhatIfView = ({ store }: { store: RunStore }) =>
  // The address has limits of the document, which comes after the run.
  store.document.value ? <Replay store={store} document={store.document.value} /> : <div class="empty">Loading the document …</div>;

/** Other lengths: of limits by their pointers, of what took time by its key. */
interface Wanted {
  limits: ReadonlyMap<string, number>;
  durations: ReadonlyMap<string, number>;
}

function Replay({ store, document }: { store: RunStore; document: Record<string, unknown> }) {
  const limits = useMemo(() => limitsOf(document), [document]);
  const replay = useMemo(() => replayOf(store), [store]);
  const [wanted, setWanted] = useState<Wanted>(() => ({ limits: lengthsOf(query.value.get("limits")), durations: lengthsOf(query.value.get("durations")) }));
  const [recorded, setRecorded] = useState<RecordedDuration[] | undefined>(undefined);
  const [answer, setAnswer] = useState<WhatIf | undefined>(undefined);
  const [problem, setProblem] = useState<string | undefined>(undefined);

  // One at a time, and of those that were wanted meanwhile only the last.
  const next = useRef<Wanted | undefined>(undefined);
  const isBusy = useRef(false);
  useEffect(() => {
    setQuery({ limits: lengthsText(wanted.limits) || undefined, durations: lengthsText(wanted.durations) || undefined });
    next.current = wanted;
    if (isBusy.current) return;
    isBusy.current = true;
    void (async () => {
      let known = recorded;
      while (next.current) {
        const current = next.current;
        next.current = undefined;
        try {
          // What has durations is in the first answer.
          known ??= whatIfOf(await replay({ changes: [], durations: [] })).durations;
          const answer = whatIfOf(await replay({ changes: patchOf(limits, current.limits), durations: durationsOf(known, current.durations) }));
          known = answer.durations;
          setRecorded(known);
          setAnswer(answer);
          setProblem(undefined);
        } catch (error) {
          setProblem(messageOf(error));
        }
      }
      isBusy.current = false;
    })();
  }, [wanted, document]);

  const patch = patchOf(limits, wanted.limits);
  return (
    <div class="simulator">
      <div class="body stack">
        <p class="small muted">The engine replays the run in this page, with its recorded answers, under other limits or durations. Nothing is called or changed.</p>
        <fieldset class="controls">
          <legend>Limits</legend>
          {limits.length === 0 && <p>The document of this run has no limits of its own.</p>}
          <LimitSliders limits={limits} lengths={wanted.limits} onChange={(limits) => setWanted((current) => ({ ...current, limits }))} />
        </fieldset>
        {recorded && recorded.length > 0 && (
          <fieldset class="controls">
            <legend>Durations</legend>
            <RecordedDurationSliders recorded={recorded} limits={limits} lengths={wanted.durations} onChange={(durations) => setWanted((current) => ({ ...current, durations }))} />
          </fieldset>
        )}
        {patch.length > 0 && (
          <details>
            <summary class="small">The changed limits as a JSON Patch</summary>
            <Json value={patch} label="The changed limits as a JSON Patch" />
          </details>
        )}
      </div>
      <div class="stack result" aria-live="polite">
        {problem && <Problem message={problem} />}
        {answer ? <Result answer={answer} store={store} /> : !problem && <div class="empty">Replaying …</div>}
      </div>
    </div>
  );
}

function Result({ answer, store }: { answer: WhatIf; store: RunStore }) {
  const { replayed, differences, unknown } = answer;
  const source = useMemo<TimelineSource>(() => {
    const { run, tokens, events, stillAt } = drawn(replayed, store.run.peek()!, store.tokens.peek());
    return { run: signal(run), tokens: signal(tokens), events: signal(events), document: store.document, stillAt };
  }, [answer]);
  return (
    <>
      <div class="row simulated-head">
        <Status status={replayed.status} />
        <b class="number">{replayed.durationMs === undefined ? "" : duration(replayed.durationMs)}</b>
        <span>{summary(answer)}</span>
      </div>
      {replayed.error && (
        <div class="problem-box">
          <strong>
            <Text value={replayed.error.code} />
          </strong>{" "}
          <Text value={replayed.error.message} />
        </div>
      )}
      {unknown.length > 0 && (
        <div class="note-box">
          <strong>The recording does not say everything.</strong>
          <ul class="cuts">
            {unknown.slice(0, 10).map(({ place, atMs, message }, index) => (
              <li key={index}>
                <Text value={place} max={100} /> {atMs !== undefined && <span class="muted">after {duration(atMs)}</span>}: <Text value={message} max={300} />
              </li>
            ))}
            {unknown.length > 10 && <li>and {unknown.length - 10} more</li>}
          </ul>
        </div>
      )}
      {differences.length > 0 && (
        <ul class="cuts" aria-label="Differences">
          {differences.slice(0, 50).map(({ what, place, message }, index) => (
            <li key={index}>
              <b>{words(what)}</b> <span class="muted">{place}</span>: <Text value={message} max={300} />
            </li>
          ))}
          {differences.length > 50 && <li>and {differences.length - 50} more</li>}
        </ul>
      )}
      {replayed.timeouts.length > 0 && (
        <ul class="cuts" aria-label="Limits that would have passed">
          {replayed.timeouts.slice(0, 20).map(({ place, timeoutMs, atMs, action }, index) => (
            <li key={index}>
              {timeoutMs !== undefined && <b class="number">{duration(timeoutMs)} </b>}passed for <Text value={place} max={100} /> {atMs !== undefined && <span class="muted">after {duration(atMs)}</span>}: {action}
            </li>
          ))}
        </ul>
      )}
      {replayed.tokens.length > 0 && <Timeline store={source} title="Replayed timeline" chosen={undefined} onExtend={undefined} />}
    </>
  );
}
