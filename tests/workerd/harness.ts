// Starts Curfew in workerd as it is deployed, as one Worker or as two: same entry, same wasm, same bindings, loopback only.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Log, LogLevel, Miniflare, type MiniflareOptions, type WorkerdStructuredLog } from "miniflare";
import { checkAnswer, isKnownPath } from "./contract.ts";
import { recordData, recordLine, recordSecret } from "./log-check.ts";
import { until } from "./poll.ts";
import { checkReplays, ENDED_RUNS } from "./replay-check.ts";
import type { EventView, RunView, TimeoutView, TokenView } from "./api-types.ts";

export const root = fileURLToPath(new URL("../..", import.meta.url));

/** The same as in wrangler.toml; configuration.test.ts compares them. */
export const compatibility = { compatibilityDate: "2026-11-01", compatibilityFlags: ["enable_request_signal", "global_fetch_strictly_public"] };

type WorkerOptions = MiniflareOptions["workers"][number];
type Manifest = NonNullable<WorkerOptions["config"]["manifest"]>;
type Bindings = NonNullable<WorkerOptions["config"]["env"]>;

export interface CurfewOptions {
  /** The executor is a Worker of its own. */
  separateExecutor?: boolean;
  /** Variables of the coordinator, e.g. CURFEW_TOKENS. */
  vars?: Record<string, string>;
  /** An object is a variable of JSON, as in a wrangler file. */
  executorVars?: Record<string, string | Record<string, string[]>>;
  /** Gives the executor an AI binding that sends requests to this URL. */
  models?: string;
  /** A JavaScript file that replaces the executor. */
  executor?: string;
  /** A JavaScript file that wraps the coordinator's entry. */
  entry?: string;
  /** Bindings to add to the coordinator. */
  bindings?: Bindings;
  /** Bindings to remove from the coordinator. */
  without?: readonly string[];
  /** Workers that are bound to the executor, by binding name. ECHO is always bound. */
  services?: Record<string, string>;
  /** Removes the breaker binding from the executor. */
  withoutBreakers?: boolean;
  /** Its runs are not replayed: something happens to them that no history has, or the test takes the database away. */
  unreplayed?: boolean;
  /** Answers are not compared with the OpenAPI document: for measurements, which it would slow down. */
  unchecked?: boolean;
  /** A directory for persistent storage; without it `dispose` deletes everything. */
  persistTo?: string;
  /** Other Workers in the same process, e.g. for the bench. The first Worker is always the coordinator. */
  extraWorkers?: WorkerOptions[];
}

export interface ApiResponse {
  status: number;
  headers: Headers;
  text: string;
  /** The parsed body; undefined if it is not JSON. */
  json: any;
}

export interface Curfew {
  url: string;
  /** The console output of the Workers. */
  logs: string[];
  miniflare: Miniflare;
  /** `body`: a string is sent as it is, anything else as JSON. Throws if the answer breaks the OpenAPI document. */
  api(method: string, path: string, body?: unknown, token?: string): Promise<ApiResponse>;
  /** Stores a workflow; throws the response if it is refused. */
  store(workflow: { id: string }): Promise<number>;
  /** Starts a run and returns its id. */
  start(workflowId: string, input?: unknown, more?: Record<string, unknown>): Promise<string>;
  /** Stores the workflows in order, children first, and starts a run of the last. */
  storeAndStart(workflows: { id: string }[], input?: unknown): Promise<string>;
  /** The current view of the run. */
  run(runId: string): Promise<RunView>;
  /** Waits until the run has ended. */
  ended(runId: string, deadlineMs?: number): Promise<RunView>;
  /** store + start + ended. */
  runToEnd(workflow: { id: string }, input?: unknown, more?: Record<string, unknown>): Promise<RunView>;
  /** All tokens, of all pages. */
  tokens(runId: string): Promise<TokenView[]>;
  /** The events of the run, of the given kinds or all. */
  events(runId: string, ...kinds: string[]): Promise<EventView[]>;
  /** Sends a RunRequest from inside straight to the run's object, as only Workers of the deployment can. */
  sendToRun(runId: string, request: unknown, url?: string): Promise<ApiResponse>;
  /** All timeout records, in full. */
  timeouts(runId: string): Promise<TimeoutView[]>;
  /** Everything the API shows of a run, and all logs. */
  visibleText(runId: string): Promise<string>;
  /** The log lines with this `event`. */
  logLines(event: string): any[];
  /** Runs a statement in D1. */
  sql(statement: string, bindings?: unknown[]): Promise<any[]>;
  dispose(): Promise<void>;
}

