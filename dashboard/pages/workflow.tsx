// One workflow: its graph, its document, its versions and what changed between them.
import { useEffect, useMemo, useState } from "preact/hooks";
import { graphOf } from "../logic/graph.ts";
import { differences } from "../logic/json_difference.ts";
import { withQuery } from "../logic/routes.ts";
import { short } from "../logic/safe_text.ts";
import { GraphView } from "../parts/graph.tsx";
import { StartDialog } from "../parts/start_dialog.tsx";
import { Tabs } from "../parts/tabs.tsx";
import { Json, Problem, Text, When } from "../parts/text.tsx";
import { query, setQuery } from "../state/location.ts";
import { usePolled } from "../state/poll.ts";
import { may } from "../state/session.ts";

const VIEWS = ["graph", "document", "versions"] as const;

export function WorkflowPage({ id }: { id: string }) {
  const version = Number(query.value.get("version")) || undefined;
  const wanted = query.value.get("view");
  const view = VIEWS.find((name) => name === wanted) ?? "graph";
  const [isStarting, setStarting] = useState(false);
  const newest = usePolled(`workflow-${id}`, 10_000, (client, signal) => client.read("workflows", id, { signal }));
  const { data, error } = usePolled(`workflow-${id}-${version}`, 0, (client, signal) => client.read("workflows", id, { version, signal }));
  useEffect(() => {
    document.title = `${id} - Curfew`;
  }, [id]);
  const stored = data.value;
  const graph = useMemo(() => graphOf(stored?.document), [stored]);
  if (error.value) return <Problem message={error.value} />;
  if (!stored) return <div class="empty">Loading …</div>;
  const document_ = stored.document as { description?: unknown; name?: unknown };
  const last = newest.data.value?.version ?? stored.version;
  return (
    <>
      <div class="page-head">
        <h1>
          <Text value={id} />
        </h1>
        <label class="row">
          Version
          <select class="input" value={String(stored.version)} onChange={(event) => setQuery({ version: event.currentTarget.value === String(last) ? undefined : event.currentTarget.value }, { replace: false })}>
            {Array.from({ length: last }, (_, index) => last - index).map((number) => (
              <option key={number} value={String(number)}>
                {number}
                {number === last ? " (newest)" : ""}
              </option>
            ))}
          </select>
        </label>
        <a class="button" href={withQuery("/runs", { workflow: id })}>
          Runs
        </a>
        {may("start") && (
          <button type="button" class="button primary" onClick={() => setStarting(true)}>
            Start a run
          </button>
        )}
      </div>
      <div class="run-facts">
        <span>
          stored <When at={stored.created_at} />
          {stored.created_by && (
            <>
              {" by "}
              <Text value={stored.created_by} max={80} />
            </>
          )}
        </span>
        {typeof document_.description === "string" && <Text value={document_.description} max={400} />}
      </div>
      <section class="card" aria-label="Details">
        <Tabs names={VIEWS} chosen={view} onChoose={(name) => setQuery({ view: name === "graph" ? undefined : name })} />
        <div role="tabpanel" aria-label={view}>
          {view === "graph" && <GraphView graph={graph} />}
          {view === "document" && (
            <div class="body">
              <Json value={stored.document} label="The document" />
            </div>
          )}
          {view === "versions" && <Versions id={id} version={stored.version} document={stored.document} last={last} />}
        </div>
      </section>
      {isStarting && <StartDialog workflow={id} {...(version !== undefined && { version })} onClose={() => setStarting(false)} />}
    </>
  );
}

function Versions({ id, version, document, last }: { id: string; version: number; document: unknown; last: number }) {
  const [other, setOther] = useState(version > 1 ? version - 1 : last);
  const { data, error } = usePolled(`workflow-${id}-${other}-other`, 0, (client, signal) => client.read("workflows", id, { version: other, signal }));
  if (last === 1) return <div class="empty">There is one version only.</div>;
  const changes = data.value ? differences(data.value.document, document) : undefined;
  return (
    <div>
      <div class="filters">
        <label class="field">
          <span class="label">Compare version {version} with</span>
          <select class="input" value={String(other)} onChange={(event) => setOther(Number(event.currentTarget.value))}>
            {Array.from({ length: last }, (_, index) => last - index)
              .filter((number) => number !== version)
              .map((number) => (
                <option key={number} value={String(number)}>
                  version {number}
                </option>
              ))}
          </select>
        </label>
      </div>
      {error.value && <Problem message={error.value} />}
      {changes?.length === 0 && <div class="empty">The documents are the same.</div>}
      {changes && changes.length > 0 && (
        <div class="table-scroll">
          <table>
            <thead>
              <tr>
                <th>Where</th>
                <th>Version {other}</th>
                <th>Version {version}</th>
              </tr>
            </thead>
            <tbody>
              {changes.map(({ path, before, after }) => (
                <tr key={path}>
                  <td class="mono">
                    <Text value={path} max={200} />
                  </td>
                  <td>{before === undefined ? <span class="muted">absent</span> : <Text value={short(before, 600)} className="mono" />}</td>
                  <td>{after === undefined ? <span class="muted">absent</span> : <Text value={short(after, 600)} className="mono" />}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </div>
  );
}
