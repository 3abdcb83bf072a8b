// The screen of `watch`: what a frame shows, that it always fits, and that it is redrawn in place.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Run, RunEvent, Token } from "../../client/index.ts";
import { colours } from "../colours.ts";
import { commandFor } from "../output.ts";
import { widthOf } from "../terminal_text.ts";
import { testTerminal } from "../test_terminal.ts";
import { eventLine } from "./event_line.ts";
import { frame } from "./frame.ts";
import { Screen } from "./screen.ts";
import { stateOf, withAnswer, withEvent } from "./state.ts";

const NOW = 1_700_000_000_000;
const OUTPUT = { colours: colours(false), command: commandFor(undefined) };

const run = (parts: Partial<Run> = {}): Run => ({
  id: "order-1",
  workflow_id: "order",
  version: 3,
  status: "running",
  error: null,
  started_at: NOW - 12_300,
  ended_at: null,
  timeout_at: NOW + 47_700,
  timeout_ms: 60_000,
  duration_ms: 12_300,
  attempt: 1,
  tags: [],
  input: {},
  output: null,
  context: { state: {}, output: {} },
  deadlines: [{ kind: "workflow", due_at: NOW + 47_700 }],
  counts: {},
  root_run_id: "order-1",
  ...parts,
});

const token = (number: number, parts: Partial<Token> = {}): Token => ({
  id: `t${number}`,
  node_id: `node-${number}`,
  status: "executing",
  epoch: 1,
  retry_count: 0,
  lane: "direct",
  branch: null,
  parent_token_id: null,
  created_at: NOW - 12_000 + number,
  dispatched_at: null,
  started_at: NOW - 12_000 + number,
  ended_at: null,
  timeout_at: NOW + 30_000,
  timeout_ms: 40_000,
  timeout_reason: null,
  reason: null,
  error: null,
  output: null,
  steps: [],
  ...parts,
});

const ended = (number: number, parts: Partial<Token> = {}) => token(number, { status: "completed", ended_at: NOW - 10_000 + number, timeout_at: null, ...parts });
const branch = (number: number, parts: Partial<Token> = {}, total = 100) => token(number, { node_id: "work", branch: { group: "each", instance: 1, index: number, total, item: null, output: null }, ...parts });
const lines = (tokens: Token[], { width = 80, height = 23, of = run() } = {}) => frame(stateOf(of, tokens, NOW), width, height, NOW, OUTPUT);
const event = (parts: Partial<RunEvent> & { kind: RunEvent["kind"] }): RunEvent => ({ seq: 1, at: NOW, ...parts });

test("the run with its limit, tokens with status, attempt, time left and progress", () => {
  const progress = { at: NOW, step_ref: "draft", step_index: 1, steps_total: 3, attempt: 2, partial: [{ name: "draft", complete: false, bytes: 2_048, text: "so far\x1b[2J" }] };
  const tokens = [ended(1, { node_id: "fetch", started_at: NOW - 11_200, ended_at: NOW - 10_000 }), token(2, { node_id: "think", epoch: 2, progress })];
  assert.deepEqual(lines(tokens), [
    "order-1  running  12s  48s left of 1m0s  order v3",
    "",
    "NODE   STATUS     TIME                 PROGRESS",
    "fetch  completed  1.2s",
    "think  executing  30s left  attempt 2  step 2/3 draft, call 2, 2.0 KiB: so far\\…",
  ]);
});

test("time counts down by the clock of Curfew, which may be ahead of ours", () => {
  const state = stateOf(run(), [token(1)], NOW - 5_000);
  assert.match(frame(state, 80, 23, NOW - 5_000, OUTPUT)[0]!, /48s left/);
  assert.match(frame(state, 80, 23, NOW, OUTPUT)[0]!, /43s left/);
  assert.match(frame(state, 80, 23, NOW, OUTPUT)[3]!, /25s left/);
});

test("a gate is shown with the command that decides it, until it is decided", () => {
  const waiting = run({ status: "waiting", deadlines: [{ kind: "gate", due_at: NOW + 3_600_000, gate_id: "g2", token_id: "t2", node_id: "ask" }] });
  const tokens = [token(2, { node_id: "ask", status: "awaiting_human" })];
  const open = withEvent(stateOf(waiting, tokens, NOW), event({ kind: "gate_opened", gate_id: "g2", node_id: "ask", token_id: "t2" }));
  assert.deepEqual(frame(open, 80, 23, NOW, OUTPUT).slice(1, 3), ["ask waits for a person, 1h0m0s left", "  curfew decide order-1 g2"]);
  const decided = withEvent(open, event({ kind: "gate_decided", gate_id: "g2" }));
  assert.doesNotMatch(frame(decided, 80, 23, NOW, OUTPUT).join("\n"), /decide/);
  // The stream may be behind the answer: a gate whose token has ended is gone.
  const answered = withAnswer(open, run(), [ended(2)], NOW);
  assert.doesNotMatch(frame(answered, 80, 23, NOW, OUTPUT).join("\n"), /decide/);
});

test("the gate of a whole run, and clocks that are stopped", () => {
  const paused = run({ status: "paused", paused_by: ["workflow_timeout"], timeout_at: null, deadlines: [{ kind: "workflow", remaining_ms: 0 }, { kind: "execution", remaining_ms: 9_000, token_id: "t1" }] });
  const state = withEvent(stateOf(paused, [token(1, { timeout_at: null })], NOW), event({ kind: "gate_opened", gate_id: "run1" }));
  const shown = frame(state, 100, 23, NOW + 60_000, OUTPUT);
  assert.equal(shown[0], "order-1  paused  1m12s  0s left of 1m0s, stopped  paused by workflow timeout  order v3");
  assert.deepEqual(shown.slice(1, 3), ["the run waits for a person", "  curfew decide order-1 run1"]);
  assert.match(shown.at(-1)!, /9s left, stopped/);
});

