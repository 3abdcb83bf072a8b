// The types of API responses that tests read, as SPEC section 11 defines them.

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
  deadlines: { kind: string; due_at?: number; remaining_ms?: number; token_id?: string; node_id?: string; gate_id?: string }[];
  counts: Record<string, number>;
  parent?: { run_id: string; token_id: string };
  /** The event that started the run. */
  triggered_by?: { event: string; key: string };
  /** The name of the caller that led to the run. */
  started_by?: string;
  root_run_id: string;
  attempt: number;
  reason?: string;
  /** The pause reasons. */
  paused_by?: string[];
  /** The run's own gate. */
  gate?: GateView;
  timeout_enforcement_latency_seconds?: Record<string, { count: number; mean: number; max: number }>;
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
  timeout_reason: string | null;
  reason: string | null;
  error: ErrorView | null;
  output: any;
  /** Of a token that is executing. */
  progress?: { at: number; step_ref: string; step_index: number; steps_total: number; attempt: number; partial: ArtifactView[] };
  compensation?: boolean;
  steps: {
    ref: string;
    status: string;
    attempts: number;
    duration_ms: number;
    retries?: { class: string; code: string; delay_ms: number }[];
  }[];
}

export interface ArtifactView {
  name: string;
  complete: boolean;
  bytes: number;
  text: string;
  /** Where it comes from, in the record of a join or a run. */
  node_id?: string;
  token_id?: string;
}

export interface GateView {
  id: string;
  run_id: string;
  node_id: string | null;
  token_id: string | null;
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

export interface EventView {
  seq: number;
  at: number;
  kind: string;
  recovery_path?: string;
  [field: string]: any;
}

export interface NotificationView {
  id: string;
  target: string;
  kind: string;
  seq: number;
  status: "pending" | "delivered" | "failed" | "refused";
  attempts: number;
  created_at: number;
  last_error?: string;
  delivered_at?: number;
  ended_at?: number;
  next_attempt_at?: number;
}

export interface TimeoutView {
  id: number;
  timeout_event: { timestamp: string; scope: string; timeout_ms: number; elapsed_ms: number; due_at: number; lateness_ms: number };
  last_known_state: { node_id?: string; token_id?: string; step_ref?: string; phase: string; progress: any };
  partial_artifacts: ArtifactView[];
  artifacts_cut?: boolean;
  context_for_resume: { last_successful_checkpoint: { token_id: string; node_id: string; at: number } | null; state: any };
  retry_count: number;
  final_action: string;
  recovery_path: string;
}
