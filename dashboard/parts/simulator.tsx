// Simulates a workflow in the browser, by the engine itself: nothing is sent, called or stored. The result is drawn like a run.
import { signal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { limitsOf, patchOf } from "../logic/document_limits.ts";
import { priceOfMillion } from "../logic/price.ts";
import { merged, played, scenarioOf, type Scenario, type SimulatedRun } from "../logic/scenario.ts";
import { count, duration, words } from "../logic/words.ts";
import { calledDocuments } from "../state/called_documents.ts";
import { askEngine } from "../state/engine.ts";
import { usePolled } from "../state/poll.ts";
import { messageOf } from "../state/session.ts";
import { SchemaForm, type FormState } from "./schema_form.tsx";
import { ScenarioControls } from "./scenario_controls.tsx";
import { Json, Problem, Status, Text } from "./text.tsx";
import { Timeline, type TimelineSource } from "./timeline.tsx";

export function Simulator({ id, version, document }: { id: string; version: number; document: unknown }) {
  const { data: documents, error } = usePolled(`called-${id}-${version}`, 0, (client, signal) => calledDocuments(client, document, signal));
  const [form, setForm] = useState<FormState>({ value: {}, problems: [] });
  const [scenario, setScenario] = useState<Scenario>(() => scenarioOf(document, {}));
  const [simulated, setSimulated] = useState<SimulatedRun | undefined>(undefined);
  const [problem, setProblem] = useState<string | undefined>(undefined);
  const limits = useMemo(() => limitsOf(document), [document]);
  const input = JSON.stringify(form.value);
  const isFilled = form.problems.length === 0;

  // One at a time, and of those that were wanted meanwhile only the last: a slider asks faster than a long simulation answers.
  const wanted = useRef<Scenario | undefined>(undefined);
  const isBusy = useRef(false);
  useEffect(() => {
    const known = documents.value;
    if (!known || !isFilled) return;
    wanted.current = { ...scenario, input: form.value };
    if (isBusy.current) return;
    isBusy.current = true;
    void (async () => {
      while (wanted.current) {
        const next = wanted.current;
        wanted.current = undefined;
        try {
          const done = await played(askEngine, document, known, next);
          setSimulated(done.simulated);
          setProblem(undefined);
          setScenario((current) => merged(current, done.scenario));
        } catch (refused) {
          setProblem(messageOf(refused));
        }
      }
      isBusy.current = false;
    })();
  }, [scenario, input, isFilled, documents.value]);

  const patch = patchOf(limits, scenario.lengths);
  return (
    <div class="simulator">
      <div class="body stack">
        <p class="small muted">The engine runs in this page, in virtual time. Nothing is called or stored.</p>
        <details open>
          <summary>
            <h3>Input</h3>
          </summary>
          <SchemaForm schema={(document as { input_schema?: unknown } | undefined)?.input_schema} label="Input" onChange={setForm} />
        </details>
        <ScenarioControls limits={limits} scenario={scenario} onChange={setScenario} />
        {patch.length > 0 && (
          <details>
            <summary class="small">The changed limits as a JSON Patch</summary>
            <Json value={patch} label="The changed limits as a JSON Patch" />
          </details>
        )}
      </div>
      <div class="stack result" aria-live="polite">
        {error.value && <Problem message={error.value} />}
        {problem && <Problem message={problem} />}
        {!isFilled && <p class="note-box">The simulation waits for the input.</p>}
        {simulated ? <Result simulated={simulated} document={document} /> : !problem && <div class="empty">Loading the engine …</div>}
      </div>
    </div>
  );
}

function Result({ simulated, document }: { simulated: SimulatedRun; document: unknown }) {
  const { run, tokens, events, timeouts, virtual_ms, dollars, waits_for } = simulated;
  const source = useMemo<TimelineSource>(() => ({ run: signal(run), tokens: signal(tokens), events: signal(events), document: signal(document as Record<string, unknown>), stillAt: run.started_at + virtual_ms }), [simulated]);
  return (
    <>
      <div class="row simulated-head">
        <Status status={run.status} />
        <b class="number">{duration(virtual_ms)}</b>
        <span class="muted">{count(tokens.length, "token")}</span>
        <span class="muted" title="What this run would cost on Cloudflare, without what its peers cost">
          {priceOfMillion(dollars)} a million runs
        </span>
      </div>
      {run.error && (
        <div class="problem-box">
          <strong>
            <Text value={run.error.code} />
          </strong>{" "}
          <Text value={run.error.message} />
        </div>
      )}
      {waits_for && waits_for.length > 0 && (
        <div class="note-box">
          It waits for{" "}
          {waits_for.slice(0, 5).map((wait, index) => (
            <span key={index}>
              {index > 0 && ", "}
              {words(String(wait["for"]))} <Text value={String(wait["signal"] ?? wait["node_id"] ?? "")} max={60} />
            </span>
          ))}
          .
        </div>
      )}
      {timeouts.length > 0 && (
        <ul class="cuts" aria-label="Limits that passed">
          {timeouts.slice(0, 20).map(({ id, timeout_event: event, last_known_state: state, final_action }) => (
            <li key={id}>
              {state.node_id ? <Text value={state.node_id} max={60} /> : "the run"} <span class="muted">({words(event.scope)})</span>: the limit {event.timeout_ms !== undefined && <>of <b class="number">{duration(event.timeout_ms)}</b> </>}passed, then {words(final_action)}
            </li>
          ))}
          {timeouts.length > 20 && <li>and {timeouts.length - 20} more</li>}
        </ul>
      )}
      <Timeline store={source} title="Simulated timeline" chosen={undefined} onExtend={undefined} />
      <details>
        <summary class="small">Output</summary>
        <Json value={run.output} label="Output" />
      </details>
    </>
  );
}
