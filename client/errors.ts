// Errors of calls: a class for each kind of refusal, chosen by the code.
import type { ApiErrorBody, Problem } from "./types.ts";

export type ApiErrorCode = ApiErrorBody["code"];

/** The code of a lost connection, of a passed deadline, or of an answer that is not Curfew's. */
export type LocalErrorCode = "connection_lost" | "deadline_passed" | "unexpected_response";
export type ErrorCode = ApiErrorCode | LocalErrorCode;

type AllDetails = NonNullable<ApiErrorBody["details"]>;
type DetailsWith<Keys> = Extract<AllDetails, Keys>;

/** What `details` has, by the code. */
export type ErrorDetails<Code extends ErrorCode> = Code extends "invalid_document" | "invalid_input"
  ? Problem[]
  : Code extends "gate_closed"
    ? DetailsWith<{ decision: unknown }>
    : Code extends "decision_needed"
      ? DetailsWith<{ gate_id: unknown }>
      : Code extends "version_does_not_fit"
        ? DetailsWith<{ reason: string }[]>
        : AllDetails;

export interface ErrorParts<Code extends ErrorCode> {
  code: Code;
  message: string;
  pointer?: string | undefined;
  details?: ErrorDetails<Code> | undefined;
}

/** Every error of a call. */
export class CurfewError<Code extends ErrorCode = ErrorCode> extends Error {
  readonly code: Code;
  /** The HTTP status; 0 without an answer. */
  readonly status: number;
  /** Where in the body the problem is: a JSON pointer. */
  readonly pointer: string | undefined;
  readonly details: ErrorDetails<Code> | undefined;
  /** How long to wait before the request is repeated, in milliseconds, where the answer says so. */
  readonly retryAfter: number | undefined;

  constructor(status: number, { code, message, pointer, details }: ErrorParts<Code>, retryAfter?: number, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    // Not the name of the class, which a minifier changes.
    this.name = "CurfewError";
    this.code = code;
    this.status = status;
    this.pointer = pointer;
    this.details = details;
    this.retryAfter = retryAfter;
  }
}

/** The credential is missing, wrong or not enough, or the deployment has none. */
export class AuthError extends CurfewError<
  "unauthorized" | "forbidden" | "four_eyes" | "not_local" | "cross_origin" | "auth_not_configured"
> {}

/** There is no such run, document, gate, signal or path. */
export class NotFoundError extends CurfewError<"not_found" | "unknown_signal"> {}

/** The request is wrong: the same one is refused again. */
export class InvalidError extends CurfewError<
  | "invalid_json"
  | "invalid_request"
  | "invalid_document"
  | "invalid_input"
  | "method_not_allowed"
  | "body_too_large"
  | "unsupported_media_type"
  | "over_hard_limit"
  | "under_minimum"
  | "no_public_url"
  | "limit_exceeded" | "no_mock"
  | "not_replayable"
> {}

/** The state of the run, the gate or the event does not allow it. */
export class ConflictError extends CurfewError<
  | "run_exists"
  | "run_finished"
  | "run_ending"
  | "run_not_ended"
  | "paused"
  | "not_paused"
  | "paused_by_parent"
  | "decision_needed"
  | "gate_closed"
  | "not_resumable"
  | "version_does_not_fit"
  | "no_way_back"
  | "no_timeout"
  | "limit_of_parent"
  | "key_used"
  | "event_limit"
  | "stale_attempt"
  | "not_the_parent"
  | "not_the_child"
> {}

/** Too many requests, signals or watchers. Nothing was done; repeat it later. */
export class RateLimitError extends CurfewError<"rate_limited" | "too_many_signals" | "too_many_watchers"> {}

/** Curfew could not answer. After `internal` and `timeout` the request may have taken effect. */
export class UnavailableError extends CurfewError<
  "internal" | "timeout" | "other_build" | "not_migrated" | "access_unavailable" | "callback_key_unreadable"
> {}

/** No answer: the connection was lost, or the deadline passed. The request may have taken effect. */
export class ConnectionError extends CurfewError<"connection_lost" | "deadline_passed"> {}

/** The answer is not Curfew's: `url` is wrong, or something in front of Curfew answers. */
export class UnexpectedResponseError extends CurfewError<"unexpected_response"> {}

type ErrorClass = new (status: number, parts: ErrorParts<any>, retryAfter?: number) => CurfewError;

const CLASSES: Record<ApiErrorCode, ErrorClass> = {
  unauthorized: AuthError,
  forbidden: AuthError,
  four_eyes: AuthError,
  not_local: AuthError,
  cross_origin: AuthError,
  auth_not_configured: AuthError,
  not_found: NotFoundError,
  unknown_signal: NotFoundError,
  invalid_json: InvalidError,
  invalid_request: InvalidError,
  invalid_document: InvalidError,
  invalid_input: InvalidError,
  method_not_allowed: InvalidError,
  body_too_large: InvalidError,
  unsupported_media_type: InvalidError,
  over_hard_limit: InvalidError,
  under_minimum: InvalidError,
  no_public_url: InvalidError,
  limit_exceeded: InvalidError,
  no_mock: InvalidError,
  not_replayable: InvalidError,
  run_exists: ConflictError,
  run_finished: ConflictError,
  run_ending: ConflictError,
  run_not_ended: ConflictError,
  paused: ConflictError,
  not_paused: ConflictError,
  paused_by_parent: ConflictError,
  decision_needed: ConflictError,
  gate_closed: ConflictError,
  not_resumable: ConflictError,
  version_does_not_fit: ConflictError,
  no_way_back: ConflictError,
  no_timeout: ConflictError,
  limit_of_parent: ConflictError,
  key_used: ConflictError,
  event_limit: ConflictError,
  stale_attempt: ConflictError,
  not_the_parent: ConflictError,
  not_the_child: ConflictError,
  rate_limited: RateLimitError,
  too_many_signals: RateLimitError,
  too_many_watchers: RateLimitError,
  internal: UnavailableError,
  timeout: UnavailableError,
  other_build: UnavailableError,
  not_migrated: UnavailableError,
  access_unavailable: UnavailableError,
  callback_key_unreadable: UnavailableError,
};

/** The error of a body of the API. A code of a later version, which has no class here, is a plain `CurfewError`. */
export function errorOf(status: number, body: ApiErrorBody, retryAfter?: number): CurfewError {
  const Class = Object.hasOwn(CLASSES, body.code) ? CLASSES[body.code] : CurfewError;
  return new Class(status, body as ErrorParts<ErrorCode>, retryAfter);
}

/** Whether it is an error of a call with this code; `details` then has the type for it. */
export const hasCode = <Code extends ErrorCode>(error: unknown, code: Code): error is CurfewError<Code> =>
  error instanceof CurfewError && error.code === code;
