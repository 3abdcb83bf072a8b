// Somebody who uses Curfew while its process is killed under them: what got no answer is asked again, of whoever lives now.
import { until } from "../workerd/poll.ts";
import type { Answer } from "../workerd/harness.ts";
import type { EventView, RunView, TokenView } from "../workerd/wire.ts";

/** Nobody waits longer than this for one thing. */
export const PATIENCE_MS = 90_000;
/** Between two looks at a run: many looks are a load of their own. */
const GLANCE_MS = 300;
const TERMINAL = ["completed", "failed", "timed_out", "cancelled"];

/** An answer that is an error of the server's. */
export interface ServerError {
  at: number;
  what: string;
  status: number;
  text: string;
}

export class Client {
  /** Where Curfew listens; undefined while it is dead. */
  url: string | undefined;
  readonly serverErrors: ServerError[] = [];
  /** Requests that were asked again because nobody answered. */
  repeated = 0;

  /** The first answer there is. An error of the server's is noted, and asked again as anybody would. */
  async ask(method: string, path: string, body?: unknown): Promise<Answer> {
    return until(`an answer to ${method} ${path}`, () => this.#try(method, path, body), PATIENCE_MS);
  }

  async #try(method: string, path: string, body?: unknown): Promise<Answer | undefined> {
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
      return { status: response.status, headers: response.headers, text, json: JSON.parse(text) };
    } catch {
      this.repeated += 1;
      return undefined;
    }
  }

  async expect(statuses: number[], method: string, path: string, body?: unknown): Promise<any> {
    const answer = await this.ask(method, path, body);
    if (!statuses.includes(answer.status)) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
    return answer.json;
  }

  /** Says something that counts once. It may have been heard although the answer was lost: then it is a conflict now. */
  async heard(method: string, path: string, body: unknown): Promise<void> {
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
      PATIENCE_MS,
    );
  }

  async tokens(runId: string): Promise<TokenView[]> {
    return (await this.expect([200], "GET", `/v1/runs/${runId}/tokens?limit=1000`)).items;
  }

  async events(runId: string): Promise<EventView[]> {
    return (await this.expect([200], "GET", `/v1/runs/${runId}/events?limit=1000`)).items;
  }

  /** The gate of the run, once there is one: asked of the run itself, because lists may be behind. It has its token's number. */
  openGate(runId: string): Promise<string> {
    return until(
      `a gate of ${runId}`,
      async (): Promise<string | undefined> =>
        (await this.tokens(runId)).find(({ node_id }) => node_id === "review")?.id.replace("t", "g"),
      PATIENCE_MS,
      GLANCE_MS,
    );
  }
}
