// What calls take and return, by the name of the operation in the OpenAPI document. Types only.
import type { components, operations, paths } from "./api.ts";

type Schemas = components["schemas"];

export type Run = Schemas["Run"];
export type RunSummary = Schemas["RunSummary"];
export type RunStatus = Schemas["RunStatus"];
export type Token = Schemas["Token"];
export type RunEvent = Schemas["Event"];
export type Gate = Schemas["Gate"];
export type Timeout = Schemas["Timeout"];
export type TimeoutLine = Schemas["TimeoutLine"];
export type Notification = Schemas["Notification"];
export type Deliverable = Schemas["Deliverable"];
export type ResumeOptions = Schemas["ResumeOptions"];
export type Breaker = Schemas["Breaker"];
export type Identity = Schemas["Identity"];
export type Operation = Schemas["Operation"];
export type Problem = Schemas["Problem"];
export type StoredDocument = Schemas["StoredDocument"];
export type StoredDocumentVersion = Schemas["Document"];
export type DocumentSummary = Schemas["DocumentSummary"];
export type EventAnswer = Schemas["EventAnswer"];
export type StartBody = Schemas["StartBody"];
export type BatchItem = Schemas["BatchItem"];
export type BatchAnswer = Schemas["BatchAnswer"];
export type ApiErrorBody = Schemas["ErrorBody"];

/** A page of a list. */
export interface Page<Item> {
  items: Item[];
  /** Null on the last page. */
  next_cursor: string | null;
}

export type DocumentKind = "workflows" | "tasks" | "actions";
export type BulkControl = "cancel" | "pause" | "resume" | "extend" | "retry";

/** The progress of an attempt. It is no part of the history and has no `seq`. */
export type ProgressEvent = Schemas["Progress"] & { kind: "progress"; token_id: string; node_id: string; epoch: number };

/** What `watch` yields; `kind` says which. */
export type WatchEvent = RunEvent | ProgressEvent;

/** Of every call. */
export interface CallOptions {
  /** Ends the call, also between two attempts; its reason is thrown. */
  signal?: AbortSignal | undefined;
  /** The longest that the call may take with all its attempts. */
  timeout_ms?: number | undefined;
  /** How often the call is repeated at most. */
  retries?: number | undefined;
  /** Headers to add, e.g. `traceparent`. */
  headers?: Record<string, string> | undefined;
}

export type OperationId = keyof operations;

type Loose<T> = { [K in keyof T]: T[K] | undefined };

/** The query parameters of an operation. */
export type QueryOf<Id extends OperationId> = Loose<NonNullable<operations[Id]["parameters"]["query"]>>;

type JsonOf<T> = T extends { content: { "application/json": infer Body } } ? Body : never;

/** The body that an operation takes. */
export type BodyOf<Id extends OperationId> = JsonOf<NonNullable<operations[Id]["requestBody"]>>;

type Succeeded = 200 | 201 | 202;
type AnswerOfOperation<Op> = Op extends { responses: infer Responses } ? JsonOf<Responses[keyof Responses & Succeeded]> : never;

/** What an operation answers with. */
export type AnswerOf<Id extends OperationId> = AnswerOfOperation<operations[Id]>;

export type Method = "GET" | "PUT" | "POST" | "DELETE" | "PATCH";

/** The paths of the document that take `M`. */
export type PathOf<M extends Method> = {
  [P in keyof paths]: paths[P] extends Record<Lowercase<M>, { responses: unknown }> ? P : never;
}[keyof paths];

type OperationAt<M extends Method, P extends keyof paths> = paths[P] extends Record<Lowercase<M>, infer Op> ? Op : never;

/** What `request` answers with. */
export type AnswerAt<M extends Method, P extends keyof paths> = AnswerOfOperation<OperationAt<M, P>>;

type PartAt<Op, Name extends string> = Op extends { parameters: infer Parameters } ? (Name extends keyof Parameters ? Exclude<Parameters[Name], undefined> : never) : never;
type Part<Name extends string, Value> = [Value] extends [never] ? { [K in Name]?: undefined } : {} extends Value ? { [K in Name]?: Loose<Value> } : { [K in Name]: Value };
type BodyPart<Op> = Op extends { requestBody: { content: { "application/json": infer Body } } } ? { body: Body } : Op extends { requestBody?: infer Body } ? { body?: JsonOf<NonNullable<Body>> } : {};

/** What `request` takes for a path of the document. */
export type RequestAt<M extends Method, P extends keyof paths> = CallOptions &
  Repetition &
  Part<"path", PartAt<OperationAt<M, P>, "path">> &
  Part<"query", PartAt<OperationAt<M, P>, "query">> &
  BodyPart<OperationAt<M, P>>;

export interface Repetition {
  /** Whether the request may be sent again when it is unknown whether it took effect. By default only GET and PUT are. */
  repeatable?: boolean | undefined;
}

/** What `request` takes for a path that this version of the client does not know. */
export interface AnyRequest extends CallOptions, Repetition {
  path?: Record<string, string | number> | undefined;
  query?: Record<string, unknown> | undefined;
  body?: unknown;
}
