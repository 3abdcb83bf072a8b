// What would have been, had the limits of the document been others: the API replays the run with its recorded durations and answers.
import { signal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { NotFoundError } from "../../client/index.ts";
import { limitsOf, patchOf } from "../logic/document_limits.ts";
import { drawn, lengthsOf, lengthsText, summary, whatIfOf, type WhatIf } from "../logic/what_if.ts";
import { duration, words } from "../logic/words.ts";
import { query, setQuery } from "../state/location.ts";
import { canReplay } from "../state/replay.ts";
import type { RunStore } from "../state/run_store.ts";
import { client, messageOf } from "../state/session.ts";
import { LimitSliders } from "./scenario_controls.tsx";
import { Json, Problem, Status, Text } from "./text.tsx";
import { Timeline, type TimelineSource } from "./timeline.tsx";

export const WhatIfView = ({ store }: { store: RunStore }) =>
  // The address has limits of the document, which comes after the run.
  store.document.value ? <Replay store={store} document={store.document.value} /> : <div class="empty">Loading the document …</div>;

function Replay({ store, document }: { store: RunStore; document: Record<string, unknown> }) {
  const run = store.run.value!;
  const limits = useMemo(() => limitsOf(document), [document]);
  const [lengths, setLengths] = useState<ReadonlyMap<string, number>>(() => lengthsOf(query.value.get("limits"), limits));
  const [answer, setAnswer] = useState<WhatIf | undefined>(undefined);
  const [problem, setProblem] = useState<string | undefined>(undefined);

  // One at a time, and of those that were wanted meanwhile only the last.
  const wanted = useRef<ReadonlyMap<string, number> | undefined>(undefined);
  const isBusy = useRef(false);
  useEffect(() => {
    setQuery({ limits: lengthsText(lengths) || undefined });
    wanted.current = lengths;
    if (isBusy.current) return;
    isBusy.current = true;
    void (async () => {
      while (wanted.current) {
        const changes = patchOf(limits, wanted.current);
        wanted.current = undefined;
        try {
          setAnswer(whatIfOf(await client.value.request<unknown>("POST", `/v1/runs/${encodeURIComponent(run.id)}/what-if`, { body: { changes } })));
          setProblem(undefined);
        } catch (error) {
          if (error instanceof NotFoundError) canReplay.value = false;
          setProblem(messageOf(error));
        }
      }
      isBusy.current = false;
    })();
  }, [lengths, document]);

  return (
    <div class="simulator">
      <div class="body stack">
        <p class="small muted">The run is replayed with its recorded durations and answers, under other limits. Nothing is called or changed.</p>
        {limits.length === 0 && <p>The document of this run has no limits of its own.</p>}
        <LimitSliders limits={limits} lengths={lengths} onChange={setLengths} />
        {patchOf(limits, lengths).length > 0 && (
          <details>
            <summary class="small">The changed limits as a JSON Patch</summary>
            <Json value={patchOf(limits, lengths)} label="The changed limits as a JSON Patch" />
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
