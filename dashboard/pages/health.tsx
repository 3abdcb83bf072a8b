// How the deployment is: figures and charts of /metrics. Rates are drawn from what was read while the page is open.
import { useEffect, useRef } from "preact/hooks";
import { histogram, quantile, samplesOf, total, totalsBy, type Sample } from "../logic/prometheus.ts";
import { lookOf } from "../logic/statuses.ts";
import { duration, words } from "../logic/words.ts";
import { RateChart, type Point } from "../parts/rate_chart.tsx";
import { Problem, Text } from "../parts/text.tsx";
import { usePolled } from "../state/poll.ts";

const EVERY_MS = 3_000;
const KEPT_POINTS = 600;
const LATENESS = "workflow_timeout_enforcement_latency_seconds";

export function HealthPage() {
  const points = useRef<Point[]>([]);
  const { data, error } = usePolled("metrics", EVERY_MS, async (client, signal) => {
    const [response, health] = await Promise.all([client.raw("GET", "/metrics", { signal, headers: { accept: "text/plain" } }), client.request("GET", "/healthz", { signal })]);
    const samples = samplesOf(await response.text());
    points.current = [...points.current.slice(-KEPT_POINTS), { at: Date.now() / 1_000, started: total(samples, "workflow_executions_started_total"), ended: total(samples, "workflow_executions_total"), timedOut: total(samples, "workflow_executions_timed_out_total") }];
    return { samples, version: health.version };
  });
  useEffect(() => {
    document.title = "Health - Curfew";
  }, []);
  if (error.value && !data.value) return <Problem message={error.value} />;
  if (!data.value) return <div class="empty">Loading …</div>;
  const { samples, version } = data.value;
  const seconds = (value: number | undefined): string => (value === undefined ? "none yet" : value === Infinity ? "over the last bucket" : `≤ ${duration(value * 1_000)}`);
  const figures: [string, string][] = [
    ["Runs started", total(samples, "workflow_executions_started_total").toLocaleString("en")],
    ["Runs ended", total(samples, "workflow_executions_total").toLocaleString("en")],
    ["Waiting for a person", total(samples, "workflow_executions_parked").toLocaleString("en")],
    ["Share of timed out runs", `${(total(samples, "workflow_executions_timeout_rate") * 100).toFixed(1)} %`],
    ["Lateness, median", seconds(quantile(samples, LATENESS, 0.5))],
    ["Lateness, 99 %", seconds(quantile(samples, LATENESS, 0.99))],
    ["Late results", total(samples, "late_results_total").toLocaleString("en")],
    ["Rows written", total(samples, "rows_written_total").toLocaleString("en")],
  ];
  return (
    <>
      <div class="page-head">
        <h1>Health</h1>
        <span class="muted">
          Curfew <Text value={version} /> answers
        </span>
      </div>
      {error.value && <Problem message={error.value} />}
      <div class="figures">
        {figures.map(([title, value]) => (
          <div key={title} class="card figure">
            <div class="muted small">{title}</div>
            <div class="value">{value}</div>
          </div>
        ))}
      </div>
      <div class="charts">
        <section class="card" aria-label="Runs while this page is open">
          <header>
            <h2>Runs while this page is open</h2>
          </header>
          <div class={`body chart ${points.current.length > 1 ? "drawn" : ""}`}>
            <RateChart points={points.current} />
          </div>
        </section>
        <Bars title="Ended runs by status" rows={totalsBy(samples, "workflow_executions_total", "status")} isStatus />
        <Bars title="Lateness of timeouts" rows={latenessRows(samples)} />
        <Bars title="Timeouts by layer" rows={totalsBy(samples, "workflow_executions_timed_out_total", "timeout_type")} />
        <Bars title="Retries of calls by class" rows={totalsBy(samples, "action_retries_total", "class").filter(([, value]) => value > 0)} />
      </div>
    </>
  );
}

const latenessRows = (samples: Sample[]): [string, number][] =>
  histogram(samples, LATENESS)
    .filter(([, count]) => count > 0)
    .map(([bound, count]) => [bound === Infinity ? "longer" : `≤ ${duration(bound * 1_000)}`, count]);

function Bars({ title, rows, isStatus = false }: { title: string; rows: [string, number][]; isStatus?: boolean }) {
  const most = Math.max(...rows.map(([, value]) => value), 1);
  return (
    <section class="card" aria-label={title}>
      <header>
        <h2>{title}</h2>
      </header>
      <div class="body">
        {rows.length === 0 ? (
          <div class="muted">Nothing yet.</div>
        ) : (
          <div class="bars">
            {rows.map(([name, value]) => (
              <>
                <span class="small">
                  <Text value={words(name)} max={60} />
                </span>
                <svg aria-hidden="true" class={isStatus ? `tone-${lookOf(name).tone}` : ""}>
                  <rect x="0" y="0" height="12" rx="2" width={`${(value / most) * 100}%`} />
                </svg>
                <span class="number small">{value.toLocaleString("en")}</span>
              </>
            ))}
          </div>
        )}
      </div>
    </section>
  );
}