/** Loopback only, without any traffic of miniflare itself. */
export const localOptions = {
  host: "127.0.0.1",
  port: 0,
  cf: false,
  telemetry: { enabled: false },
  enableDevRegistry: false,
  logRequests: false,
  // A cron is a request to /cdn-cgi/local/scheduled.
  unsafeTriggerHandlers: true,
} as const;

/** One token for each role; `roleVars` configures them. */
export const READ = "read-token-0123456789";
export const OPERATE = "operate-token-0123456789";
export const ADMIN = "admin-token-0123456789";
export const roleVars = { CURFEW_TOKENS: JSON.stringify({ [READ]: "read", [OPERATE]: "operate", [ADMIN]: "admin" }) };

const EXECUTOR = "curfew-executor";
const TERMINAL = ["completed", "failed", "timed_out", "cancelled"];

/** What a request carries for a run. */
const DATA_PATHS = /\/(signals|callbacks|events|gates)\/[^/]+$/;

/** Records the inputs in a request, and what the response shows of a run's data. */
function recordExchange(path: string, body: unknown, response: unknown): void {
  const sent = parsedBody(body);
  recordData(DATA_PATHS.test(path) ? { ...sent, choice: undefined, by: undefined } : [sent?.input, sent?.reason, sent?.items?.map?.((item: any) => item?.input)]);
  const seen = response as any;
  for (const view of [seen, ...(Array.isArray(seen?.items) ? seen.items : [])]) recordData([view?.input, view?.output, view?.context, view?.partial_artifacts]);
}

function parsedBody(body: unknown): any {
  return typeof body === "string" ? parsed(body) : body;
}

/** The configured secrets, and the tokens of callers. */
function recordSecrets({ vars = {}, executorVars = {} }: CurfewOptions): void {
  for (const token of Object.keys(parsed(vars["CURFEW_TOKENS"] ?? "{}") ?? {})) recordSecret(token);
  const declared = executorVars["CURFEW_SECRETS"];
  const names = typeof declared === "string" ? (declared.match(/[A-Z][A-Z0-9_]*/g) ?? []) : Object.keys(declared ?? {});
  for (const name of names) {
    const value = executorVars[name];
    if (typeof value === "string") recordSecret(value);
  }
}

