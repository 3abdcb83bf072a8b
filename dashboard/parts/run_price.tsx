// What this run took and cost, next to what the analysis says of every run of its workflow.
import { priceOfMillion, usageOf } from "../logic/price.ts";
import { isEnded } from "../logic/statuses.ts";
import { duration } from "../logic/words.ts";
import { now } from "../state/clock.ts";
import type { RunStore } from "../state/run_store.ts";
import { useAnalysis } from "./analysis.tsx";
import { Problem } from "./text.tsx";

export function RunPrice({ store }: { store: RunStore }) {
  const run = store.run.value!;
  const tokens = store.tokens.value;
  const { data, error } = useAnalysis(run.workflow_id, run.version);
  const facts = data.value?.facts;
  const usage = usageOf(run, tokens, store.events.value, now.value);
  const bound = (value: number | null | undefined, text: (value: number) => string): string => (!facts ? "" : value === null || value === undefined ? "no bound" : text(value));
  const number = (value: number): string => value.toLocaleString("en");
  const rows: [what: string, own: string, happy: string, worst: string][] = [
    ["Duration", duration(isEnded(run.status) ? run.duration_ms : Math.max(now.value - run.started_at, 0)), "", bound(facts?.duration_max_ms, duration)],
    ["Tokens", number(tokens.length), "", bound(facts?.tokens_max, number)],
    ["Attempts at an executor", number(usage.attempts), "", ""],
    ["In memory for calls", duration(usage.awakeMs), "", ""],
    ["Rows written", `about ${number(usage.rows)}`, bound(facts?.rows_written.happy, number), bound(facts?.rows_written.worst, number)],
    ["Price of a million", `about ${priceOfMillion(usage.dollars)}`, bound(facts?.dollars.happy, priceOfMillion), bound(facts?.dollars.worst, priceOfMillion)],
  ];
  return (
    <div>
      {error.value && (
        <div class="body">
          <Problem message={error.value} />
        </div>
      )}
      <div class="table-scroll">
        <table class="cards">
          <thead>
            <tr>
              <th />
              <th class="right">This run</th>
              <th class="right">If all goes well</th>
              <th class="right">At most</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(([what, own, happy, worst]) => (
              <tr key={what}>
                <td class="main">{what}</td>
                <td class="right number nowrap" data-label="This run">
                  <b>{own}</b>
                </td>
                <td class="right number nowrap" data-label="If all goes well">{happy}</td>
                <td class="right number nowrap" data-label="At most">{worst}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="body muted small">
        The last two columns are of the workflow's version {run.version}, with the runs that it calls: one attempt that nobody pauses, extends or retries. Rows and price of this run are estimated from its
        tokens and events, without the runs that it called. Prices are those of Cloudflare's paid plan beyond what is included, without what its peers cost.
      </p>
    </div>
  );
}
