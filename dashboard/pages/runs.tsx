// The list of runs: views and filters in the address, bulk actions, and the start of a run.
import { useEffect, useRef, useState } from "preact/hooks";
import type { RunSummary } from "../../client/index.ts";
import { filterOf, isFiltered, isSameView, selectionOf, VIEWS, type RunFilter } from "../logic/run_filter.ts";
import { runPath, withQuery, workflowPath } from "../logic/routes.ts";
import { isEnded, lookOf, RUN_STATUSES } from "../logic/statuses.ts";
import { duration, timeLeft, words } from "../logic/words.ts";
import { BulkBar } from "../parts/bulk_bar.tsx";
import { Icon } from "../parts/icon.tsx";
import { StartDialog } from "../parts/start_dialog.tsx";
import { Problem, Status, Text, When } from "../parts/text.tsx";
import { currentTime, now } from "../state/clock.ts";
import { query, setQuery } from "../state/location.ts";
import { attempt } from "../state/notices.ts";
import { usePolled } from "../state/poll.ts";
import { client, may } from "../state/session.ts";

const EVERY_MS = 2_000;
const PAGE = 50;

export function RunsPage() {
  const search = query.value.toString();
  const filter = filterOf(query.value);
  const { data, error, refresh } = usePolled(`runs?${search}`, EVERY_MS, (client, signal) => client.runs({ ...listQuery(filter), limit: PAGE, signal }));
  const [more, setMore] = useState<{ items: RunSummary[]; cursor: string | null }>({ items: [], cursor: null });
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [isStarting, setStarting] = useState(false);
  useEffect(() => {
    setMore({ items: [], cursor: null });
    setSelected(new Set());
    document.title = "Runs - Curfew";
  }, [search]);

  const first = data.value?.items ?? [];
  const known = new Set(first.map(({ id }) => id));
  const runs = [...first, ...more.items.filter(({ id }) => !known.has(id))];
  const cursor = more.items.length > 0 ? more.cursor : (data.value?.next_cursor ?? null);
  const loadMore = async () => {
    const page = await attempt(() => client.value.runs({ ...listQuery(filter), limit: PAGE, cursor: cursor ?? undefined }));
    if (page) setMore({ items: [...more.items, ...page.items], cursor: page.next_cursor });
  };
  const toggle = (id: string) => {
    const next = new Set(selected);
    if (!next.delete(id)) next.add(id);
    setSelected(next);
  };
  const mayControl = may("operate");
  const isAll = runs.length > 0 && runs.every(({ id }) => selected.has(id));

  return (
    <>
      <div class="page-head">
        <h1>Runs</h1>
        {may("start") && (
          <button type="button" class="button primary" onClick={() => setStarting(true)}>
            <Icon name="play" size={12} /> Start a run
          </button>
        )}
      </div>
      <nav class="views" aria-label="Views">
        {VIEWS.map((view) => (
          <a key={view.title} href={`/runs${view.query && `?${view.query}`}`} aria-current={isSameView(search, view.query) ? "true" : undefined}>
            {view.title}
          </a>
        ))}
      </nav>
      <section class="card" aria-label="Runs">
        <details open={isWide() || isFiltered(filter)}>
          <summary class="filters-summary">Filters</summary>
          <Filters filter={filter} />
        </details>
        {mayControl && (selected.size > 0 || isFiltered(filter)) && (
          <BulkBar ids={[...selected]} filter={filter} onDone={() => (setSelected(new Set()), refresh())} onClear={() => setSelected(new Set())} />
        )}
        {error.value && <Problem message={error.value} />}
        <div class="table-scroll">
          <table class="stacked">
            <thead>
              <tr>
                <th class={mayControl ? "" : "hidden"}>
                  <input type="checkbox" aria-label="Select all shown runs" checked={isAll} onChange={() => setSelected(isAll ? new Set() : new Set(runs.map(({ id }) => id)))} />
                </th>
                <th>Status</th>
                <th>Run</th>
                <th>Workflow</th>
                <th>Started</th>
                <th>Time</th>
                <th>Error</th>
              </tr>
            </thead>
            <tbody>
              {runs.map((run) => (
                <RunRow key={run.id} run={run} isSelected={mayControl ? selected.has(run.id) : undefined} onToggle={() => toggle(run.id)} />
              ))}
            </tbody>
          </table>
        </div>
        {runs.length === 0 && (
          <div class="empty">
            {data.value === undefined ? "Loading …" : isFiltered(filter) ? "No run matches these filters." : "No run yet. Start one, or store a workflow first."}
          </div>
        )}
        {cursor && (
          <div class="body">
            <button type="button" class="button" onClick={loadMore}>
              Show more
            </button>
          </div>
        )}
      </section>
      {isStarting && <StartDialog workflow={filter.workflow} onClose={() => setStarting(false)} />}
    </>
  );
}

/** On a narrow screen the runs come first. */
const isWide = (): boolean => matchMedia("(min-width: 641px)").matches;

const listQuery = (filter: RunFilter) => ({ ...selectionOf(filter, currentTime()), sort: filter.sort }) as object;