export async function startCurfew(options: CurfewOptions = {}): Promise<Curfew> {
  const logs: string[] = [];
  recordSecrets(options);
  const miniflare = new Miniflare({
    ...localOptions,
    log: new Log(LogLevel.ERROR),
    handleStructuredLogs: ({ level, message }: WorkerdStructuredLog) => {
      logs.push(message);
      recordLine(message);
      if (process.env["CURFEW_TEST_LOGS"]) console.error(`[${level}] ${message}`);
    },
    ...(options.persistTo ? { resourcePersistencePath: options.persistTo } : {}),
    workers: [
      ...(isSeparate(options) ? [coordinator(options), separateExecutor(options)] : [oneWorker(options)]),
      moduleWorker("echo", "tests/workerd/workers/echo.mjs"),
      ...(options.extraWorkers ?? []),
    ],
  });
  const url = (await miniflare.ready).origin;
  await applyMigrations(miniflare);

  // An entry or a Worker of a test may have paths of its own.
  const hasOthers = options.entry !== undefined || options.extraWorkers !== undefined;
  const isChecked = (path: string) => !options.unchecked && (!hasOthers || isKnownPath(path));

  const api: Curfew["api"] = async (method, path, body, token) => {
    const headers: Record<string, string> = {};
    if (body !== undefined) headers["content-type"] = "application/json";
    if (token !== undefined) headers["authorization"] = `Bearer ${token}`;
    const reply = await fetch(url + path, {
      method,
      headers,
      body: body === undefined ? null : typeof body === "string" ? body : JSON.stringify(body),
      // Longer than the longest wait of the API.
      signal: AbortSignal.timeout(45_000),
    });
    const text = await reply.text();
    if (isChecked(path)) checkAnswer(method, path, { status: reply.status, headers: reply.headers, text });
    const json = parsed(text);
    recordExchange(path, body, json);
    return { status: reply.status, headers: reply.headers, text, json };
  };

  const expectStatus = (response: ApiResponse, wanted: number[], what: string): ApiResponse => {
    if (wanted.includes(response.status)) return response;
    throw new Error(`${what}: wanted ${wanted.join(" or ")}, got ${response.status} ${response.text}`);
  };

  const store: Curfew["store"] = async (workflow) => {
    const response = await api("PUT", `/v1/workflows/${workflow.id}`, workflow);
    return expectStatus(response, [200, 201], `store ${workflow.id}`).json.version;
  };
  const start: Curfew["start"] = async (workflowId, input = {}, more = {}) => {
    const response = await api("POST", `/v1/workflows/${workflowId}/runs`, { input, ...more });
    return expectStatus(response, [200, 201], `start ${workflowId}`).json.id;
  };
  const ended: Curfew["ended"] = async (runId, deadlineMs = 40_000) =>
    until(
      `the end of run ${runId}`,
      async () => {
        const response = await api("GET", `/v1/runs/${runId}?wait_ms=20000`);
        const run: RunView = expectStatus(response, [200], `read run ${runId}`).json;
        return TERMINAL.includes(run.status) && run;
      },
      deadlineMs,
    );

  const sql: Curfew["sql"] = async (statement, bindings = []) => {
    const database = await miniflare.getD1Database("DB", "curfew");
    return (await database.prepare(statement).bind(...bindings).all()).results;
  };

  const timeouts: Curfew["timeouts"] = async (runId) => {
    const { json } = await api("GET", `/v1/runs/${runId}/timeouts`);
    return Promise.all(json.items.map(async ({ recovery_path }: TimeoutView) => (await api("GET", recovery_path)).json));
  };

  return {
    url,
    logs,
    miniflare,
    api,
    store,
    start,
    storeAndStart: async (workflows, input) => {
      for (const workflow of workflows) await store(workflow);
      return start(workflows.at(-1)!.id, input);
    },
    run: async (runId) => expectStatus(await api("GET", `/v1/runs/${runId}`), [200], `read run ${runId}`).json,
    ended,
    runToEnd: async (workflow, input, more) => {
      await store(workflow);
      return ended(await start(workflow.id, input, more));
    },
    tokens: async (runId) => {
      const tokens: TokenView[] = [];
      for (let cursor: string | null = "0"; cursor !== null; ) {
        const page = await api("GET", `/v1/runs/${runId}/tokens?cursor=${cursor}`);
        tokens.push(...expectStatus(page, [200], "tokens").json.items);
        cursor = page.json.next_cursor;
      }
      return tokens;
    },
    events: async (runId, ...kinds) => {
      const page = expectStatus(await api("GET", `/v1/runs/${runId}/events?limit=1000`), [200], "events");
      const events: EventView[] = page.json.items;
      return events.filter((event) => kinds.length === 0 || kinds.includes(event.kind));
    },
    sendToRun: async (runId, request, url = "http://run/requests/2") => {
      const runs = (await miniflare.getBindings<{ RUNS: any }>("curfew")).RUNS;
      const object = runs.get(runs.idFromName(runId));
      const response: Response = await object.fetch(url, { method: "POST", body: JSON.stringify({ request }) });
      const text = await response.text();
      return { status: response.status, headers: response.headers, text, json: parsed(text) };
    },
    timeouts,
    visibleText: async (runId) => {
      const paths = ["", "/tokens", "/events?limit=1000", "/timeouts", "/resume", "/deliverable", "/notifications"];
      const responses = await Promise.all(paths.map((path) => api("GET", `/v1/runs/${runId}${path}`)));
      return [...responses.map(({ text }) => text), JSON.stringify(await timeouts(runId)), ...logs].join("\n");
    },
    logLines: (event) => logs.flatMap((line) => (line.includes(`"event":"${event}"`) ? [JSON.parse(line)] : [])),
    sql,
    dispose: async () => {
      try {
        if (!options.unchecked && !options.unreplayed) await checkReplays(api, (await sql(ENDED_RUNS)).map(({ id }) => id), readerOf(options));
      } finally {
        await miniflare.dispose();
      }
    },
  };
}

