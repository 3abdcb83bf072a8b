// Every page, with what shows that it is there. The runs are those of scene.ts.
import { wordy } from "./workflows.ts";

/** As long as the API takes. */
export const LONG_RUN = `${"a-run-with-an-id-as-long-as-the-api-takes-".repeat(3)}0`;

export const PAGES: [name: string, path: string, ready: string][] = [
  ["runs", "/runs", "tbody tr"],
  ["runs-failed", "/runs?status=failed,timed_out", "tbody tr"],
  ["run-live", "/runs/steps-live", ".node"],
  ["run-parked", "/runs/parked-1", ".gate .cuts"],
  ["run-two-gates", "/runs/fork-1", ".gate .cuts"],
  ["run-escalated", "/runs/escalated-1", ".gate .cuts"],
  ["run-long-names", `/runs/${LONG_RUN}`, ".gate .cuts"],
  ["run-form", "/runs/paperwork-1", ".gate .cuts"],
  ["run-failed", "/runs/failing-1", ".way"],
  ["run-undone", "/runs/undone-1", ".node"],
  ["run-timeouts", "/runs/timing-1?view=timeouts", ".why"],
  ["run-what-if", "/runs/timing-1?view=what_if&limits=%2Fnodes%2F0%2Ftimeout%3D400", ".simulator .lane"],
  ["run-loop", "/runs/loop-1", ".node"],
  ["run-branches", "/runs/wide-40/tokens/t7?view=tokens", ".token-panel dl"],
  ["run-events", "/runs/steps-live?view=events", ".event"],
  ["run-context", "/runs/review-1?view=context", "pre"],
  ["inbox", "/inbox", ".gate .cuts"],
  ["workflows", "/workflows", "tbody tr"],
  ["workflow", "/workflows/loop", ".node"],
  ["workflow-analysis", "/workflows/checkout", ".warning-text"],
  ["workflow-long-names", `/workflows/${wordy.id}`, ".node"],
  ["workflow-simulate", "/workflows/checkout?view=simulate", ".simulator .lane"],
  ["workflow-versions", "/workflows/checkout?view=versions", "tbody tr"],
  ["run-price", "/runs/steps-live?view=price", "tbody tr"],
  ["breakers", "/breakers", "tbody tr"],
  ["health", "/health", ".chart.drawn"],
  ["unknown", "/nowhere", "h1"],
];
