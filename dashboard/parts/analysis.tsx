// What the analysis knows of every run of a workflow: what it can take at most, what it costs, and what is wrong with the document.
import { useEffect, useRef } from "preact/hooks";
import type { AnswerOf, Problem as Finding } from "../../client/index.ts";
import { nodesAt } from "../logic/graph.ts";
import { priceOfMillion } from "../logic/price.ts";
import { duration } from "../logic/words.ts";
import { usePolled, type Polled } from "../state/poll.ts";
import { Icon } from "./icon.tsx";
import { Text } from "./text.tsx";

export type Analysis = AnswerOf<"analyzeWorkflow">;
export type WorkflowFacts = NonNullable<Analysis["facts"]>;

export const useAnalysis = (id: string, version: number | undefined): Polled<Analysis> =>
  usePolled(`analysis-${id}-${version}`, 0, (client, signal) =>
    client.request("POST", "/v1/workflows/{workflow_id}/analyze", { path: { workflow_id: id }, query: version === undefined ? {} : { version }, body: {}, signal }),
  );

/** `12 to 40`, where both ends are known. */
const span = (happy: number | null, worst: number | null, text: (value: number) => string): string =>
  happy !== null && happy === worst ? text(happy) : `${happy === null ? "unknown" : text(happy)} to ${worst === null ? "no bound" : text(worst)}`;

/** What the longest wait is for: its node, or what the analysis says. */
const waitFor = (pointer: string | undefined | null, document: unknown): string => (pointer ? nodesAt(document, pointer)[0] || pointer : "without a decision");

export function Facts({ facts, document }: { facts: WorkflowFacts; document: unknown }) {
  const { ends, duration_max_ms, tokens_alive_max, rows_written, dollars, longest_wait } = facts;
  const figures: [title: string, value: string, more: string][] = [
    ["Longest run", duration_max_ms === null ? "no bound" : duration(duration_max_ms), ends.surely ? "every run ends by itself" : ends.reason],
    ["Longest wait", longest_wait.ms === null ? "no bound" : longest_wait.ms === 0 ? "none" : duration(longest_wait.ms), longest_wait.ms === 0 ? "for a person, a time or a signal" : `at ${waitFor(longest_wait.pointer, document)}`],
    ["Tokens at once", tokens_alive_max.toLocaleString("en"), "at most"],
    ["Rows written", span(rows_written.happy, rows_written.worst, (rows) => rows.toLocaleString("en")), "if all goes well, and at most"],
    ["Price of a million runs", span(dollars.happy, dollars.worst, priceOfMillion), "if all goes well, and at most"],
  ];
  return (
    <section class="card analysis-facts" aria-label="What a run can take">
      {figures.map(([title, value, more]) => (
        <div key={title}>
          <div class="muted small">{title}</div>
          <strong class="number">{value}</strong>
          <div class="muted small">
            <Text value={more} max={160} />
          </div>
        </div>
      ))}
    </section>
  );
}

interface ProblemsProps {
  analysis: Analysis;
  document: unknown;
  /** The node whose problems are marked. */
  chosen: string | undefined;
  onChoose: (node: string) => void;
}

export function Problems({ analysis, document, chosen, onChoose }: ProblemsProps) {
  const list = useRef<HTMLUListElement>(null);
  useEffect(() => list.current?.querySelector(".current")?.scrollIntoView({ block: "nearest" }), [chosen]);
  const { errors, warnings } = analysis;
  const all: [kind: "error" | "warning", finding: Finding][] = [...errors.map((finding) => ["error", finding] as ["error", Finding]), ...warnings.map((finding) => ["warning", finding] as ["warning", Finding])];
  if (all.length === 0) return <p class="body muted">The analysis has found nothing that would go wrong.</p>;
  return (
    <ul class="findings" aria-label="What the analysis has found" ref={list}>
      {all.map(([kind, { code, pointer, message }]) => {
        const node = nodesAt(document, pointer)[0]!;
        return (
          <li key={`${code} ${pointer}`} class={`finding ${node !== "" && node === chosen ? "current" : ""}`}>
            <span class={`toned ${kind === "error" ? "tone-bad" : "tone-late"}`}>
              <Icon name={kind === "error" ? "cross" : "warning"} size={12} /> {code}
            </span>
            <span class="grow">
              <Text value={message} max={600} />
            </span>
            {node === "" ? (
              <span class="mono muted">{pointer}</span>
            ) : (
              <button type="button" class="link-button mono" aria-label={`${pointer}: mark the node ${node}`} onClick={() => onChoose(node)}>
                <Text value={pointer} max={120} />
              </button>
            )}
          </li>
        );
      })}
    </ul>
  );
}