/** A token of the options that may read every run. */
function readerOf({ vars = {} }: CurfewOptions): string | undefined {
  const tokens: Record<string, unknown> = (parsed(vars["CURFEW_TOKENS"] ?? "{}") as any) ?? {};
  return Object.keys(tokens).find((token) => typeof tokens[token] === "string" && !token.startsWith("sha256:"));
}

/** A test that replaces the executor, or removes its binding, needs one. CURFEW_TEST_SEPARATE runs every test with one. */
const isSeparate = ({ separateExecutor, executor, without = [] }: CurfewOptions): boolean =>
  separateExecutor ?? (executor !== undefined || without.includes("EXECUTOR") || process.env["CURFEW_TEST_SEPARATE"] === "on");

function oneWorker(options: CurfewOptions): WorkerOptions {
  const { config } = coordinator(options);
  const { CURFEW_ROLE: _, EXECUTOR: __, BREAKERS: ___, ...bindings } = config.env!;
  return {
    config: {
      ...config,
      manifest: manifestOf(options.entry ?? (options.models ? WITH_AI : undefined)),
      env: { ...executorBindings(options), ...bindings, ...(options.withoutBreakers ? {} : { BREAKERS: breakersOf("curfew") }) },
      exports: { ...config.exports, BreakerObject: { type: "durable-object", storage: "sqlite" } },
    },
  };
}

const breakersOf = (worker: string) => ({ type: "durable-object", worker, exportName: "BreakerObject" }) as const;

/** The coordinator of a separate executor. */
function coordinator({ vars = {}, executor, entry, bindings: more = {}, without = [] }: CurfewOptions): WorkerOptions {
  const bindings: Bindings = {
    ...variableBindings({ CURFEW_ROLE: "coordinator", ...developmentUnless(vars), ...vars }),
    RUNS: { type: "durable-object", worker: "curfew", exportName: "RunObject" },
    // A replacement of the executor has no breakers.
    ...(executor === undefined ? { BREAKERS: breakersOf(EXECUTOR) } : {}),
    DB: { type: "d1", id: "curfew" },
    EXECUTOR: { type: "worker", worker: EXECUTOR },
    INDEX_QUEUE: { type: "queue", name: "curfew-index" },
    TASK_QUEUE: { type: "queue", name: "curfew-tasks" },
    ...more,
  };
  return {
    config: {
      name: "curfew",
      ...compatibility,
      manifest: manifestOf(entry),
      env: Object.fromEntries(Object.entries(bindings).filter(([name]) => !without.includes(name))),
      exports: { RunObject: { type: "durable-object", storage: "sqlite" } },
      // The task queue always exists; CURFEW_QUEUE decides whether it is used.
      triggers: [
        { type: "queue", name: "curfew-index", maxBatchSize: 100, maxBatchTimeout: 0 },
        { type: "queue", name: "curfew-tasks", maxBatchSize: 10, maxBatchTimeout: 0, maxRetries: 10 },
        { type: "scheduled", schedule: "* * * * *" },
      ],
    },
  };
}

/** Without tokens the tests are a program of this machine in development. */
const developmentUnless = (vars: Record<string, string>): Record<string, string> => ("CURFEW_TOKENS" in vars ? {} : { CURFEW_DEV: "on" });

