// The TypeScript client of Curfew, for Node, browsers and Workers. It uses `fetch`, streams, `AbortSignal` and `URL`, and nothing else.
export { createClient, pages, type Client } from "./client.ts";
export { choice, defineWorkflow, stored, type ActionDocument, type ChoiceCondition, type DefinedWorkflow, type StoredId, type TaskDocument, type WorkflowDocument } from "./define.ts";
export * from "./errors.ts";
export type * from "./binding.ts";
export type { WatchKind, WatchOptions } from "./live.ts";
export type { ClientOptions, Fetch } from "./transport.ts";
export type * from "./types.ts";
export type { components, operations, paths } from "./api.ts";
