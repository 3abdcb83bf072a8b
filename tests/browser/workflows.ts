// Workflows whose runs show everything that the dashboard draws. Calls go to a peer on loopback.
type Document = { id: string } & Record<string, unknown>;

const ask = { id: "ask", kind: "http_request", implementation: { method: "GET", url: "${input.url}" }, execution: { retry_policy: { max_attempts: 1 } } };
const call = (id: string, path: string, more: object = {}) => ({ id, action_id: "ask", input_mapping: { url: `\${input.base}${path}` }, ...more });
const chain = (...ids: string[]) => ids.slice(1).map((to, index) => ({ from_node_id: ids[index], to_node_id: to }));
const baseSchema = { type: "object", required: ["base"], properties: { base: { type: "string", title: "Address", description: "Where the peer is." } } };

/** A form, a gate with a form, and a task. */
export const review: Document = {
  id: "review",
  description: "Asks a person about an expense.",
  tags: ["finance"],
  timeout: "2h",
  input_schema: {
    type: "object",
    required: ["title", "amount"],
    properties: {
      title: { type: "string", title: "Title" },
      amount: { type: "number", title: "Amount", default: 120 },
      urgent: { type: "boolean", title: "Urgent" },
      category: { enum: ["travel", "food", "tools"], title: "Category" },
    },
  },
  nodes: [
    { id: "open", output_mapping: { "state.title": "${input.title}" } },
    { id: "ask", gate: { prompt: "Pay ${input.amount} for ${input.title}?", choices: ["approve", "reject"], timeout: "1h", on_timeout: "reject" } },
    { id: "close", output_mapping: { "output.choice": "${state.ask.choice}" } },
  ],
  transitions: chain("open", "ask", "close"),
};

/** Two people at once; the second gate has the nearer deadline. */
export const fork: Document = {
  id: "fork",
  timeout: "2h",
  nodes: [{ id: "begin" }, { id: "left", gate: { prompt: "Left?", timeout: "1h" } }, { id: "right", gate: { prompt: "Right?", timeout: "30m" } }],
  transitions: [
    { from_node_id: "begin", to_node_id: "left" },
    { from_node_id: "begin", to_node_id: "right" },
  ],
};

/** A gate that asks for everything that a form has fields for. */
export const paperwork: Document = {
  id: "paperwork",
  timeout: "5h",
  nodes: [
    {
      id: "fill",
      gate: {
        prompt: "Where does it go?",
        choices: ["send", "refuse"],
        timeout: "2h",
        input_schema: {
          type: ["object", "null"],
          required: ["amount", "address"],
          additionalProperties: false,
          properties: {
            amount: { type: "number", minimum: 1, maximum: 500, title: "Amount", description: "In euros." },
            address: { $ref: "#/$defs/address", title: "Address" },
            due: { type: "string", format: "date", title: "Due" },
            lines: { type: "array", title: "Lines", items: { type: "object", required: ["sku"], properties: { sku: { type: "string", title: "Article" } } } },
            days: { type: "array", title: "Days", items: { enum: ["monday", "tuesday"] } },
            contact: { title: "Contact", oneOf: [{ title: "By phone", type: "object", required: ["phone"], properties: { phone: { type: "string", title: "Phone" } } }, { title: "By mail", type: "object", required: ["mail"], properties: { mail: { type: "string", title: "Mail" } } }] },
            anything: { title: "Anything" },
          },
          $defs: { address: { type: "object", required: ["city"], properties: { city: { type: "string", title: "City" }, zip: { type: "string", title: "Zip", pattern: "^[0-9]{4}$" } } } },
        },
      },
    },
  ],
};

const unbreakable = "W".repeat(90);

/** Everything that a form shows comes from the document, and has no place to break. */
export const wordy: Document = {
  id: "wordy-with-an-id-as-long-as-the-api-takes-0123456789-0123456789",
  description: unbreakable,
  timeout: "2h",
  input_schema: { type: "object", properties: { note: { type: "string", title: unbreakable, description: unbreakable } } },
  nodes: [
    { id: "a-node-with-an-id-as-long-as-the-api-takes-0123456789-0123456789" },
    {
      id: "ask",
      gate: {
        prompt: "${input.note}",
        choices: [`yes-${unbreakable.slice(0, 60)}`, "no"],
        timeout: "1h",
        four_eyes: true,
        input_schema: { type: "object", required: ["amount"], properties: { amount: { type: "number", title: `\u202eevil ${unbreakable}` } } },
      },
    },
  ],
  transitions: chain("a-node-with-an-id-as-long-as-the-api-takes-0123456789-0123456789", "ask"),
};

/** A failure that a person is asked about. */
export const escalated: Document = {
  id: "escalated",
  timeout: "1h",
  input_schema: baseSchema,
  nodes: [call("charge", "/charge", { escalate_on: ["validation"] })],
  actions: [ask],
};

/** Slow calls in a row, under a limit. */
export const steps: Document = {
  id: "steps",
  timeout: "10m",
  input_schema: baseSchema,
  nodes: [call("first", "/slow/400"), call("second", "/slow/900", { timeout: "5s" }), call("third", "/held/third", { timeout: "4m" })],
  transitions: chain("first", "second", "third"),
  actions: [ask],
};

/** Its limit passes while a call hangs, but on no machine before the first one has answered: it waits for a person. */
export const parked: Document = {
  id: "parked",
  timeout: "4s",
  on_timeout: "human_gate",
  input_schema: baseSchema,
  nodes: [call("quick", "/slow/100"), call("stuck", "/hang", { timeout: "30s" })],
  transitions: chain("quick", "stuck"),
  actions: [ask],
};

