// Generated requests against a local Curfew: no answer may be a 5xx, and none may be outside of the OpenAPI document. CURFEW_SCHEMATHESIS
// is the program that makes them (scripts/contract.mjs installs it); CURFEW_CONTRACT_SECONDS bounds its time.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startCurfew, type Curfew } from "../workerd/harness.ts";
import { until } from "../workerd/poll.ts";

const seconds = Number(process.env["CURFEW_CONTRACT_SECONDS"] ?? 120);
const seed = process.env["CURFEW_CONTRACT_SEED"] ?? "1";
const program = process.env["CURFEW_SCHEMATHESIS"];
if (!program) throw new Error("run this with `npm run contract`");

/** Every answer is checked for these. */
const CHECKS = [
  "not_a_server_error",
  "status_code_conformance",
  "content_type_conformance",
  "response_headers_conformance",
  "response_schema_conformance",
  "unsupported_method",
  "allow_header_conformance",
  "negative_data_rejection",
];

/** A stream lasts as long as its run: tests/workerd/live.test.ts reads them. */
const EXCLUDED = ["watchRun"];

/** So many runs of each workflow: most controls can change a run once. */
const RUNS_OF_EACH = 20;

const assertion = { kind: "assert", implementation: { condition: "false", message: "always" } };
const compensation = { id: "undo", kind: "update_context", implementation: { set: { undone: true } } };

/** Runs that end in every way, and runs that wait for everything. */
const WORKFLOWS = [
  { id: "completes", nodes: [{ id: "a" }], output_mapping: { answer: 42 }, tags: ["quick"] },
  { id: "fails", nodes: [{ id: "a", task_id: "t" }], tasks: [{ id: "t", steps: [{ action: assertion }] }] },
  { id: "times-out", timeout: "50ms", on_timeout: "cancel_all", nodes: [{ id: "a", wait: { sleep: "1h" } }] },
  { id: "compensates", nodes: [{ id: "a", action_id: "undo", compensate: { action_id: "undo" } }, { id: "b", task_id: "t" }], transitions: [{ from_node_id: "a", to_node_id: "b" }], tasks: [{ id: "t", steps: [{ action: assertion }] }], actions: [compensation] },
  { id: "asks", nodes: [{ id: "a", gate: { prompt: "Go on?", input_schema: { type: "object" } } }] },
  { id: "times-out-at-a-gate", timeout: "50ms", nodes: [{ id: "a", wait: { sleep: "1h" } }] },
  { id: "sleeps", nodes: [{ id: "a", wait: { sleep: "1h" } }], tags: ["slow"] },
  { id: "hears", nodes: [{ id: "a", wait: { signal: "paid", timeout: "1h" } }] },
  { id: "fans-out", nodes: [{ id: "a" }, { id: "b" }, { id: "c" }], transitions: [{ id: "each", from_node_id: "a", to_node_id: "b", spawn_count: 3 }, { from_node_id: "b", to_node_id: "c", synchronization: { sibling_group: "each" } }] },
  { id: "triggered", trigger: { event: "order.paid" }, nodes: [{ id: "a" }] },
];

async function fill(curfew: Curfew): Promise<string[]> {
  for (const workflow of WORKFLOWS) await curfew.store(workflow);
  await curfew.api("PUT", "/v1/tasks/prepare", { id: "prepare", steps: [{ action: assertion }] });
  await curfew.api("PUT", "/v1/actions/undo", compensation);
  const ids: string[] = [];
  for (const { id } of WORKFLOWS) {
    for (let number = 1; number <= RUNS_OF_EACH; number += 1) ids.push(await curfew.start(id, {}, { run_id: `${id}-${number}` }));
  }
  await until("the first runs have ended", async () => (await curfew.run("times-out-1")).status === "timed_out" && (await curfew.run("compensates-1")).status === "failed");
  return ids;
}

/** Names that exist, so that generated requests do not all end at a 404. */
function settings(runs: string[]): string {
  const dictionaries: Record<string, (string | number)[]> = {
    runs,
    workflows: WORKFLOWS.map(({ id }) => id),
    tasks: ["prepare"],
    actions: ["undo"],
    gates: ["g1", "run1"],
    names: ["paid", "order.paid"],
    moments: [0, 1, 200],
    numbers: [1, 2, 3, 4],
  };
  const parameters: [name: string, dictionary: string, probability: number][] = [
    ["path.run_id", "runs", 0.8],
    ["path.workflow_id", "workflows", 0.8],
    ["path.task_id", "tasks", 0.5],
    ["path.action_id", "actions", 0.5],
    ["path.gate_id", "gates", 0.8],
    ["path.name", "names", 0.8],
    ["path.n", "numbers", 0.8],
    // A wait of half a minute would use up the time.
    ["query.wait_ms", "moments", 1],
  ];
  return [
    ...Object.entries(dictionaries).map(([name, values]) => `[dictionaries.${name}]\nvalues = ${JSON.stringify(values)}\n`),
    "[parameters]",
    ...parameters.map(([name, dictionary, probability]) => `"${name}" = { dictionary = "${dictionary}", probability = ${probability.toFixed(1)} }`),
  ].join("\n");
}

async function generate(curfew: Curfew, directory: string, runs: string[]): Promise<number> {
  const configuration = join(directory, "schemathesis.toml");
  writeFileSync(configuration, settings(runs));
  const args = [
    ...["--config-file", configuration, "--no-color", "run", `${curfew.url}/openapi.json`],
    ...["--checks", CHECKS.join(","), "--max-time", String(seconds), "--rate-limit", "100/s", "--workers", "2", "--seed", seed],
    ...["--request-timeout", "30", "--continue-on-failure", "--warnings", "off", "--suppress-health-check", "all", "--no-shrink"],
    ...EXCLUDED.flatMap((id) => ["--exclude-operation-id", id]),
  ];
  const child = spawn(program!, args, { cwd: directory, stdio: ["ignore", "inherit", "inherit"] });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve(code ?? 1));
  });
}

const directory = mkdtempSync(join(tmpdir(), "curfew-contract-"));
const curfew = await startCurfew();
try {
  const code = await generate(curfew, directory, await fill(curfew));
  const broken = curfew.logs.filter((line) => line.includes('"level":"error"'));
  for (const line of broken.slice(0, 20)) console.error(line);
  process.exitCode = code === 0 && broken.length === 0 ? 0 : 1;
} finally {
  await curfew.dispose();
  rmSync(directory, { recursive: true, force: true });
}
