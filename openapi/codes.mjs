// The codes of errors, each with the status that it comes with and a sentence for callers. tests/docs/contract.rs compares them with the code.

/** @type {Record<string, string>} `status code` -> when */
export const CODES = {
  "400 invalid_json": "The body is not JSON.",
  "400 invalid_request": "A name breaks its rule, or a field or parameter is unknown. Nothing was done.",
  "401 unauthorized": "The request has no valid credential.",
  "403 forbidden": "The role of the credential is too low, or the workflow is not one of those that it is bound to.",
  "403 not_local": "Without tokens only requests to this machine are answered.",
  "403 cross_origin": "A page of another origin sent the request.",
  "403 four_eyes": "The gate has `four_eyes`, and the one who started the run may not decide.",
  "404 not_found": "There is no such thing, or no such path.",
  "404 unknown_signal": "No wait of the workflow is for this signal.",
  "405 method_not_allowed": "The path takes another method; see the header `Allow`.",
  "409 run_exists": "The run id was used with another request. Choose another one.",
  "409 run_finished": "The run has ended and cannot be changed.",
  "409 run_ending": "The end of the run is decided; its compensations and end handlers run.",
  "409 run_not_ended": "The run has not ended.",
  "409 paused": "The run is paused, and nothing new begins.",
  "409 not_paused": "The run is not paused.",
  "409 paused_by_parent": "The run is paused with the run that called it. Resume that one.",
  "409 decision_needed": "The run waits for a decision. Decide its gate, or extend the run.",
  "409 gate_closed": "The gate was decided before; `details` has the decision.",
  "409 not_resumable": "The run cannot be retried; the message says why.",
  "409 version_does_not_fit": "The run cannot go on with that version; `details` says where.",
  "409 no_way_back": "The run cannot go back to that node; the message says why.",
  "409 no_timeout": "The run has no limit that could be extended.",
  "409 limit_of_parent": "The limit is that of the node that called the run.",
  "409 key_used": "An event with this key and another payload was published before. Choose another key.",
  "409 limit_exceeded": "Too many workflows have the same trigger.",
  "409 event_limit": "The first event of the chain has started as many runs as it may.",
  "409 stale_attempt": "The callback came too late, or twice.",
  "409 not_the_parent": "Another run asked to act as the parent of this one. Callers of the API do not get it.",
  "409 not_the_child": "Another run reported as the child of this one. Callers of the API do not get it.",
  "413 body_too_large": "The body is larger than 1 MiB.",
  "413 limit_exceeded": "A value is larger than its limit; the message has both.",
  "415 unsupported_media_type": "The body of a browser must be `application/json`.",
  "422 invalid_document": "The document has problems; `details` has all of them.",
  "422 invalid_request": "A value is wrong; `pointer` says where and `details` has every problem.",
  "422 invalid_input": "The input does not fit the `input_schema` of the workflow.",
  "422 limit_exceeded": "The body is nested too deeply, the document is too large, or a simulation takes too much; the message says what.",
  "422 over_hard_limit": "The timeout is longer than the hard limit of the preset.",
  "422 under_minimum": "The timeout is shorter than the minimum of the preset.",
  "422 no_mock": "The workflow makes a call that no mock answers; `details` has the mock to add.",
  "422 not_replayable": "The history of the run cannot be played again; the message says why.",
  "422 no_public_url": "The workflow has an async action, and the deployment has no public URL for its callbacks.",
  "429 too_many_signals": "The run keeps as many signals as it may. Send it again later.",
  "429 too_many_watchers": "As many clients as may watch the run already. Try again later.",
  "429 rate_limited": "Too many requests, or too many wrong credentials. Repeat it after `Retry-After`.",
  "500 internal": "Something failed inside Curfew and was logged. The request may or may not have taken effect.",
  "503 auth_not_configured": "The deployment has no credentials; the message says what to set.",
  "503 access_unavailable": "The keys of Cloudflare Access cannot be fetched.",
  "503 other_build": "A new version is being deployed. Nothing was done; repeat the request.",
  "503 not_migrated": "The database lacks a table; the message says what to do.",
  "503 callback_key_unreadable": "The callback could not be checked. Repeat it after `Retry-After`.",
  "504 timeout": "The object of the run did not answer. The request may or may not have been carried out.",
};

/** Of every request. */
export const ALWAYS = ["400 invalid_request", "500 internal"];
/** Of every request that needs a credential. */
export const CREDENTIAL = [
  "401 unauthorized",
  "403 forbidden",
  "403 not_local",
  "403 cross_origin",
  "429 rate_limited",
  "503 auth_not_configured",
  "503 access_unavailable",
];
/** Of every request that changes something: a browser's body must be JSON. */
export const CHANGE = ["415 unsupported_media_type"];
/** Of every request whose body is read. */
export const BODY = ["400 invalid_json", "413 body_too_large", "422 limit_exceeded"];
/** Of every request that reads or writes the database. */
export const DATABASE = ["503 not_migrated"];
/** Of every request to the object of a run. */
export const OBJECT = ["404 not_found", "503 other_build", "504 timeout"];
/** Of every request that resolves a workflow. */
export const WORKFLOW = ["404 not_found", "422 invalid_document", "422 limit_exceeded", "422 no_public_url", "503 not_migrated"];
