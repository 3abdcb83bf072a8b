// defineWorkflow: what the compiler refuses, and that the document stays as it was written. The lines behind `@ts-expect-error` are the
// test of the compiler: `npm run check` fails if one of them has no error.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { choice, defineWorkflow, stored, type ActionDocument, type TaskDocument } from "../../client/index.ts";

const approval = defineWorkflow({
  id: "approval",
  name: "Approval",
  description:
    'An expense of 100 or more stands in front of a person, who may approve it (or less of it) or reject it, with a comment; nobody within a day is a no. No network. Input: {"title", "amount"}. See what waits: GET /v1/gates. Decide: POST /v1/runs/{id}/gates/{gate_id} with {"choice": "approve", "input": {"amount": 120}, "comment": "fine", "by": "ada"}.',
  tags: ["example", "gate"],
  timeout: "48h",
  on_timeout: "fail",
  input_schema: {
    type: "object",
    required: ["title", "amount"],
    properties: { title: { type: "string" }, amount: { type: "number", minimum: 0 } },
  },
  nodes: [
    { id: "open" },
    {
      id: "ask",
      gate: {
        prompt: "Pay ${input.amount} for ${input.title}?",
        choices: ["approve", "reject"],
        input_schema: { type: ["object", "null"], properties: { amount: { type: "number", minimum: 0 } }, additionalProperties: false },
        timeout: "24h",
        on_timeout: "reject",
        remind_at: [0.5, 0.9],
      },
    },
    { id: "approved", output_mapping: { "state.amount": "${has(state.ask.input.amount) ? state.ask.input.amount : input.amount}" } },
    { id: "small", output_mapping: { "state.amount": "${input.amount}" } },
    {
      id: "pay",
      task_id: "pay",
      input_mapping: { title: "${input.title}", amount: "${state.amount}" },
      output_mapping: { "output.outcome": "paid", "output.receipt": "${result.receipt}" },
    },
    { id: "decline", output_mapping: { "output.outcome": "declined", "output.by": "${state.ask.by}", "output.comment": "${state.ask.comment}" } },
  ],
  transitions: [
    { id: "needs-approval", from_node_id: "open", to_node_id: "ask", condition: "input.amount >= 100" },
    { id: "needs-none", from_node_id: "open", to_node_id: "small", condition: "input.amount < 100" },
    { id: "yes", from_node_id: "ask", to_node_id: "approved", condition: choice("ask", "approve") },
    { id: "no", from_node_id: "ask", to_node_id: "decline", condition: "state.ask.choice == 'reject'" },
    { id: "approved-pay", from_node_id: "approved", to_node_id: "pay" },
    { id: "small-pay", from_node_id: "small", to_node_id: "pay" },
  ],
  tasks: [
    {
      id: "pay",
      steps: [{ ref: "receipt", action: { kind: "update_context", implementation: { set: { receipt: "${input.amount} for ${input.title}" } } } }],
    },
  ],
});

test("the result is the document that a person would write, key by key", () => {
  const written = JSON.parse(readFileSync(new URL("../../examples/approval.json", import.meta.url), "utf8"));
  assert.equal(JSON.stringify(approval), JSON.stringify(written));
  const id: "approval" = approval.id;
  assert.equal(id, "approval");
});

test("a choice becomes the CEL text that a person would write", () => {
  const written: "state.ask.choice == 'approve'" = choice("ask", "approve");
  assert.equal(written, "state.ask.choice == 'approve'");
  assert.equal(choice("ask-boss", "yes"), "state['ask-boss'].choice == 'yes'");
  assert.equal(choice("2nd", "yes"), "state['2nd'].choice == 'yes'");
  assert.equal(choice("ask", "it's fine"), `state.ask.choice == "it's fine"`);
  assert.equal(choice("ask", 'a \\ "b"'), String.raw`state.ask.choice == "a \\ \"b\""`);
});

test("the id of a stored task is a plain string in the document", () => {
  const workflow = defineWorkflow({ id: "w", nodes: [{ id: "a", task_id: stored("pay"), task_version: 3 }] });
  assert.equal(JSON.stringify(workflow), '{"id":"w","nodes":[{"id":"a","task_id":"pay","task_version":3}]}');
});

const nodes = [{ id: "a" }, { id: "b" }] as const;
const http = { kind: "http_request", implementation: { url: "https://example.com" } } as const;

