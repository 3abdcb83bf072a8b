// The types of a service binding to Curfew, for the environment of a Worker: `interface Env { CURFEW: CurfewBinding }`.
/// <reference lib="esnext.disposable" preserve="true" />
import type { BodyOf, Run, StartBody } from "./types.ts";

/** A run as it is reached over the binding. */
export interface RunHandle {
  readonly id: Promise<string>;
  /** The run as the API shows it; `wait_ms` waits for its end, 30 000 at most. */
  status(options?: { wait_ms?: number }): Promise<Run>;
  sendSignal(signal: { name: string; payload?: unknown }): Promise<Run>;
  /** `gate` is the id of an open gate of the run. */
  decide(gate: string, decision: BodyOf<"decideGate">): Promise<Run>;
  extend(body: BodyOf<"extendRun">): Promise<Run>;
  pause(): Promise<Run>;
  resume(): Promise<Run>;
  cancel(body?: BodyOf<"cancelRun">): Promise<Run>;
  /** Events as they are committed, one JSON object a line. The stream ends with the run. */
  subscribe(options?: { after?: number; kinds?: string[] }): Promise<ReadableStream<Uint8Array>>;
  [Symbol.dispose](): void;
}

export type CreateOptions = Omit<StartBody, "run_id" | "by"> & {
  /** The id of the workflow. */
  workflow: string;
  /** The id of the run. The same id with the same request is the same run. */
  id?: string;
};

export interface CurfewBinding {
  /** Starts a run. */
  create(options: CreateOptions): Promise<RunHandle>;
  /** A run that exists. */
  get(id: string): Promise<RunHandle>;
  /** Any request of the API, without a token. Only the path of its URL counts. */
  request(request: Request): Promise<Response>;
  /** `request` with the arguments of `fetch`. A binding without the entry point `Api` needs a token for it. */
  fetch(input: string | Request, init?: RequestInit): Promise<Response>;
}
