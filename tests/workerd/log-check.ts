// Every line that a Worker logs is one JSON object with a known event, and holds no input, no output and no secret. The harness
// and the peers record the lines and the data of a test file; the check runs at its end.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Lines of workerd and of test Workers, which are no lines of Curfew. */
const FOREIGN_LINES: RegExp[] = [
  // workerd itself, about alarms, and about a class that a replaced executor does not have.
  /^NOSENTRY /,
  /^A DurableObjectNamespace in the config referenced the class/,
  // A panic, which is a bug: Rust's message and the stack of wasm. Only tests with built-in panics have them.
  /panicked at /,
  /^(Uncaught|Error|RuntimeError|.*Uncaught \(in promise\))/,
  /wasm:\/\/wasm|wasm-function/,
  // A development build reports what it expects to be thrown, too.
  /^wasm-bindgen: imported JS function that was not marked as `catch` threw an error/,
];

/** Fields that hold names: of runs, nodes, callers, signals, choices and the like, which documents and callers choose as names. */
const NAMES = ["run_id", "child_run_id", "workflow_run_id", "parent_run_id", "operation_id", "token_id", "node_id", "gate_id", "workflow_id", "step_ref", "breaker", "by", "name", "key", "choice", "code", "path"];

/** Fields whose values are words of Curfew itself. */
const WORDS = ["level", "event", "kind", "class", "status", "state", "source", "lane", "timeout_type", "policy_applied", "gate_kind", "cause", "action", "ends_as", "handler"];

/** Shorter texts are words that stand everywhere. */
const DISTINCT_LENGTH = 8;
/** A file that sends megabytes need not be searched for all of them. */
const TEXTS_MAX = 5_000;

const lines: string[] = [];
const texts = new Set<string>();
const secrets = new Set<string>();

export function recordLine(line: string): void {
  lines.push(line);
}

/** Every text in a value that was sent or received as data. */
export function recordData(value: unknown, depth = 0): void {
  // Some tests send values that are as deep as a call stack.
  if (texts.size >= TEXTS_MAX || depth > 50) return;
  if (typeof value === "string") {
    if (value.length >= DISTINCT_LENGTH) texts.add(value.slice(0, 200));
  } else if (Array.isArray(value)) {
    for (const item of value) recordData(item, depth + 1);
  } else if (typeof value === "object" && value !== null) {
    for (const item of Object.values(value)) recordData(item, depth + 1);
  }
}

export function recordSecret(text: string): void {
  if (text.length >= DISTINCT_LENGTH) secrets.add(text);
}

/** The events in the tables of docs/operations.md. */
export function documentedEvents(): Set<string> {
  const page = readFileSync(join(root, "docs/operations.md"), "utf8");
  const section = page.split("\n## Logs\n")[1]?.split("\n## ")[0] ?? "";
  const rows = section.split("\n").filter((row) => row.startsWith("| `"));
  return new Set(rows.flatMap((row) => [...row.split("|")[1]!.matchAll(/`([a-z_]+)`/g)].map(([, name]) => name!)));
}

/** What is wrong with the lines. */
export function problemsOf(lines: string[], texts: Iterable<string>, secrets: Iterable<string>): string[] {
  const events = documentedEvents();
  const problems: string[] = [];
  const checked: { line: string; rest: string }[] = [];
  for (const line of lines) {
    if (FOREIGN_LINES.some((foreign) => foreign.test(line))) continue;
    let parsed: Record<string, unknown> | undefined;
    try {
      parsed = JSON.parse(line);
    } catch {
      // Reported below.
    }
    if (typeof parsed !== "object" || parsed === null) {
      problems.push(`not a JSON object: ${line.slice(0, 300)}`);
      continue;
    }
    if (!events.has(String(parsed["event"]))) problems.push(`not in the table of docs/operations.md: ${line.slice(0, 300)}`);
    const rest = Object.entries(parsed).filter(([name]) => !NAMES.includes(name) && !WORDS.includes(name)).map(([, value]) => (typeof value === "string" ? value : JSON.stringify(value)));
    checked.push({ line, rest: rest.join("\n") });
  }
  const all = checked.map(({ rest }) => rest).join("\n");
  for (const text of texts) {
    if (all.includes(text)) problems.push(`data "${text.slice(0, 80)}" in ${checked.find(({ rest }) => rest.includes(text))?.line.slice(0, 300)}`);
  }
  const whole = lines.join("\n");
  for (const secret of secrets) {
    if (whole.includes(secret)) problems.push(`a secret in ${lines.find((line) => line.includes(secret))?.slice(0, 300)}`);
  }
  return problems;
}

// At the very end, after the hooks of the file: the runner reports a process that exits with an error as a failed file. Programs
// that use the harness without a test runner are not checked.
if (process.env["NODE_TEST_CONTEXT"] !== undefined) {
  process.on("exit", () => {
    const problems = problemsOf(lines, texts, secrets);
    if (problems.length === 0) return;
    console.error([`${problems.length} problems of ${lines.length} log lines:`, ...problems.slice(0, 20)].join("\n"));
    process.exitCode = 1;
  });
}
