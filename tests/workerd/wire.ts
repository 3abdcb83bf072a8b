// The shapes of the API that tests read, as SPEC section 11 pins them.

export interface ErrorView {
  code: string;
  class: string;
  message: string;
  node_id?: string;
  token_id?: string;
  step_ref?: string;
}

export interface RunView {
  id: string;
  workflow_id: string;
  version: number;
  status: string;
  input: any;
  output: any;
  error: ErrorView | null;
  context: { state: any; output: any };
  started_at: number;
  ended_at: number | null;
  timeout_at: number | null;
  timeout_ms: number | null;
  duration_ms: number | null;
  deadlines: { kind: string; due_at?: number; remaining_ms?: number; token_id?: string; node_id?: string }[];
  counts: Record<string, number>;
  parent?: { run_id: string; token_id: string };
  root_run_id: string;
  attempt: number;
  reason?: string;
  /** Who keeps the clocks from going. */
  paused_by?: string[];
  /** The gate the whole run stands at. */
  gate?: GateView;
  tags: string[];
}

export interface TokenView {
  id: string;
  node_id: string;
  status: string;
  epoch: number;
  retry_count: number;
  lane: string | null;
  branch: { group: string; instance: number; index: number; total: number } | null;
  parent_token_id: string | null;
  created_at: number;
  dispatched_at: number | null;
  started_at: number | null;
  ended_at: number | null;
  timeout_at: number | null;
  timeout_ms: number | null;
  reason: string | null;
  error: ErrorView | null;
  output: any;
  steps: { ref: string; status: string; attempts: number; duration_ms: number }[];
}

export interface GateView {
  id: string;
  run_id: string;
  node_id: string;
  token_id: string;
  kind: string;
  prompt: any;
  choices: string[];
  input_schema: any;
  opened_at: number;
  timeout_at: number | null;
  reminded_at: number | null;
  status: string;
  decision: { choice: string; input?: any; comment?: string; by?: string; at: number } | null;
}
