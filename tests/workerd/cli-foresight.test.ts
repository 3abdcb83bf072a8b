// `curfew analyze`, `curfew simulate` and `curfew export` as processes against the real Worker.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { runCommand } from "./command-line.ts";
import { workflow } from "./document-builders.ts";
import { startCurfew, type Curfew } from "./harness.ts";

let curfew: Curfew;
const directory = mkdtempSync(join(tmpdir(), "curfew-foresight-"));
before(async () => {
  curfew = await startCurfew();
});
after(async () => {
  rmSync(directory, { recursive: true });
  await curfew.dispose();
});

const run = (...line: string[]) => runCommand(curfew.url, line);

function file(name: string, content: unknown): string {
  const path = join(directory, name);
  writeFileSync(path, JSON.stringify(content));
  return path;
}

const sleepy = () => workflow({ timeout: "1h", nodes: [{ id: "rest", wait: { sleep: "5m" } }] });

test("a file is analyzed without being stored: what a run can take, and what is wrong", async () => {
  const document = sleepy();
  const { code, out } = await run("analyze", file("sleepy.json", document));
  assert.equal(code, 0);
  assert.match(out, /^no problem was found$/m);
  assert.match(out, /^ends +surely: /m);
  assert.match(out, /^duration +5m\S* at most/m);
  assert.equal((await curfew.api("GET", `/v1/workflows/${document.id}`)).status, 404);

  const broken = { ...document, nodes: [...document.nodes, { id: "unreached", wait: { sleep: "1s" } }], initial_node_id: "nowhere" };
  const refused = await run("analyze", file("broken.json", broken));
  assert.equal(refused.code, 1);
  assert.match(refused.out, /^error \/initial_node_id: .*\[\w+\]$/m);
});

test("a stored workflow is analyzed by its id, with --json as the API answers", async () => {
  const document = sleepy();
  await curfew.store(document);
  const { code, out } = await run("analyze", document.id, "--json");
  assert.equal(code, 0);
  assert.deepEqual(JSON.parse(out), (await curfew.api("POST", `/v1/workflows/${document.id}/analyze`, {})).json);
  const unknown = await run("analyze", "no-such-workflow");
  assert.equal(unknown.code, 1);
  assert.match(unknown.errors, /not_found/);
  const missing = await run("analyze", "./no-such-file.json");
  assert.deepEqual([missing.code, /there is no file/.test(missing.errors)], [2, true]);
});

test("a simulation of days prints the path and the end; a call without a mock names the mock to add", async () => {
  const document = workflow({
    timeout: "72h",
    actions: [{ id: "charge", kind: "http_request", implementation: { method: "POST", url: "https://pay.example/charge" } }],
    nodes: [{ id: "ask", gate: { timeout: "48h" } }, { id: "rest", wait: { sleep: "20h" } }, { id: "pay", action_id: "charge", timeout: "1m" }],
    transitions: [{ from_node_id: "ask", to_node_id: "rest" }, { from_node_id: "rest", to_node_id: "pay" }],
  });
  const path = file("days.json", document);
  const people = '[{"gate": "ask", "after": "4h", "choice": "approve"}]';
  const mocks = '[{"node": "pay", "after": "2s", "result": {"status": 200, "headers": {}, "body": {}}}]';
  const { code, out, errors } = await run("simulate", path, "--people", people, "--mocks", mocks);
  assert.equal(code, 0, errors);
  assert.match(out, /rest +completed/);
  assert.match(out, /^completed after 24h0m2s of virtual time/m);
  const unmocked = await run("simulate", path, "--people", people);
  assert.equal(unmocked.code, 1);
  assert.match(unmocked.errors, /no_mock/);
  assert.match(unmocked.errors, /"node": ?"pay"|pay/);
  const nobody = await run("simulate", path, "--mocks", mocks);
  assert.equal(nobody.code, 3, nobody.out);
  assert.equal((await run("simulate", path, "--mocks", "{")).code, 2);
});

