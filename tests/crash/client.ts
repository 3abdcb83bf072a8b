// A client of a Curfew whose process is killed: requests without a response are repeated.
import { until } from "../workerd/poll.ts";
import type { ApiResponse } from "../workerd/harness.ts";
import type { EventView, RunView, TimeoutView, TokenView } from "../workerd/api-types.ts";

/** The longest wait for one condition. */
export const WAIT_MS = 90_000;
/** The interval of polls: many polls would be a load of their own. */
const POLL_MS = 300;
const TERMINAL = ["completed", "failed", "timed_out", "cancelled"];

/** A response with a 5xx status. */
export interface ServerError {
  at: number;
  what: string;
  status: number;
  text: string;
}

export class Client {
  /** Where Curfew listens; undefined while it is down. */
  url: string | undefined;
  readonly serverErrors: ServerError[] = [];
  /** Requests that were repeated because there was no response. */
  repeated = 0;

  /** The first response. A 5xx is recorded and repeated. */
  async request(method: string, path: string, body?: unknown): Promise<ApiResponse> {
    return until(`a response to ${method} ${path}`, () => this.#try(method, path, body), WAIT_MS);
  }

  async #try(method: string, path: string, body?: unknown): Promise<ApiResponse | undefined> {
    if (this.url === undefined) return undefined;
    try {
      const response = await fetch(this.url + path, {
        method,
        headers: body === undefined ? {} : { "content-type": "application/json" },
        body: body === undefined ? null : JSON.stringify(body),
        signal: AbortSignal.timeout(45_000),
      });
      const text = await response.text();
      if (response.status >= 500) {
        this.serverErrors.push({ at: Date.now(), what: `${method} ${path}`, status: response.status, text });
        return undefined;
      }
      const isJson = response.headers.get("content-type") === "application/json";
      return { status: response.status, headers: response.headers, text, json: isJson ? JSON.parse(text) : undefined };
    } catch {
      this.repeated += 1;
      return undefined;
    }
  }

  async expect(statuses: number[], method: string, path: string, body?: unknown): Promise<any> {
    const response = await this.request(method, path, body);
    if (!statuses.includes(response.status)) throw new Error(`${method} ${path}: ${response.status} ${response.text}`);
    return response.json;
  }

  /** Sends a request that has an effect once. If only its response was lost, the repetition is a conflict. */
  async sendOnce(method: string, path: string, body: unknown): Promise<void> {
    await this.expect([200, 202, 409], method, path, body);
  }

  async start(workflowId: string, runId: string, input: unknown): Promise<void> {
    const run = await this.expect([200, 201], "POST", `/v1/workflows/${workflowId}/runs`, { run_id: runId, input });
    if (run.id !== runId) throw new Error(`started ${runId}, got ${run.id}`);
  }

  run(runId: string): Promise<RunView> {
    return this.expect([200], "GET", `/v1/runs/${runId}`);
  }

  ended(runId: string): Promise<RunView> {
    return until(
      `the end of run ${runId}`,
      async () => {
        const run: RunView = await this.expect([200], "GET", `/v1/runs/${runId}?wait_ms=20000`);
        return TERMINAL.includes(run.status) && run;
      },
      WAIT_MS,
    );
  }

  async tokens(runId: string): Promise<TokenView[]> {
    return (await this.expect([200], "GET", `/v1/runs/${runId}/tokens?limit=1000`)).items;
  }

  async events(runId: string): Promise<EventView[]> {
    return (await this.expect([200], "GET", `/v1/runs/${runId}/events?limit=1000`)).items;
  }

  async timeouts(runId: string): Promise<TimeoutView[]> {
    const { items } = await this.expect([200], "GET", `/v1/runs/${runId}/timeouts?limit=1000`);
    return Promise.all(items.map(({ recovery_path }: TimeoutView) => this.expect([200], "GET", recovery_path)));
  }

  /** Waits for a gate of the run. Reads the run itself, because lists may be stale; the gate has its token's number. */
  openGate(runId: string): Promise<string> {
    return until(
      `a gate of ${runId}`,
      async (): Promise<string | undefined> =>
        (await this.tokens(runId)).find(({ node_id }) => node_id === "review")?.id.replace("t", "g"),
      WAIT_MS,
      POLL_MS,
    );
  }
}