/** Never called: the compiler is what is tested. Each line is one that `accepted` has, with one mistake. */
export function refused() {
  // Ids of nodes.
  // @ts-expect-error
  defineWorkflow({ id: "w", nodes: [{ id: "a" }, { id: "b" }], transitions: [{ from_node_id: "x", to_node_id: "b" }] });
  // @ts-expect-error
  defineWorkflow({ id: "w", nodes: [{ id: "a" }, { id: "b" }], transitions: [{ from_node_id: "a", to_node_id: "B" }] });
  // @ts-expect-error
  defineWorkflow({ id: "w", nodes: [{ id: "a" }], initial_node_id: "b" });
  // @ts-expect-error
  defineWorkflow({ id: "w", nodes, initial_node_id: "c" });

  // Tasks and actions.
  // @ts-expect-error
  defineWorkflow({ id: "w", nodes: [{ id: "a", task_id: "pay" }] });
  // @ts-expect-error
  defineWorkflow({ id: "w", nodes: [{ id: "a", task_id: "pya" }], tasks: [{ id: "pay", steps: [{ action: http }] }] });
  // @ts-expect-error
  defineWorkflow({ id: "w", nodes: [{ id: "a", action_id: "pya" }], actions: [{ id: "pay", ...http }] });
  // @ts-expect-error
  defineWorkflow({ id: "w", nodes: [{ id: "a", compensate: { action_id: "pya" } }], actions: [{ id: "pay", ...http }] });
  // @ts-expect-error
  defineWorkflow({ id: "w", nodes: [{ id: "a" }], on_end: [{ action_id: "pya" }], actions: [{ id: "pay", ...http }] });
  // @ts-expect-error
  defineWorkflow({ id: "w", nodes: [{ id: "a" }], tasks: [{ id: "t", steps: [{ action_id: "pya" }] }], actions: [{ id: "pay", ...http }] });
  // A task is no action.
  // @ts-expect-error
  defineWorkflow({ id: "w", nodes: [{ id: "a", action_id: "pay" }], tasks: [{ id: "pay", steps: [{ action: http }] }] });

  // Sibling groups.
  const join = { from_node_id: "a", to_node_id: "b" } as const;
  // @ts-expect-error
  defineWorkflow({ id: "w", nodes, transitions: [{ ...join, sibling_group: "each" }, { ...join, synchronization: { sibling_group: "all" } }] });
  // @ts-expect-error
  defineWorkflow({ id: "w", nodes, transitions: [{ ...join, id: "fan", spawn_count: 2 }, { ...join, synchronization: { sibling_group: "fun" } }] });

  // Choices.
  const gates = [{ id: "a", gate: { choices: ["yes", "no"] } }, { id: "b-2", gate: { choices: ["up", "down"] } }] as const;
  const back = { from_node_id: "a", to_node_id: "b-2" } as const;
  // @ts-expect-error
  defineWorkflow({ id: "w", nodes: gates, transitions: [{ ...back, condition: choice("a", "yse") }] });
  // @ts-expect-error
  defineWorkflow({ id: "w", nodes: gates, transitions: [{ ...back, condition: "state.a.choice == 'yse'" }] });
  // @ts-expect-error
  defineWorkflow({ id: "w", nodes: gates, transitions: [{ ...back, condition: 'state.a.choice != "yse"' }] });
  // A node that is not there.
  // @ts-expect-error
  defineWorkflow({ id: "w", nodes: gates, transitions: [{ ...back, condition: choice("aa", "yes") }] });
  // @ts-expect-error
  defineWorkflow({ id: "w", nodes: gates, transitions: [{ ...back, condition: choice("a", "yes") }, { ...back, condition: choice("b-3", "up") }] });
  // The choice of another gate.
  // @ts-expect-error
  defineWorkflow({ id: "w", nodes: gates, transitions: [{ ...back, condition: choice("b-2", "yes") }] });
  // The second one of a condition.
  // @ts-expect-error
  defineWorkflow({ id: "w", nodes: gates, transitions: [{ ...back, condition: "state.a.choice == 'yes' || state['b-2'].choice == 'upp'" }] });
  // Beside a condition that is not known to the compiler.
  // @ts-expect-error
  defineWorkflow({ id: "w", nodes: gates, transitions: [{ ...back, condition: String(back) }, { ...back, condition: choice("a", "yse") }] });

  // A node that is no gate.
  // @ts-expect-error
  defineWorkflow({ id: "w", nodes, transitions: [{ ...back, from_node_id: "a", to_node_id: "b", condition: choice("a", "approve") }] });
  // A gate without choices of its own has two.
  // @ts-expect-error
  defineWorkflow({ id: "w", nodes: [{ id: "a", gate: {} }, { id: "b" }], transitions: [{ from_node_id: "a", to_node_id: "b", condition: choice("a", "aprove") }] });

  // Two with the same id: the second one is wrong.
  defineWorkflow({
    id: "w",
    nodes: [
      { id: "a" },
      { id: "b" },
      // @ts-expect-error
      { id: "a", name: "again" },
    ],
    transitions: [
      { id: "t", from_node_id: "a", to_node_id: "b" },
      { from_node_id: "a", to_node_id: "b" },
      // @ts-expect-error
      { id: "t", from_node_id: "b", to_node_id: "a" },
    ],
  });

  // Two kinds.
  // @ts-expect-error
  defineWorkflow({ id: "w", nodes: [{ id: "a", gate: {}, workflow_id: "x" }] });
  defineWorkflow({
    id: "w",
    nodes: [
      {
        id: "a",
        // @ts-expect-error
        gate: {},
        // @ts-expect-error
        wait: { sleep: "1s" },
      },
    ],
  });

  // Durations.
  // @ts-expect-error
  defineWorkflow({ id: "w", timeout: "10d", nodes: [{ id: "a" }] });
  // @ts-expect-error
  defineWorkflow({ id: "w", nodes: [{ id: "a", timeout: "30" }] });
  // @ts-expect-error
  defineWorkflow({ id: "w", nodes: [{ id: "a", gate: { timeout: "7d" } }] });
  // @ts-expect-error
  defineWorkflow({ id: "w", nodes: [{ id: "a", wait: { sleep: "1 day" } }] });

  // @ts-expect-error
  defineWorkflow({ id: "w", nodes: [{ id: "a" }], gate: { timeout: "7d" } });
  // @ts-expect-error
  defineWorkflow({ id: "w", nodes: [{ id: "a" }], gate: { timeot: "7h" } });

  // Behind a node whose id may be anything.
  // @ts-expect-error
  defineWorkflow({ id: "w", nodes: [{ id: String(back) }, { id: "a" }, { id: "a" }] });

  // Where a join merges to.
  // @ts-expect-error
  defineWorkflow({ id: "w", nodes, transitions: [{ ...join, id: "fan", spawn_count: 2 }, { ...join, synchronization: { sibling_group: "fan", merge: { target: "stat.x" } } }] });

  // Fields.
  // @ts-expect-error
  defineWorkflow({ id: "w", nodes: [{ id: "a", gate: { on_timeout: "aprove" } }] });
  // @ts-expect-error
  defineWorkflow({ id: "w", nodes: [{ id: "a" }], transition: [] });
  // @ts-expect-error
  defineWorkflow({ id: "w", nodes: [{ id: "a", taskid: "pay" }] });
  // @ts-expect-error
  defineWorkflow({ id: "w", nodes: [{ id: "a", gate: { promt: "?" } }] });
  // @ts-expect-error
  defineWorkflow({ id: "w", nodes: [{ id: "a" }], transitions: [{ from_node_id: "a", to_node_id: "a", conditon: "true" }] });
  // @ts-expect-error
  defineWorkflow({ id: "w", nodes: [{ id: "a" }], transitions: [{ from_node_id: "a", to_node_id: "a", on: "sucess" }] });
  // @ts-expect-error
  defineWorkflow({ id: "w", nodes: [{ id: "a" }], actions: [{ id: "x", kind: "http_request", implementation: { url: "x", metod: "GET" } }] });
  // @ts-expect-error
  defineWorkflow({ id: "w", nodes: [{ id: "a" }], actions: [{ id: "x", kind: "http_request", implementation: { command: "ls" } }] });
  // @ts-expect-error
  defineWorkflow({ id: "w", nodes: [{ id: "a", output_mapping: { "sate.x": 1 } }] });
  // @ts-expect-error
  defineWorkflow({ nodes: [{ id: "a" }] });
}

