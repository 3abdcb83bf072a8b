// What went wrong, in words on standard error, and the exit code for it.
import { AuthError, ConnectionError, CurfewError, UnexpectedResponseError, type Gate } from "../client/index.ts";
import { UsageError } from "./arguments.ts";
import { usage } from "./command.ts";
import { formatMoment } from "./durations.ts";
import { EXIT, type ExitCode } from "./exit_codes.ts";
import { isoTimes } from "./iso_times.ts";
import type { Output } from "./output.ts";
import { escaped, escapedLines, inOneLine, jsonText } from "./terminal_text.ts";

type Decision = NonNullable<Gate["decision"]>;

/** A failure of the command itself, not of a request: a file that cannot be read, a gate that is not there. */
export class CommandError extends Error {
  readonly exitCode: ExitCode;
  /** What to do about it. */
  readonly next: string | undefined;

  constructor(message: string, { exitCode = EXIT.refused, next }: { exitCode?: ExitCode; next?: string } = {}) {
    super(message);
    this.exitCode = exitCode;
    this.next = next;
  }
}

/** Whether it has a message for people. Anything else is a bug of the command line, or follows from an answer that is not Curfew's. */
export const isExpected = (error: unknown): boolean => error instanceof UsageError || error instanceof CommandError || error instanceof CurfewError;

/** Prints it and returns the exit code. An error that no command expects is a bug and is thrown again. */
export function report(error: unknown, output: Output, address: string): ExitCode {
  if (error instanceof UsageError) {
    const lines = error.command === undefined ? [] : [`usage: ${usage(error.command)}`, `run \`${output.program} help ${error.command.name}\` for its flags`];
    return print(output, EXIT.usage, { code: "usage", message: error.message }, lines);
  }
  if (error instanceof CommandError) return print(output, error.exitCode, { code: error.exitCode === EXIT.usage ? "usage" : "failed", message: error.message }, error.next === undefined ? [] : [error.next]);
  if (!(error instanceof CurfewError)) throw error;
  const { code, status, message, pointer, details } = error;
  const exitCode = exitCodeOf(error);
  const shown = error instanceof ConnectionError && code === "connection_lost" ? `Curfew does not answer at ${address}: ${causeOf(error)}` : message;
  return print(output, exitCode, { code, status, message: shown, pointer, details }, nextSteps(error, output));
}

interface ErrorParts {
  code: string;
  status?: number;
  message: string;
  pointer?: string | undefined;
  details?: unknown;
}

function print(output: Output, exitCode: ExitCode, parts: ErrorParts, next: readonly string[]): ExitCode {
  if (output.isJson) {
    output.problem(jsonText({ error: { ...parts, ...(parts.details === undefined ? {} : { details: isoTimes(parts.details) }), ...(next.length > 0 ? { next: next.join("\n") } : {}) } }));
    return exitCode;
  }
  const { red, dim } = output.errorColours;
  const [first = "", ...rest] = escapedLines(headline(parts));
  const isPlaced = parts.pointer === undefined || parts.pointer === "" || parts.message.includes(parts.pointer);
  const place = isPlaced ? "" : ` (at ${escaped(parts.pointer!)})`;
  const code = parts.status === undefined || parts.status === 0 ? "" : dim(`  [${parts.status} ${escaped(parts.code)}]`);
  output.problem(`${red("curfew:")} ${first}${rest.length === 0 ? place + code : ""}`, ...rest, ...detailLines(parts), ...next.flatMap(escapedLines));
  return exitCode;
}

function exitCodeOf(error: CurfewError): ExitCode {
  if (error instanceof AuthError) return EXIT.unauthorized;
  return error instanceof ConnectionError || error instanceof UnexpectedResponseError ? EXIT.notReachable : EXIT.refused;
}

type Parts = Pick<ErrorParts, "details" | "message">;

/** The message without the first of several problems, which `detailLines` has with the others. */
export const headline = ({ details, message }: Parts): string => (Array.isArray(details) && details.length > 1 ? message.split("; the first: ")[0]! : message);

/** Each problem of a document on a line of its own, with its place. */
export function detailLines({ details, message }: Parts): string[] {
  if (details === undefined || details === null) return [];
  if (!Array.isArray(details)) {
    const fields = details as Record<string, unknown>;
    // None of a gate whose time was over, which the message says.
    if ("decision" in fields) return fields["decision"] ? [`  ${decisionText(fields["decision"] as Decision)}`] : [];
    // The message has the known names of a query already.
    return "known" in fields ? [] : [`  ${inOneLine(fields)}`];
  }
  const lines = details.map((detail: Record<string, unknown> | null) => {
    // One of a later version.
    if (typeof detail !== "object" || detail === null) return `  ${inOneLine(detail)}`;
    const place = detail["pointer"] ?? [detail["node_id"], detail["token_id"]].filter((part) => typeof part === "string").join(" ");
    const text = [place === "" ? "/" : place, detail["message"] ?? detail["reason"]].filter((part) => part !== undefined);
    return `  ${text.map(inOneLine).join(": ")}`;
  });
  // A single problem is often the message itself.
  return lines.length === 1 && typeof details[0]?.message === "string" && message.endsWith(details[0].message) ? [] : lines;
}

/** `ada decided "approve" at 16:40:03: fine`. */
function decisionText({ choice, by, at, comment, input }: Decision): string {
  const rest = [...(comment == null ? [] : [`: ${comment}`]), ...(input == null ? [] : [`, with ${JSON.stringify(input)}`])].join("");
  return escaped(`${by ?? "it was"} decided ${JSON.stringify(choice)} at ${formatMoment(at, Date.now())}${rest}`);
}

function causeOf(error: Error): string {
  const cause = error.cause as { message?: string; cause?: { code?: string; message?: string } } | undefined;
  return cause?.cause?.code ?? cause?.cause?.message ?? cause?.message ?? error.message;
}

/** What to do about a refusal. */
export function nextSteps(error: CurfewError, { command, program }: Pick<Output, "command" | "program">): string[] {
  switch (error.code) {
    case "connection_lost":
      return [`start it with \`${program} dev\`, or set CURFEW_URL (or --url) to the address of your deployment`];
    case "unexpected_response":
      return ["set CURFEW_URL (or --url) to the address of your deployment"];
    case "unauthorized":
      return ["set CURFEW_TOKEN (or --token) to a token of this deployment"];
    case "forbidden":
      return ["use a token with a higher role, or one that is bound to this workflow"];
    case "decision_needed":
      return [`\`${command("inbox")}\` lists what waits for a person; \`${command("decide <run> <gate>")}\` decides it`];
    case "not_found":
      return whereToLook(error.message, command);
    case "run_exists":
      return ["choose another --id, or leave it out"];
    case "run_finished":
      return [`\`${command("retry <run>")}\` lets a run go on that failed or timed out; \`${command("restart <run>")}\` begins any run again`];
    default:
      return [];
  }
}

/** By what was not found, with which the message begins. */
function whereToLook(message: string, command: Output["command"]): string[] {
  if (/^the run\b/.test(message)) return [`\`${command("runs")}\` lists the runs`];
  if (/^workflow\b/.test(message)) return [`\`${command("workflows")}\` lists the workflows; \`${command("put <file>")}\` stores one`];
  if (/^(task|action)\b/.test(message)) return [`\`${command("put <file>")}\` stores it`];
  if (/^the breaker\b/.test(message)) return [`\`${command("breakers")}\` lists the breakers`];
  return [];
}