function RunRow({ run, isSelected, onToggle }: { run: RunSummary; /** Undefined: this caller controls no runs. */ isSelected: boolean | undefined; onToggle: () => void }) {
  return (
    <tr>
      <td class={isSelected === undefined ? "hidden" : ""}>
        <input type="checkbox" aria-label={`Select run ${run.id}`} checked={isSelected} onChange={onToggle} />
      </td>
      <td class="at-status">
        <Status status={run.status} />
      </td>
      <td class="main at-run">
        <a href={runPath(run.id)} class="mono">
          <Text value={run.id} max={140} />
        </a>
        {run.attempt > 1 && <span class="muted small"> attempt {run.attempt}</span>}
      </td>
      <td class="at-workflow">
        <a href={workflowPath(run.workflow_id, run.version)}>
          <Text value={run.workflow_id} />
        </a>{" "}
        <span class="muted small">v{run.version}</span>
      </td>
      <td class="at-started">
        <When at={run.started_at} />
      </td>
      <td class="at-time number nowrap">
        <RunTime run={run} />
      </td>
      <td class="at-error run-error">{run.error && <Text value={run.error.message} max={200} />}</td>
    </tr>
  );
}

/** How long an ended run took, how long a live one still has. */
function RunTime({ run }: { run: RunSummary }) {
  if (isEnded(run.status)) return <>{run.duration_ms === null ? "" : `took ${duration(run.duration_ms)}`}</>;
  if (run.status === "paused") return <span class="muted">clocks stopped</span>;
  if (run.timeout_at === null) return <span class="muted">{run.status === "waiting" ? "clock stopped" : "no limit"}</span>;
  const isNear = run.timeout_at - now.value < (run.timeout_at - run.started_at) * 0.2;
  return <span class={isNear ? "tone-late toned" : ""}>{timeLeft(run.timeout_at, now.value)}</span>;
}

function Filters({ filter }: { filter: RunFilter }) {
  const { data } = usePolled("workflow-ids", 0, (client, signal) => client.list("workflows", { limit: 1_000, signal }));
  const set = (changes: Partial<Record<keyof RunFilter, string>>) => setQuery(changes);
  const toggleStatus = (status: string) => {
    const next = filter.status.includes(status) ? filter.status.filter((other) => other !== status) : [...filter.status, status];
    set({ status: next.join(",") });
  };
  const text = (name: "tag" | "id_prefix" | "parent", title: string) => (
    <label class="field">
      <span class="label">{title}</span>
      <TypedFilter value={filter[name]} onChange={(value) => set({ [name]: value })} />
    </label>
  );
  return (
    <div class="filters">
      <fieldset class="statuses">
        <legend>Status</legend>
        {RUN_STATUSES.map((status) => (
          <button key={status} type="button" class={`button small tone-${lookOf(status).tone}`} aria-pressed={filter.status.includes(status)} onClick={() => toggleStatus(status)}>
            {words(status)}
          </button>
        ))}
      </fieldset>
      <label class="field">
        <span class="label">Workflow</span>
        <select class="input" value={filter.workflow} onChange={(event) => set({ workflow: event.currentTarget.value })}>
          <option value="">any</option>
          {filter.workflow && !data.value?.items.some(({ id }) => id === filter.workflow) && <option value={filter.workflow}>{filter.workflow}</option>}
          {data.value?.items.map(({ id }) => (
            <option key={id} value={id}>
              {id}
            </option>
          ))}
        </select>
      </label>
      {text("id_prefix", "Id begins with")}
      {text("tag", "Tag")}
      {text("parent", "Called by run")}
      <label class="field">
        <span class="label">Started</span>
        <select class="input" value={filter.within} onChange={(event) => set({ within: event.currentTarget.value })}>
          <option value="">any time</option>
          {["15m", "1h", "24h", "7d", "30d"].map((within) => (
            <option key={within} value={within}>
              in the last {within}
            </option>
          ))}
        </select>
      </label>
      <label class="field">
        <span class="label">Order</span>
        <select class="input" value={filter.sort} onChange={(event) => set({ sort: event.currentTarget.value === "started" ? "" : event.currentTarget.value })}>
          <option value="started">newest first</option>
          <option value="remaining">least time left</option>
        </select>
      </label>
      {(isFiltered(filter) || filter.sort !== "started") && (
        <a class="button quiet" href={withQuery("/runs", {})}>
          Clear
        </a>
      )}
    </div>
  );
}

/** How long a pause in typing has to be until the list is read again. */
const TYPED_MS = 300;

function TypedFilter({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const [typed, setTyped] = useState<string | undefined>(undefined);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const take = (text: string): void => {
    clearTimeout(timer.current);
    onChange(text.trim());
  };
  return (
    <input
      class="input"
      value={typed ?? value}
      onInput={(event) => {
        const text = event.currentTarget.value;
        setTyped(text);
        clearTimeout(timer.current);
        timer.current = setTimeout(() => take(text), TYPED_MS);
      }}
      onChange={(event) => take(event.currentTarget.value)}
      // From then on it shows what the address says, which a link may change.
      onBlur={() => setTyped(undefined)}
    />
  );
}
