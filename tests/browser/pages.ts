// Every page, with what shows that it is there. The runs are those of scene.ts.
export const PAGES: [name: string, path: string, ready: string][] = [
  ["runs", "/runs", "tbody tr"],
  ["runs-failed", "/runs?status=failed,timed_out", "tbody tr"],
  ["run-live", "/runs/steps-live", ".node"],
  ["run-parked", "/runs/parked-1", ".gate .cuts"],
  ["run-failed", "/runs/failing-1", ".way"],
  ["run-timeouts", "/runs/timing-1?view=timeouts", "article"],
  ["run-loop", "/runs/loop-1", ".node"],
  ["run-branches", "/runs/wide-40/tokens/t7?view=tokens", ".token-panel dl"],
  ["run-events", "/runs/steps-live?view=events", ".event"],
  ["run-context", "/runs/review-1?view=context", "pre"],
  ["inbox", "/inbox", ".gate .cuts"],
  ["workflows", "/workflows", "tbody tr"],
  ["workflow", "/workflows/loop", ".node"],
  ["breakers", "/breakers", "h1"],
  ["health", "/health", ".uplot"],
  ["unknown", "/nowhere", "h1"],
];