test("a directory does not hide the stored workflow of its name; one that is meant as a file is a wrong command line", async () => {
  const document = sleepy();
  await curfew.store(document);
  mkdirSync(join(directory, document.id));
  for (const verb of ["analyze", "simulate"]) {
    const { code, errors } = await runCommand(curfew.url, [verb, document.id], { directory });
    assert.equal(code, 0, errors);
    const refused = await runCommand(curfew.url, [verb, `./${document.id}`, "--json"], { directory });
    assert.deepEqual([refused.code, JSON.parse(refused.errors).error.code], [2, "usage"]);
  }
});

test("without an address a file is simulated on this machine, with the answer of the server", async () => {
  const document = workflow({ timeout: "72h", nodes: [{ id: "rest", wait: { sleep: "20h" } }, { id: "ask", gate: { timeout: "48h" } }], transitions: [{ from_node_id: "rest", to_node_id: "ask" }] });
  const line = ["simulate", file("alone.json", document), "--people", '[{"gate": "ask", "after": "4h", "choice": "approve"}]'];
  const local = await runCommand("", line);
  assert.equal(local.code, 0, local.errors);
  assert.match(local.out, /^completed after 24h0m0s of virtual time/m);
  const [here, there] = await Promise.all([runCommand("", [...line, "--json"]), runCommand(curfew.url, [...line, "--json"])]);
  assert.deepEqual(JSON.parse(here.out), JSON.parse(there.out));
  const wrong = await runCommand("", [...line, "--input", "[]"]);
  assert.deepEqual([wrong.code, wrong.errors], await run(...line, "--input", "[]").then(({ code, errors }) => [code, errors]));
  assert.equal((await runCommand("http://127.0.0.1:1", line)).code, 6, "where there is an address, it is asked");
});

test("a gate with four_eyes is simulated with the name of the one who starts the run", async () => {
  const document = workflow({ timeout: "72h", nodes: [{ id: "ask", gate: { four_eyes: true } }] });
  const line = ["simulate", file("pair.json", document), "--people", '[{"gate": "ask", "choice": "approve", "by": "bo"}]'];
  for (const address of ["", curfew.url]) {
    assert.match((await runCommand(address, [...line, "--as", "ada"])).out, /^completed after /m);
    assert.match((await runCommand(address, [...line, "--as", "bo"])).errors, /four_eyes/);
    assert.match((await runCommand(address, line)).errors, /four_eyes/);
  }
});

test("a simulation that waits says for what, and what to add", async () => {
  const document = workflow({ timeout: null, nodes: [{ id: "ask", gate: {} }, { id: "paid", wait: { signal: "payment", timeout: null } }], transitions: [{ from_node_id: "ask", to_node_id: "paid" }] });
  const path = file("waits.json", document);
  const asked = await run("simulate", path);
  assert.equal(asked.code, 0, asked.errors);
  const people = /^ask waits for a decision, which never comes: add --people '(.*)'$/m.exec(asked.out)?.[1];
  assert.ok(people, asked.out);
  const signalled = await run("simulate", path, "--people", people);
  const signals = /^paid waits for a signal, which never comes: add --signals '(.*)'$/m.exec(signalled.out)?.[1];
  assert.ok(signals, signalled.out);
  assert.match((await run("simulate", path, "--people", people, "--signals", signals)).out, /^completed after /m);
});

test("a compensation is marked as one: in a run, in a simulation and in a what-if; a retry is not offered behind it", async () => {
  const undo = { id: "undo", kind: "update_context", implementation: { set: { "output.undone": true } } };
  const document = workflow({
    actions: [undo, { ...undo, id: "do" }],
    nodes: [{ id: "charge", action_id: "do", compensate: { action_id: "undo" } }, { id: "ship", wait: { signal: "never", timeout: "100ms", on_timeout: "fail" } }],
    transitions: [{ from_node_id: "charge", to_node_id: "ship" }],
  });
  await curfew.store(document);
  const started = await run("start", document.id, "--id", `${document.id}-run`, "--wait");
  assert.equal(started.code, 3, started.errors);
  assert.match(started.out, /what happened: curfew run \S+   from the start: curfew restart \S+$/m);
  const shown = await run("run", `${document.id}-run`);
  assert.match(shown.out, /^undone +charge$/m);
  assert.match(shown.out, /^t3 +charge undoes t1 +completed/m);
  assert.doesNotMatch(shown.out, /curfew retry/);
  assert.match((await run("simulate", document.id)).out, /charge \(compensation\) +completed/);
  const path = join(directory, "compensated.json");
  assert.equal((await run("export", `${document.id}-run`, "--output", path)).code, 0);
  const continued = await run("simulate", "--from", path, "--set", "/nodes/1/wait/on_timeout=continue");
  assert.match(continued.out, /^- node "charge" would not be reached here \(its compensation\)$/m);
});

