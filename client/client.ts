// The calls of the API as methods. Each is one line, so that the OpenAPI types decide what it takes and returns.
import type { paths } from "./api.ts";
import { watch, type WatchKind, type WatchOptions } from "./live.ts";
import { jsonOf, transport, type ClientOptions } from "./transport.ts";
import type {
  AnswerAt,
  AnswerOf,
  AnyRequest,
  BatchItem,
  BodyOf,
  BulkControl,
  CallOptions,
  DocumentKind,
  Method,
  OperationId,
  Page,
  PathOf,
  QueryOf,
  RequestAt,
  StartBody,
  WatchEvent,
} from "./types.ts";

/** Query parameters and the options of the call, in one object. */
type With<Id extends OperationId> = QueryOf<Id> & CallOptions;

/** The body of a bulk operation. */
type BulkBody<Control extends BulkControl> = BodyOf<`${Control}Runs`>;

export type Client = ReturnType<typeof createClient>;

export function createClient(options: ClientOptions = {}) {
  const send = transport(options);

  /** Typed for every path of the OpenAPI document; any other path is taken, too. */
  function request<M extends Method, P extends PathOf<M>>(method: M, path: P, options?: RequestAt<M, P>): Promise<AnswerAt<M, P>>;
  function request<Answer = unknown, P extends string = string>(method: string, path: P extends keyof paths ? never : P, options?: AnyRequest): Promise<Answer>;
  function request(method: string, path: string, options: AnyRequest = {}): Promise<unknown> {
    return send(method, path, options, jsonOf);
  }

  /** Query parameters and the options of a call apart. */
  const call = <Answer>(method: Method, path: string, values: Record<string, string | number>, given: object = {}, more: AnyRequest = {}): Promise<Answer> => {
    const { signal, timeout_ms, retries, headers, ...query } = given as CallOptions;
    return send(method, path, { signal, timeout_ms, retries, ...more, headers: { ...headers, ...more.headers }, path: values, query }, jsonOf);
  };
  const read = <Id extends OperationId>(path: string, values: Record<string, string | number>, given?: object) => call<AnswerOf<Id>>("GET", path, values, given);
  const control = <Id extends OperationId>(name: string, run_id: string, body: unknown, given?: object, repeatable = false) =>
    call<AnswerOf<Id>>("POST", `/v1/runs/{run_id}/${name}`, { run_id }, given, { body: body ?? {}, repeatable });

  return {
    request,

    /** As `request`, for answers that are not JSON. The body is not read. */
    raw: (method: Method, path: string, options: AnyRequest = {}): Promise<Response> => send(method, path, options, (response) => response),

    /** Starts a run. Without a `run_id` a random one is sent, so that the start can be repeated. */
    start: (workflow_id: string, body: StartBody = {}, options?: With<"startRun">) =>
      call<AnswerOf<"startRun">>("POST", "/v1/workflows/{workflow_id}/runs", { workflow_id }, options, { body: withRunId(body), repeatable: true }),
    /** Starts up to 100 runs, each with an outcome of its own. */
    startMany: (items: BatchItem[], options?: CallOptions) =>
      call<AnswerOf<"startBatch">>("POST", "/v1/runs:batch", {}, options, { body: { items: items.map(withRunId) }, repeatable: true }),

    run: (run_id: string, options?: With<"readRun">) => read<"readRun">("/v1/runs/{run_id}", { run_id }, options),
    runs: (filter?: With<"listRuns">) => read<"listRuns">("/v1/runs", {}, filter),
    tokens: (run_id: string, page?: With<"listTokens">) => read<"listTokens">("/v1/runs/{run_id}/tokens", { run_id }, page),
    events: (run_id: string, page?: With<"listEvents">) => read<"listEvents">("/v1/runs/{run_id}/events", { run_id }, page),
    timeouts: (run_id: string, page?: With<"listTimeouts">) => read<"listTimeouts">("/v1/runs/{run_id}/timeouts", { run_id }, page),
    timeout: (run_id: string, n: number, options?: CallOptions) => read<"readTimeout">("/v1/runs/{run_id}/timeouts/{n}", { run_id, n }, options),
    notifications: (run_id: string, page?: With<"listNotifications">) => read<"listNotifications">("/v1/runs/{run_id}/notifications", { run_id }, page),
    deliverable: (run_id: string, options?: CallOptions) => read<"readDeliverable">("/v1/runs/{run_id}/deliverable", { run_id }, options),
    resumeOptions: (run_id: string, options?: CallOptions) => read<"readResumeOptions">("/v1/runs/{run_id}/resume", { run_id }, options),
    gates: (page?: With<"listGates">) => read<"listGates">("/v1/gates", {}, page),
    /** What the credential of this client may do. */
    me: (options?: CallOptions) => read<"readIdentity">("/v1/me", {}, options),
    breakers: (page?: With<"listBreakers">) => read<"listBreakers">("/v1/breakers", {}, page),
    operation: (operation_id: string, options?: CallOptions) => read<"readOperation">("/v1/operations/{operation_id}", { operation_id }, options),

    cancel: (run_id: string, body?: BodyOf<"cancelRun">, options?: CallOptions) => control<"cancelRun">("cancel", run_id, body, options, true),
    pause: (run_id: string, body?: BodyOf<"pauseRun">, options?: CallOptions) => control<"pauseRun">("pause", run_id, body, options, true),
    resume: (run_id: string, body?: BodyOf<"resumeRun">, options?: CallOptions) => control<"resumeRun">("resume", run_id, body, options),
    /** `until` is repeated where it is safe; `by` and `by_ms` would extend twice. */
    extend: (run_id: string, body: BodyOf<"extendRun">, options?: CallOptions) => control<"extendRun">("extend", run_id, body, options, body.until != null),
    retry: (run_id: string, body: BodyOf<"retryRun">, options?: CallOptions) => control<"retryRun">("retry", run_id, body, options),
    restart: (run_id: string, body?: BodyOf<"restartRun">, options?: CallOptions) => control<"restartRun">("restart", run_id, body, options),
    signal: (run_id: string, name: string, payload?: unknown, options?: CallOptions) =>
      call<AnswerOf<"signalRun">>("POST", "/v1/runs/{run_id}/signals/{name}", { run_id, name }, options, { body: payload ?? {} }),
    decide: (run_id: string, gate_id: string, body: BodyOf<"decideGate">, options?: CallOptions) =>
      call<AnswerOf<"decideGate">>("POST", "/v1/runs/{run_id}/gates/{gate_id}", { run_id, gate_id }, options, { body }),
    resetBreaker: (key: string, body?: BodyOf<"resetBreaker">, options?: CallOptions) =>
      call<AnswerOf<"resetBreaker">>("POST", "/v1/breakers/{key}/reset", { key }, options, { body: body ?? {}, repeatable: true }),
    /** One control for many runs, in the background; `operation` says how far it is. */
    bulk: <Control extends BulkControl>(control: Control, body: BulkBody<Control>, options?: CallOptions) =>
      call<AnswerOf<"cancelRuns">>("POST", `/v1/runs:${control}`, {}, options, { body }),

    put: <Document extends { id: string }>(kind: DocumentKind, document: Document, options?: CallOptions) =>
      call<AnswerOf<"putWorkflow">>("PUT", `/v1/${kind}/{id}`, { id: document.id }, options, { body: document }),
    read: (kind: DocumentKind, id: string, options?: With<"readWorkflow">) => read<"readWorkflow">(`/v1/${kind}/{id}`, { id }, options),
    list: (kind: DocumentKind, page?: With<"listWorkflows">) => read<"listWorkflows">(`/v1/${kind}`, {}, page),

    /** Reports an event. Without a `key` a random one is sent, so that it can be repeated. */
    publish: (name: string, payload?: unknown, { key = randomId(), ...options }: CallOptions & { key?: string | undefined } = {}) =>
      call<AnswerOf<"publishEvent">>("POST", "/v1/events/{name}", { name }, options, { body: payload ?? {}, repeatable: true, headers: { "idempotency-key": key } }),

    pages,

    /** The events of a run as they are committed, its history first. It ends when the run has ended. */
    watch: <Kind extends WatchKind = WatchKind>(run_id: string, options: WatchOptions<Kind> = {}) =>
      watch(send, run_id, options) as AsyncGenerator<Narrow<WatchEvent, Kind>, void, undefined>,
  };
}

type Narrow<Event extends WatchEvent, Kind> = Event extends { kind: "progress" } ? ("progress" extends Kind ? Event : never) : Exclude<Kind, "progress"> extends never ? never : Event & { kind: Kind };

/** All items of a list: `pages((page) => client.runs({ status: ["failed"], ...page }))`. */
export async function* pages<Item>(call: (page: { cursor?: string }) => Promise<Page<Item>>): AsyncGenerator<Item, void, undefined> {
  let cursor: string | null | undefined;
  do {
    const page: Page<Item> = await call(cursor ? { cursor } : {});
    yield* page.items;
    cursor = page.next_cursor;
  } while (cursor);
}

const withRunId = <Start extends StartBody>(start: Start): Start => (start.run_id ? start : { ...start, run_id: randomId() });

/** Not `randomUUID`, which browsers have over https only. */
const randomId = (): string => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