/** Fails, and can be retried. */
export const failing: Document = {
  id: "failing",
  timeout: "5m",
  tags: ["shop"],
  input_schema: baseSchema,
  nodes: [call("prepare", "/slow/50"), call("charge", "/charge")],
  transitions: chain("prepare", "charge"),
  actions: [ask],
};

/** Fails, and undoes what it did, which works for one of two nodes and takes a while. */
export const undone: Document = {
  id: "undone",
  timeout: "10m",
  input_schema: baseSchema,
  nodes: [
    call("book-flight", "/slow/50", { compensate: { action_id: "ask", input_mapping: { url: "${input.base}/held/undo" } } }),
    call("book-hotel", "/slow/50", { compensate: { action_id: "ask", input_mapping: { url: "${input.base}/status/500" } } }),
    call("charge", "/charge"),
  ],
  transitions: chain("book-flight", "book-hotel", "charge"),
  actions: [ask, { id: "note", kind: "update_context", implementation: { set: { noted: true } } }],
  on_end: [{ on: ["failed"], action_id: "note" }],
};

/** Two attempts that time out, then a failure. */
export const timing: Document = {
  id: "timing",
  timeout: "1m",
  on_timeout: "fail",
  input_schema: baseSchema,
  nodes: [call("think", "/hang", { timeout: "700ms", on_timeout: "retry", max_retries: 1 })],
  actions: [ask],
};

/** Its calls go through a breaker. */
export const guarded: Document = {
  id: "guarded",
  timeout: "1m",
  input_schema: baseSchema,
  nodes: [{ id: "call", action_id: "call", input_mapping: { url: "${input.base}/down" } }],
  actions: [{ ...ask, id: "call", execution: { ...ask.execution, breaker: "shop:eu" } }],
};

/** A fan-out with a join. */
export const wide: Document = {
  id: "wide",
  timeout: "10m",
  input_schema: { type: "object", required: ["items"], properties: { items: { type: "array" } } },
  nodes: [{ id: "begin" }, { id: "branch", task_id: "square" }, { id: "join" }],
  transitions: [
    { id: "each", from_node_id: "begin", to_node_id: "branch", foreach: { collection: "input.items", item_var: "item" }, sibling_group: "items" },
    { from_node_id: "branch", to_node_id: "join", synchronization: { strategy: "all", sibling_group: "items", merge: { target: "state.squares", strategy: "append" } } },
  ],
  tasks: [{ id: "square", steps: [{ ref: "compute", action_id: "compute" }] }],
  actions: [{ id: "compute", kind: "update_context", implementation: { set: { done: true } } }],
};

/** A loop with a way out, a gate and a failure route: for the graph. */
export const loop: Document = {
  id: "loop",
  timeout: "10m",
  nodes: [{ id: "begin", output_mapping: { "state.n": 0 } }, { id: "count", output_mapping: { "state.n": "${state.n + 1}" } }, { id: "done" }],
  transitions: [
    { from_node_id: "begin", to_node_id: "count" },
    { from_node_id: "count", to_node_id: "count", condition: "state.n < 5", loop_config: { max_iterations: 10 } },
    { from_node_id: "count", to_node_id: "done", condition: "state.n >= 5" },
  ],
};

/** Of the catalogue. */
export const stock: Document = { id: "stock", kind: "http_request", implementation: { method: "GET", url: "https://stock.example.com/items" }, execution: { timeout: "20s" } };

/** Warnings at two nodes, a gate, limits, a call of the catalogue: for the analysis and the simulation. */
export const checkout: Document = {
  id: "checkout",
  description: "Reserves, asks a person, charges the card.",
  timeout: "6h",
  input_schema: { type: "object", required: ["amount"], properties: { amount: { type: "number", title: "Amount", default: 120 } } },
  nodes: [
    { id: "reserve", action_id: "stock" },
    { id: "approve", gate: { prompt: "Pay ${input.amount}?", timeout: "4h", on_timeout: "reject" } },
    { id: "charge", action_id: "charge", timeout: "45s" },
    { id: "large" },
    { id: "small" },
  ],
  transitions: [
    { from_node_id: "reserve", to_node_id: "approve" },
    { from_node_id: "approve", to_node_id: "charge", condition: "state.approve.choice == 'approve'" },
    { from_node_id: "charge", to_node_id: "large", condition: "input.amount > 100" },
    { from_node_id: "charge", to_node_id: "small", condition: "input.amount < 100" },
  ],
  actions: [{ id: "charge", kind: "http_request", implementation: { method: "POST", url: "https://pay.example.com/charge" }, execution: { timeout: "10s" } }],
  output_mapping: { charged: "${has(state.charge)}" },
};

/** A definition with so many nodes. */
export const large = (nodes: number): Document => ({
  id: `large-${nodes}`,
  timeout: "10m",
  nodes: Array.from({ length: nodes }, (_, index) => ({ id: `node-${index}` })),
  transitions: Array.from({ length: nodes - 1 }, (_, index) => [
    { from_node_id: `node-${index}`, to_node_id: `node-${index + 1}` },
    ...(index % 4 === 0 && index + 6 < nodes ? [{ from_node_id: `node-${index}`, to_node_id: `node-${index + 6}`, condition: "false", priority: 1 }] : []),
  ]).flat(),
});

export const all: Document[] = [review, steps, parked, failing, timing, guarded, escalated, fork, wordy, paperwork, undone, wide, loop, { ...checkout, timeout: "8h", tags: ["shop"] }, checkout, large(30)];
