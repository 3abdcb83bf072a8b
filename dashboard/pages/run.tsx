// A run: its state and time left, what it waits for, its timeline, and everything that is known about it.
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Run } from "../../client/index.ts";
import { nearestDeadline, runEnd } from "../logic/limits.ts";
import { runPath, workflowPath } from "../logic/routes.ts";
import { isEnded } from "../logic/statuses.ts";
import { duration, timeLeft, words } from "../logic/words.ts";
import { Compensation } from "../parts/compensation.tsx";
import { ExtendCard } from "../parts/extend_card.tsx";
import { GateList } from "../parts/gate_list.tsx";
import { Guard } from "../parts/guard.tsx";
import { RunControls } from "../parts/run_controls.tsx";
import { RunTabs } from "../parts/run_tabs.tsx";
import { Problem, Status, Text, When } from "../parts/text.tsx";
import { Timeline } from "../parts/timeline.tsx";
import { TokenPanel } from "../parts/token_panel.tsx";
import { recommendedWay, useWaysBack, WaysBack } from "../parts/ways_back.tsx";
import { now } from "../state/clock.ts";
import { usePolled } from "../state/poll.ts";
import { openRun, type RunStore } from "../state/run_store.ts";
import { may } from "../state/session.ts";

export function RunPage({ run: id, token }: { run: string; token: string | undefined }) {
  const store = useMemo(() => openRun(id), [id]);
  useEffect(() => {
    document.title = `${id} - Curfew`;
    return () => store.close();
  }, [store]);
  const run = store.run.value;
  if (!run) return store.error.value ? <Problem message={store.error.value} /> : <div class="empty">Loading …</div>;
  return <LoadedRun store={store} run={run} token={token} />;
}

function LoadedRun({ store, run, token }: { store: RunStore; run: Run; token: string | undefined }) {
  const [extendBy, setExtendBy] = useState<number | undefined>(undefined);
  const ended = isEnded(run.status);
  const ways = useWaysBack(store);
  // The end of a compensating run is decided: nothing moves its limit any more.
  const mayExtend = may("operate") && !ended && run.status !== "compensating" && (run.timeout_at !== null || runEnd(run, now.value) !== undefined);
  return (
    <>
      <div class="page-head">
        <h1>
          <Text value={run.id} max={140} />
        </h1>
        <Status status={run.status} />
        <TimeLeft run={run} />
        <RunControls store={store} onExtend={mayExtend ? () => setExtendBy(600_000) : undefined} />
      </div>
      <Facts run={run} />
      {store.error.value && <Problem message={store.error.value} />}
      {extendBy !== undefined && !ended && <ExtendCard key={extendBy} store={store} byMs={extendBy} onClose={() => setExtendBy(undefined)} />}
      <Guard what="The decisions that it waits for">
        <OpenGates store={store} run={run} />
      </Guard>
      {run.error && (
        <section class="card trouble" aria-label="Error">
          <header>
            <h2>
              {words(run.status)}: <Text value={run.error.code} />
            </h2>
            <span class="muted small">class {run.error.class}</span>
            {run.error.node_id && (
              <span class="muted small">
                at <Text value={run.error.node_id} />
              </span>
            )}
          </header>
          <div class="body">
            <Text value={run.error.message} />
          </div>
        </section>
      )}
      <Guard what="The compensation">
        <Compensation run={run} />
      </Guard>
      {ways && (
        <Guard what="The ways back">
          <WaysBack ways={ways} />
        </Guard>
      )}
      <div class={`columns ${token === undefined ? "single" : ""}`}>
        <div class="stack">
          <Guard what="The timeline">
            <Timeline store={store} chosen={token} onExtend={mayExtend ? setExtendBy : undefined} retry={recommendedWay(ways)} />
          </Guard>
          <RunTabs store={store} />
        </div>
        {token !== undefined && (
          <Guard key={token} what="The token">
            <TokenPanel store={store} id={token} />
          </Guard>
        )}
      </div>
    </>
  );
}

function TimeLeft({ run }: { run: Run }) {
  if (isEnded(run.status)) return <span class="time-left muted">took {duration(run.duration_ms)}</span>;
  const end = run.deadlines.find(({ kind }) => kind === "workflow" || kind === "compensation");
  if (end?.due_at !== undefined) return <span class="time-left">{timeLeft(end.due_at, now.value)}</span>;
  if (end?.remaining_ms !== undefined) return <span class="time-left muted">clock stopped, {duration(end.remaining_ms)} left</span>;
  return <span class="time-left muted">{run.timeout_at === null ? (run.status === "waiting" ? "clock stopped" : "no limit") : timeLeft(run.timeout_at, now.value)}</span>;
}

const STOPPERS: Record<string, string> = { person: "a person", workflow_timeout: "the limit of the run", escalation: "an escalated failure", parent: "the run that called it" };
const stopperOf = (cause: string): string => STOPPERS[cause] ?? words(cause);

function Facts({ run }: { run: Run }) {
  const nearest = isEnded(run.status) ? undefined : nearestDeadline(run);
  return (
    <div class="run-facts">
      <span>
        <a href={workflowPath(run.workflow_id, run.version)}>
          <Text value={run.workflow_id} />
        </a>{" "}
        v{run.version}
      </span>
      <span>
        started <When at={run.started_at} />
        {run.started_by && (
          <>
            {" by "}
            <b>
              <Text value={run.started_by} max={80} />
            </b>
          </>
        )}
      </span>
      {run.attempt > 1 && <span>attempt {run.attempt}</span>}
      {run.timeout_ms !== null && <span>limit {duration(run.timeout_ms)}</span>}
      {nearest && nearest.kind !== "workflow" && (
        <span>
          next deadline: {words(nearest.kind)} {nearest.node_id && <Text value={nearest.node_id} max={60} />} <b class="number">{timeLeft(nearest.at, now.value)}</b>
        </span>
      )}
      {run.paused_by && run.paused_by.length > 0 && <span>clocks stopped by {run.paused_by.map(stopperOf).join(" and ")}</span>}
      {run.ends_as && <span>will end as {words(run.ends_as)}</span>}
      {run.parent && (
        <span>
          called by <a href={runPath(run.parent.run_id)}>{run.parent.run_id}</a>
        </span>
      )}
      {run.triggered_by && (
        <span>
          started by the event <Text value={run.triggered_by.event} />
        </span>
      )}
      {run.reason && (
        <span>
          reason: <Text value={run.reason} max={300} />
        </span>
      )}
    </div>
  );
}

/** The gate that the whole run waits at is part of the run; those of its nodes are in the list of gates. */
function OpenGates({ store, run }: { store: RunStore; run: Run }) {
  const isAsking = run.deadlines.some(({ kind }) => kind === "gate") || run.counts["awaiting_human"] !== undefined || run.gate !== undefined;
  const { data, refresh } = usePolled(`gates-of-${run.id}-${isAsking}`, isAsking ? 2_000 : 0, async (client, signal) => {
    if (!isAsking) return [];
    const found = [];
    for await (const gate of client.pages((page) => client.gates({ run: run.id, limit: 1_000, signal, ...page }))) found.push(gate);
    return found;
  });
  useEffect(refresh, [store.events.value.length]);
  const gates = data.value ?? [];
  const own = run.gate && run.gate.status === "open" && !gates.some(({ id }) => id === run.gate!.id) ? [run.gate] : [];
  return <GateList gates={[...own, ...gates]} onDecided={() => (store.changed(), refresh())} />;
}