/** Never called: the compiler accepts these. */
export function accepted() {
  defineWorkflow({ id: "w", nodes, transitions: [{ from_node_id: "a", to_node_id: "b" }], initial_node_id: "b" });
  defineWorkflow({ id: "w", nodes: [{ id: "a", action_id: stored("pay") }], tasks: [{ id: "t", steps: [{ action_id: stored("pay") }] }] });
  const join = { from_node_id: "a", to_node_id: "b" } as const;
  defineWorkflow({ id: "w", nodes, transitions: [{ ...join, id: "fan", spawn_count: 2 }, { ...join, synchronization: { sibling_group: "fan", strategy: { m_of_n: 2 } } }] });
  defineWorkflow({ id: "w", nodes, transitions: [{ ...join, sibling_group: "each" }, { ...join, synchronization: { sibling_group: "each" } }] });
  defineWorkflow({
    id: "w",
    nodes: [{ id: "a", action_id: "pay", compensate: { action_id: "pay" } }, { id: "b", task_id: "t" }],
    on_end: [{ action_id: "pay" }, { task_id: "t" }],
    tasks: [{ id: "t", steps: [{ action_id: "pay" }, { action: http }] }],
    actions: [{ id: "pay", ...http }],
  });
  const gates = [{ id: "a", gate: { choices: ["yes", "no"] } }, { id: "b-2", gate: { choices: ["up", "down"] } }] as const;
  const back = { from_node_id: "a", to_node_id: "b-2" } as const;
  const either = "state.a.choice == 'yes' || state['b-2'].choice != \"up\"";
  defineWorkflow({ id: "w", nodes: gates, transitions: [{ ...back, condition: choice("b-2", "down") }, { ...back, condition: either }, { ...back, condition: String(back) }] });
  // A gate without choices of its own has two, and the state may have what no node is called.
  const asking = [{ id: "a", gate: { timeout: "7h" } }, { id: "b" }] as const;
  defineWorkflow({ id: "w", nodes: asking, transitions: [{ ...join, condition: choice("a", "approve") }, { ...join, condition: "state.order.choice == 'x'" }] });
  // Ids that are not known to the compiler.
  defineWorkflow({ id: "w", nodes: ["a", "b"].map((id) => ({ id })), transitions: [{ from_node_id: "a", to_node_id: "b", condition: choice("c", "approve") }] });
  // What is not known to the compiler: two ids, two kinds, a duration.
  const [text, length]: (string | null)[] = ["a", null];
  const optional: { id: string; gate?: {}; wait?: { sleep: string } } = { id: "a", gate: {} };
  defineWorkflow({ id: "w", timeout: length ?? null, nodes: [{ id: String(text) }, { id: String(text), timeout: length ?? null }, optional] });
  // Nothing but a gate, or a wait.
  defineWorkflow({ id: "w", nodes: [{ id: "a", gate: { prompt: "Go on?" } }] });
  defineWorkflow({ id: "w", nodes: [{ id: "a", wait: { sleep: "1s" } }, { id: "b", gate: { timeout: "1h" } }] });
  // An id that may be anything, or anything behind a prefix, is not equal to those that follow.
  const made: { id: `step-${string}` } = { id: `step-${text}` };
  defineWorkflow({ id: "w", nodes: [{ id: String(text) }, made, { id: "a" }, { id: "step-1" }], transitions: [{ id: String(text), ...join, to_node_id: "a" }, { id: "t", ...join, to_node_id: "a" }] });
  // The time that a person has at the limit of the run.
  defineWorkflow({ id: "w", nodes, gate: { timeout: "168h", on_timeout: "fail" } });
  defineWorkflow({ id: "w", nodes, gate: { timeout: String(text) } });
  // Parts of other files.
  const task = { id: "t", steps: [{ action_id: "pay" }] } as const satisfies TaskDocument;
  const pay = { id: "pay", ...http } as const satisfies ActionDocument;
  defineWorkflow({ id: "w", nodes: [{ id: "a", task_id: "t" }, { id: "b" }], tasks: [task], actions: [pay], transitions: [join] });
  // A duration may be computed.
  defineWorkflow({ id: "w", timeout: "1h30m", nodes: [{ id: "a", wait: null, gate: {} }, { id: "b", wait: { sleep: "${input.pause}" } }, { id: "c", action_id: stored("x"), timeout: "adaptive" }] });
  defineWorkflow({ id: "w", nodes, transitions: [{ ...join, id: "fan", spawn_count: 2 }, { ...join, synchronization: { sibling_group: "fan", merge: { target: "state.x" } } }] });
  // The result of a node that is no gate may have a choice of its own.
  defineWorkflow({ id: "w", nodes, transitions: [{ ...join, condition: "state.a.choice == 'anything'" }] });
  defineWorkflow({ id: "w", nodes: [{ id: "a", workflow_id: "another" }, { id: "b" }], transitions: [{ ...join, condition: "state.n > 3 && state.a.choices == 'x'" }] });
}
