// What the examples need of Curfew's API: store, start, decide, and wait for a condition. Each call is one request that any program
// can make; docs/api.md has all of them.

/**
 * @typedef {{status: number, headers: Headers, json: any, text: string}} Answer
 * @typedef {(method: string, path: string, body?: unknown, headers?: Record<string, string>) => Promise<Answer>} Api
 * @typedef {{id: string, node_id: string | null, prompt: any, choices: string[], reminded_at: number | null}} Gate
 */

const ENDED = ["completed", "failed", "timed_out", "cancelled"];
const REQUEST_WITHIN_MS = 45_000;
const LONG_POLL_MS = 20_000;

/**
 * Polls until `look` returns something other than undefined, null or false.
 * @template T
 * @param {string} what
 * @param {() => Promise<T> | T} look
 * @param {number} [deadlineMs]
 * @returns {Promise<NonNullable<Exclude<T, false>>>}
 */
export async function until(what, look, deadlineMs = 30_000) {
  const givenUpAt = Date.now() + deadlineMs;
  for (;;) {
    const seen = await look();
    if (seen !== undefined && seen !== null && seen !== false) return /** @type {any} */ (seen);
    if (Date.now() > givenUpAt) throw new Error(`waited ${deadlineMs} ms in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

/** @param {string} url @returns {Api} */
export const httpApi = (url) => async (method, path, body, headers = {}) => {
  const reply = await fetch(url + path, {
    method,
    headers: body === undefined ? headers : { ...headers, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(REQUEST_WITHIN_MS),
  });
  const text = await reply.text();
  return { status: reply.status, headers: reply.headers, text, json: parsed(text) };
};

/** Curfew, as one caller sees it. */
export class Client {
  #api;
  #tokens;
  #caller;

  /**
   * @param {Api} api
   * @param {Record<string, string>} [tokens] the token of each caller; without tokens Curfew is in development and takes the name `by`
   * @param {string} [caller]
   */
  constructor(api, tokens = {}, caller = "demo") {
    this.#api = api;
    this.#tokens = tokens;
    this.#caller = caller;
  }

  /** The same Curfew for another caller. @param {string} caller */
  as(caller) {
    return new Client(this.#api, this.#tokens, caller);
  }

  /** @param {string} method @param {string} path @param {unknown} [body] @param {Record<string, string>} [headers] */
  request(method, path, body, headers = {}) {
    const token = this.#tokens[this.#caller] ?? this.#tokens["demo"];
    return this.#api(method, path, body, token === undefined ? headers : { ...headers, authorization: `Bearer ${token}` });
  }

  /** @param {string} method @param {string} path @param {unknown} [body] */
  async #expect(method, path, body) {
    const answer = await this.request(method, path, body);
    if (answer.status < 300) return answer.json;
    throw new Error(`${method} ${path} was answered with ${answer.status}: ${answer.json?.error?.message ?? answer.text}`);
  }

  /** @param {{id: string}} workflow */
  store(workflow) {
    return this.#expect("PUT", `/v1/workflows/${workflow.id}`, workflow);
  }

  /** @param {string} workflowId @param {unknown} input @param {object} [more] e.g. `timeout_ms` @returns {Promise<string>} the run's id */
  async start(workflowId, input, more = {}) {
    return (await this.#expect("POST", `/v1/workflows/${workflowId}/runs`, { input, by: this.#caller, ...more })).id;
  }

  /** Reports an event, which starts every workflow with that trigger, once for a key. @param {string} event @param {unknown} payload @param {string} key */
  publish(event, payload, key) {
    return this.request("POST", `/v1/events/${event}`, payload, { "idempotency-key": key });
  }

  /** @param {string} runId */
  run(runId) {
    return this.#expect("GET", `/v1/runs/${runId}`);
  }

  /** @param {string} runId @returns {Promise<any>} the run, once it has ended */
  ended(runId) {
    return until(
      `the end of run ${runId}`,
      async () => {
        const run = await this.#expect("GET", `/v1/runs/${runId}?wait_ms=${LONG_POLL_MS}`);
        return ENDED.includes(run.status) && run;
      },
      60_000,
    );
  }

  /** The gate that a run has opened, at a node or for the whole run. @param {string} runId @param {string | null} nodeId @returns {Promise<Gate>} */
  openGate(runId, nodeId) {
    return until(`a gate of ${nodeId ?? "the run"}`, async () => {
      const { items } = await this.#expect("GET", "/v1/gates?limit=1000");
      return items.find((/** @type {any} */ gate) => gate.run_id === runId && (gate.node_id ?? null) === nodeId);
    });
  }

  /** @param {string} runId @param {Gate} gate @param {{choice: string, input?: unknown, comment?: string}} decision @returns {Promise<Answer>} */
  decide(runId, gate, decision) {
    return this.request("POST", `/v1/runs/${runId}/gates/${gate.id}`, { ...decision, by: this.#caller });
  }

  /** Waits for the gate and decides it. @param {string} runId @param {string | null} nodeId @param {{choice: string, input?: unknown, comment?: string}} decision */
  async decideNext(runId, nodeId, decision) {
    const gate = await this.openGate(runId, nodeId);
    await this.#expect("POST", `/v1/runs/${runId}/gates/${gate.id}`, { ...decision, by: this.#caller });
    return gate;
  }

  /** @param {string} runId @returns {Promise<any[]>} */
  async tokens(runId) {
    return (await this.#expect("GET", `/v1/runs/${runId}/tokens?limit=1000`)).items;
  }

  /** @param {string} runId @param {string[]} kinds @returns {Promise<any[]>} */
  async events(runId, ...kinds) {
    const { items } = await this.#expect("GET", `/v1/runs/${runId}/events?limit=1000`);
    return items.filter((/** @type {any} */ event) => kinds.length === 0 || kinds.includes(event.kind));
  }

  /** @param {string} runId @returns {Promise<any[]>} */
  async timeouts(runId) {
    return (await this.#expect("GET", `/v1/runs/${runId}/timeouts`)).items;
  }
}

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