function executorBindings({ executorVars = {}, models, services = {} }: CurfewOptions): Bindings {
  return {
    // The peers of the tests listen on loopback.
    ...variableBindings({ CURFEW_ALLOW_PRIVATE: "on", ...(models ? { MODELS: models } : {}), ...executorVars }),
    ...Object.fromEntries(Object.entries({ ECHO: "echo", ...services }).map(([name, worker]) => [name, { type: "worker", worker }])),
    INDEX_QUEUE: { type: "queue", name: "curfew-index" },
  };
}

function separateExecutor(options: CurfewOptions): WorkerOptions {
  if (options.executor) return moduleWorker(EXECUTOR, options.executor);
  return {
    config: {
      name: EXECUTOR,
      ...compatibility,
      manifest: manifestOf(options.models ? WITH_AI : undefined),
      env: {
        ...variableBindings({ CURFEW_ROLE: "executor" }),
        ...executorBindings(options),
        ...(options.withoutBreakers ? {} : { BREAKERS: breakersOf(EXECUTOR) }),
      },
      exports: { BreakerObject: { type: "durable-object", storage: "sqlite" } },
    },
  };
}

/** A Worker that consists of one JavaScript file of the repository. */
export function moduleWorker(name: string, path: string, config: Partial<WorkerOptions["config"]> = {}): WorkerOptions {
  const contents = readFileSync(join(root, path), "utf8");
  // Replacements of the executor import these.
  const modules = { [path]: { type: "esm" as const, contents }, ...executorProtocolModules() };
  return {
    config: { name, ...compatibility, manifest: { mainModule: path, modulesRoot: root, modules }, ...config },
  };
}

/** The modules that coordinator and executor communicate with. */
export function executorProtocolModules(): Manifest["modules"] {
  const directory = "src/worker/platform";
  const paths = readdirSync(join(root, directory)).filter((name) => name.endsWith(".mjs")).map((name) => `${directory}/${name}`);
  return Object.fromEntries(paths.map((path) => [path, { type: "esm", contents: readFileSync(join(root, path), "utf8") }]));
}

/** Curfew, wrapped in an entry of the tests if there is one. */
function manifestOf(wrapper?: string): Manifest {
  const manifest = curfewManifest();
  if (wrapper === undefined) return manifest;
  const contents = readFileSync(join(root, wrapper), "utf8");
  return { ...manifest, mainModule: wrapper, modules: { ...manifest.modules, [wrapper]: { type: "esm", contents } } };
}

function curfewManifest(): Manifest {
  const text = (path: string) => readFileSync(join(root, path), "utf8");
  return {
    mainModule: "src/worker/entry.mjs",
    modulesRoot: root,
    modules: {
      "src/worker/entry.mjs": { type: "esm", contents: text("src/worker/entry.mjs") },
      ...executorProtocolModules(),
      "build/index.js": { type: "esm", contents: text("build/index.js") },
      "build/index_bg.wasm": { type: "wasm", contents: new Uint8Array(readFileSync(join(root, "build/index_bg.wasm"))) },
    },
  };
}

/** Adds an AI binding to the executor's environment: workerd has none. */
const WITH_AI = "tests/workerd/workers/with-ai.mjs";

function variableBindings(vars: Record<string, string | Record<string, string[]>>): Bindings {
  return Object.fromEntries(Object.entries(vars).map(([name, value]) => [name, typeof value === "string" ? { type: "text", value } : { type: "json", value }]));
}

async function applyMigrations(miniflare: Miniflare): Promise<void> {
  const database = await miniflare.getD1Database("DB", "curfew");
  const tables = await database.prepare("SELECT name FROM sqlite_master WHERE name = 'definitions'").all();
  if (tables.results.length > 0) return; // restarted with persistent storage
  const files = readdirSync(join(root, "migrations")).filter((name) => name.endsWith(".sql")).sort();
  const sql = files.map((name) => readFileSync(join(root, "migrations", name), "utf8").replace(/--.*$/gm, ""));
  const statements = sql.join(";").split(";").filter((statement) => statement.trim() !== "");
  await database.batch(statements.map((statement) => database.prepare(statement)));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
