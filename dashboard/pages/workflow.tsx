// One workflow: its graph with what the analysis says, a simulation, its document, its versions and what changed between them.
import { useEffect, useMemo, useState } from "preact/hooks";
import { graphOf, warningsByNode, withWarnings } from "../logic/graph.ts";
import { withQuery } from "../logic/routes.ts";
import { Facts, Problems, useAnalysis } from "../parts/analysis.tsx";
import { GraphView } from "../parts/graph.tsx";
import { Later } from "../parts/later.tsx";
import { StartDialog } from "../parts/start_dialog.tsx";
import { Tabs } from "../parts/tabs.tsx";
import { Json, Problem, Text, When } from "../parts/text.tsx";
import { Versions } from "../parts/versions.tsx";
import { query, setQuery } from "../state/location.ts";
import { usePolled } from "../state/poll.ts";
import { may } from "../state/session.ts";

const VIEWS = ["graph", "simulate", "document", "versions"] as const;

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
  const analysis = useAnalysis(id, version);
  const found = analysis.data.value;
  const warnings = useMemo(() => found && warningsByNode(stored?.document, [...found.errors, ...found.warnings]), [stored, found]);
  const graph = useMemo(() => withWarnings(graphOf(stored?.document), warnings), [stored, warnings]);
  const [chosen, setChosen] = useState<string | undefined>(undefined);
  if (error.value) return <Problem message={error.value} />;
  if (!stored) return <div class="empty">Loading …</div>;
  const document_ = stored.document as { description?: unknown; name?: unknown };
  const last = newest.data.value?.version ?? stored.version;
  // Without a version in the address it is the one that was the newest when the page was opened: another may have come since.
  const choose = (chosen: string): void => setQuery({ version: chosen === String(last) && version !== undefined ? undefined : chosen }, { replace: false });
  return (
    <>
      <div class="page-head">
        <h1>
          <Text value={id} />
        </h1>
        <label class="row">
          Version
          <select class="input" value={String(stored.version)} onChange={(event) => choose(event.currentTarget.value)}>
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
      {found?.facts && <Facts facts={found.facts} document={stored.document} />}
      <section class="card" aria-label="Details">
        <Tabs names={VIEWS} chosen={view} onChoose={(name) => setQuery({ view: name === "graph" ? undefined : name })} />
        <div role="tabpanel" aria-label={view}>
          {view === "graph" && (
            <>
              {/* Warnings need room: with them the graph is laid out once. */}
              {found || analysis.error.value ? <GraphView graph={graph} warnings={warnings} chosen={chosen} onChoose={setChosen} /> : <div class="empty">Analyzing …</div>}
              {analysis.error.value && <Problem message={analysis.error.value} />}
              {found && <Problems analysis={found} document={stored.document} chosen={chosen} onChoose={setChosen} />}
            </>
          )}
          {view === "simulate" && (
            <Later
              key={stored.version}
              load={() => import("../parts/simulator.tsx").then(({ Simulator }) => () => <Simulator id={id} version={stored.version} document={stored.document} />)}
            />
          )}
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