test("branches of a fan-out are one line with what they have done", () => {
  const tokens = [...Array.from({ length: 60 }, (_, index) => branch(index, { status: "waiting_for_siblings", timeout_at: null })), ...Array.from({ length: 40 }, (_, index) => branch(60 + index))];
  assert.deepEqual(lines(tokens).slice(3), ["work x100  60 waiting for siblings, 40 executing  30s left  [######----] 60/100"]);
  assert.equal(lines([branch(0), branch(1)]).length, 5);
});

test("1 000 tokens and any size of the terminal: every frame fits", () => {
  const tokens = Array.from({ length: 1_000 }, (_, index) => (index % 3 === 0 ? token(index, { timeout_at: NOW + index * 100 }) : ended(index, { node_id: `世界-${index}` })));
  const gates = Array.from({ length: 10 }, (_, index) => event({ kind: "gate_opened", gate_id: `g${index * 3}`, token_id: `t${index * 3}`, node_id: `node-${index}` }));
  const state = gates.reduce(withEvent, stateOf(run({ error: { code: "x", class: "unknown", message: "long ".repeat(100) } }), tokens, NOW));
  for (const [width, height] of [[80, 23], [200, 60], [40, 10], [20, 5], [10, 3], [5, 1], [1, 1]] as const) {
    const shown = frame(state, width, height, NOW, OUTPUT);
    assert.ok(shown.length <= height, `${width}x${height}: ${shown.length} lines`);
    for (const line of shown) assert.ok(widthOf(line) <= width, `${width}x${height}: ${line}`);
  }
});

test("what does not fit is counted; the nearest deadlines are shown", () => {
  const tokens = [
    ...Array.from({ length: 50 }, (_, index) => ended(index)),
    ended(50, { status: "failed", error: { code: "http_500", class: "server_error", message: "boom" } }),
    ...Array.from({ length: 30 }, (_, index) => token(100 + index, { timeout_at: NOW + 60_000 - index * 1_000 })),
  ];
  const shown = lines(tokens, { height: 12 });
  assert.equal(shown.length, 12);
  assert.match(shown[3]!, /^49 earlier +49 completed/);
  assert.match(shown[5]!, /^node-50 +failed +.*boom/);
  assert.match(shown.at(-1)!, /^25 more +25 executing/);
  assert.match(shown.at(-2)!, /^node-129 .*31s left/);
});

test("an ended run has no time left, and its error is shown", () => {
  const failed = run({ status: "failed", ended_at: NOW, deadlines: [], error: { code: "no_transition", class: "validation", message: "none\nmatched" } });
  assert.deepEqual(lines([], { of: failed }), ["order-1  failed  12s  order v3", "no_transition: none\\nmatched"]);
});

test("a status and an event of a later version are shown as text", () => {
  assert.match(lines([token(1, { status: "hibernating" as never })]).at(-1)!, /node-1 +hibernating/);
  assert.match(eventLine(event({ kind: "run_teleported" as never, to: "mars\x1b[0m", delay_ms: 1_500 } as never), NOW), /run_teleported to=mars\\u001b\[0m delay=1.5s$/);
});

test("an event is one line", () => {
  const line = eventLine(event({ kind: "token_failed", node_id: "fetch", token_id: "t3", code: "http_500", reason: "two words" }), NOW);
  assert.match(line, /^\d\d:\d\d:\d\d token_failed fetch t3 code=http_500 reason="two words"$/);
});

test("frames are redrawn in place, each in one write, and nothing of an earlier one is left", () => {
  const terminal = testTerminal({ columns: 30, rows: 10 });
  const screen = new Screen(terminal);
  terminal.write("$ curfew watch\r\n");
  screen.draw(["one", "a longer line", "three"]);
  assert.equal(terminal.screen().isCursorShown, false);
  screen.draw(["1", "2"]);
  assert.deepEqual(terminal.screen().lines, ["$ curfew watch", "1", "2"]);
  const writes = terminal.writes.length;
  screen.draw(["1", "2"]);
  assert.equal(terminal.writes.length, writes, "the same frame is not written again");
  screen.draw(["a", "b", "c", "d"]);
  assert.equal(terminal.writes.length, writes + 1);
  screen.close();
  terminal.write("done\r\n");
  assert.deepEqual(terminal.screen(), { lines: ["$ curfew watch", "a", "b", "c", "d", "done"], isCursorShown: true });
});

test("a frame as high as the terminal scrolls what was there before, once", () => {
  const terminal = testTerminal({ columns: 30, rows: 5 });
  const screen = new Screen(terminal);
  terminal.write("before\r\n");
  assert.equal(screen.height, 4);
  for (let number = 0; number < 5; number++) screen.draw([`first ${number}`, "second", "third", "fourth"]);
  screen.close();
  assert.deepEqual(terminal.screen().lines, ["before", "first 4", "second", "third", "fourth"]);
});

test("after a resize the rows that the old frame now takes are counted", () => {
  const terminal = testTerminal({ columns: 40, rows: 10 });
  const screen = new Screen(terminal);
  screen.draw(["x".repeat(35), "short"]);
  terminal.resize(20, 10);
  screen.draw(["y"]);
  // 35 columns take two rows of 20, so the cursor moves up by three.
  assert.match(terminal.writes.at(-1)!, /\x1b\[3A/);
});