test("export has the run, its document, tokens, events and timeouts; values are left out if asked to", async () => {
  const document = workflow({ nodes: [{ id: "slow", wait: { signal: "never", timeout: "300ms", on_timeout: "fail" } }] });
  await curfew.store(document);
  const id = await curfew.start(document.id, { secretish: "the input" });
  await curfew.ended(id);
  const path = join(directory, "run.json");
  assert.equal((await run("export", id, "--output", path)).code, 0);
  const exported = JSON.parse(readFileSync(path, "utf8"));
  assert.deepEqual([exported.format, exported.run.id, exported.run.status, exported.document.id], ["curfew-export/1", id, "failed", document.id]);
  assert.deepEqual(exported.events, (await curfew.api("GET", `/v1/runs/${id}/events`)).json.items);
  assert.equal(exported.timeouts.length, 1);
  assert.ok("context_for_resume" in exported.timeouts[0]);
  const redacted = await run("export", id, "--redact", "values");
  assert.equal(redacted.code, 0);
  assert.doesNotMatch(redacted.out, /the input/);
  assert.equal((await run("export", id, "--redact", "everything")).code, 2);
  assert.equal((await run("export", "no-such-run")).code, 1);
});

test("an exported run is played again without the server, under another limit", async () => {
  const document = workflow({ timeout: "1h", nodes: [{ id: "slow", wait: { signal: "go", timeout_ms: 300, on_timeout: "fail" } }] });
  await curfew.store(document);
  const id = await curfew.start(document.id, {}, { run_id: "slow-1" });
  await curfew.ended(id);
  const path = join(directory, "slow.json");
  assert.equal((await run("export", id, "--output", path)).code, 0);
  const offline = (...line: string[]) => runCommand("http://127.0.0.1:1", ["simulate", "--from", path, ...line]);
  const unchanged = await offline();
  assert.deepEqual([unchanged.code, /^nothing differs$/m.test(unchanged.out)], [0, true], unchanged.errors);
  // The document has `timeout_ms`: the other name takes its place.
  const longer = await offline("--set", "/nodes/0/wait/timeout=2m");
  assert.equal(longer.code, 0, longer.errors);
  assert.match(longer.out, /^recorded failed after [\d.]+m?s$/m);
  assert.match(longer.out, /^replayed failed after 2m0s$/m);
  assert.match(longer.out, /^- it would take 2m0s instead of /m);
  // Nobody answered anything in time.
  const sooner = await offline("--durations", '[{"node": "slow", "after": "1ms"}]');
  assert.deepEqual([sooner.code, /no answer is recorded of node "slow".*the recording has none/.test(sooner.errors)], [1, true], sooner.errors);
  const continued = await offline("--changes", '[{"op": "replace", "path": "/nodes/0/wait/on_timeout", "value": "continue"}]', "--json");
  assert.equal(JSON.parse(continued.out).replayed.status, "completed");
  for (const [line, code, message] of [
    [["--set", "nodes=1"], 2, /is not like/],
    [["--set", "/nodes/7/timeout=5m"], 1, /nothing at "\/nodes\/7"/],
    [["--set", "/nodes/0/wait/timeout=soon"], 1, /invalid_document/],
    [["--mocks", "[]"], 2, /does not go with --from/],
    [["--durations", "{]"], 2, /--durations/],
    [["flow"], 2, /not both/],
  ] as const) {
    const refused = await offline(...line);
    assert.equal(refused.code, code, `${line}: ${refused.errors}`);
    assert.match(refused.errors, message);
  }
  writeFileSync(path, "{}");
  assert.match((await offline()).errors, /no export of a run/);
});
