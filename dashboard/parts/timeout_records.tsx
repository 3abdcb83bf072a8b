// The records of timeouts: what passed, what had been done until then, and what was done about it.
import { useState } from "preact/hooks";
import type { Timeout } from "../../client/index.ts";
import { tokenPath } from "../logic/routes.ts";
import { bytes, count, duration, moment, words } from "../logic/words.ts";
import { usePolled } from "../state/poll.ts";
import type { RunStore } from "../state/run_store.ts";
import { Json, Problem, Text } from "./text.tsx";
import { WhyDetails } from "./why_details.tsx";

export function TimeoutRecords({ store }: { store: RunStore }) {
  const timeouts = store.events.value.filter(({ recovery_path }) => recovery_path !== undefined).length;
  const { data, error } = usePolled(`timeouts-${store.id}-${timeouts}`, 0, (client, signal) => client.timeouts(store.id, { limit: 200, signal }));
  if (error.value) return <Problem message={error.value} />;
  const items = (data.value as { items: Timeout[] } | undefined)?.items ?? [];
  if (items.length === 0) return <div class="empty">{data.value ? "No deadline of this run has passed." : "Loading …"}</div>;
  return (
    <div class="body stack">
      {items.map((item, index) => (
        <Record key={item.id} run={store.id} item={item} isFirst={index === 0} />
      ))}
    </div>
  );
}

const SCOPES: Record<string, string> = { flow: "limit of the run", step: "limit of a task", llm_call: "limit of a model's call", tool: "limit of a tool's call", sync: "limit of a join", gate: "limit of a gate" };
const ACTIONS: Record<string, string> = { escalate: "a person was asked", retry: "another attempt was made", fail: "it failed", proceed: "it went on with what was there", cancel: "it was cancelled" };

function Record({ run, item, isFirst }: { run: string; item: Timeout; isFirst: boolean }) {
  const [isOpen, setOpen] = useState(false);
  const { timeout_event: event, last_known_state: state, partial_artifacts: artifacts } = item;
  return (
    <article class="card">
      <header>
        <h3>{state.node_id ? <Text value={state.node_id} max={80} /> : "the run"}</h3>
        <span class="small">{SCOPES[event.scope] ?? words(event.scope)}</span>
        {state.token_id && (
          <a class="mono" href={tokenPath(run, state.token_id)}>
            {state.token_id}
          </a>
        )}
        <span class="muted small number">{moment(Date.parse(event.timestamp))}</span>
      </header>
      <div class="body stack">
        <p>
          {event.timeout_ms === undefined ? "A deadline passed" : <>The limit of <b>{duration(event.timeout_ms)}</b> passed</>} after <b>{duration(event.elapsed_ms)}</b>, noticed{" "}
          <b>{duration(event.lateness_ms)}</b> late{state.phase && <>, while it was {words(state.phase)}</>}
          {state.step_ref && (
            <>
              {" "}
              in the step <Text value={state.step_ref} max={80} />
            </>
          )}
          . {item.retry_count > 0 && `${count(item.retry_count, "attempt")} had timed out before. `}Then {ACTIONS[item.final_action] ?? words(item.final_action)}.
        </p>
        {artifacts.map((artifact, index) => (
          <div key={index}>
            <h3>
              What it had: <Text value={artifact.name} max={80} /> <span class="muted small">({bytes(artifact.bytes)}{artifact.complete ? "" : ", not complete"})</span>
            </h3>
            <Text value={artifact.text} max={600} />
          </div>
        ))}
        <WhyDetails run={run} record={item.id} isOpen={isFirst} />
        <div>
          <button type="button" class="link-button small" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            {isOpen ? "Hide the record" : "Show the whole record"}
          </button>
          {isOpen && <Json value={item} label="The record" />}
        </div>
      </div>
    </article>
  );
}
