// What the metrics must say about some runs, from what the API shows of them.
import type { EventView, RunView, TimeoutView, TokenView } from "./api-types.ts";

export interface RunReader {
  run(id: string): Promise<RunView>;
  events(id: string): Promise<EventView[]>;
  tokens(id: string): Promise<TokenView[]>;
  timeouts(id: string): Promise<TimeoutView[]>;
}

const LAYERS: Record<string, string> = { step: "execution", llm_call: "execution", tool: "execution", flow: "workflow", sync: "synchronization", gate: "gate" };

/** The samples that the runs lead to, by the names of the text format. Retries of calls: of the last report of each token. */
export async function expectedSamples(runs: RunReader, ids: string[]): Promise<Map<string, number>> {
  const samples = new Map<string, number>();
  const add = (name: string, more = 1): void => void samples.set(name, (samples.get(name) ?? 0) + more);
  for (const id of ids) {
    const { workflow_id } = await runs.run(id);
    let beganAt = 0;
    for (const { kind, at } of await runs.events(id)) {
      switch (kind) {
        case "run_started":
        case "run_retried":
        case "run_restarted":
          beganAt = at;
          add("workflow_executions_started_total");
          break;
        case "run_completed":
        case "run_failed":
        case "run_timed_out":
        case "run_cancelled":
          add(`workflow_executions_total{status="${kind.slice(4)}"}`);
          add("workflow_execution_duration_seconds_count");
          add("workflow_execution_duration_seconds_sum", (at - beganAt) / 1000);
          break;
        case "token_retried":
          add('action_retries_total{class="timeout"}');
          break;
        case "late_result_discarded":
          add("late_results_total");
          break;
        case "dispatch_rung_again":
          add("dispatch_redelivered_total");
          break;
      }
    }
    for (const { timeout_event: { scope, lateness_ms } } of await runs.timeouts(id)) {
      add(`workflow_executions_timed_out_total{timeout_type="${LAYERS[scope]}"}`);
      add("workflow_timeout_enforcement_latency_seconds_count");
      add("workflow_timeout_enforcement_latency_seconds_sum", lateness_ms / 1000);
    }
    for (const { node_id, status, created_at, started_at, ended_at, steps, compensation } of await runs.tokens(id)) {
      for (const { class: name } of steps.flatMap(({ retries }) => retries ?? [])) add(`action_retries_total{class="${name}"}`);
      const worked = ["completed", "failed", "timed_out"].includes(status) && started_at !== null && ended_at !== null && started_at >= created_at;
      if (!worked) continue;
      const labels = `{workflow="${workflow_id}",node="${node_id}${compensation ? "~compensate" : ""}"}`;
      add(`node_execution_duration_seconds_count${labels}`);
      add(`node_execution_duration_seconds_sum${labels}`, (ended_at - started_at) / 1000);
    }
  }
  return samples;
}

/** What is not as it should be. Samples of metrics that are expected nowhere are zero. */
export function differences(scraped: Map<string, number>, expected: Map<string, number>): string[] {
  // Tokens do not show which of several end handlers they are of.
  const samples = new Map<string, number>();
  for (const [name, value] of scraped) {
    const shown = name.replace(/node="on_end~\d+"/, 'node="on_end"');
    samples.set(shown, (samples.get(shown) ?? 0) + value);
  }
  const checked = /^(workflow_executions_total|workflow_executions_started_total|workflow_executions_timed_out_total|action_retries_total|late_results_total|dispatch_redelivered_total|(workflow_execution_duration|workflow_timeout_enforcement_latency|node_execution_duration)_seconds_(sum|count))(\{|$)/;
  const names = new Set([...samples.keys(), ...expected.keys()]);
  return [...names]
    .filter((name) => checked.test(name) && Math.abs((samples.get(name) ?? 0) - (expected.get(name) ?? 0)) > 0.0005)
    .map((name) => `${name} is ${samples.get(name)}, should be ${expected.get(name)}`);
}
