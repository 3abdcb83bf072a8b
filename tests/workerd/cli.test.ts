// The command line as a process against the real Worker: standard output, standard error and exit codes.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { runCommand, type CommandOptions } from "./command-line.ts";
import { callWorkflow, check, freshId, oneRequest, oneTask, set, workflow } from "./document-builders.ts";
import { READ, roleVars, root, startCurfew, type Curfew } from "./harness.ts";
import { startPeer, type Peer } from "./peer.ts";
import { until } from "./poll.ts";

let curfew: Curfew;
let peer: Peer;
const directory = mkdtempSync(join(tmpdir(), "curfew-cli-"));
before(async () => {
  [curfew, peer] = await Promise.all([startCurfew(), startPeer()]);
});
after(async () => {
  rmSync(directory, { recursive: true });
  await Promise.all([curfew.dispose(), peer.close()]);
});

const run = (line: string[], options?: CommandOptions) => runCommand(curfew.url, line, options);
const ok = async (...line: string[]) => {
  const finished = await run(line);
  assert.equal(finished.code, 0, finished.errors);
  return finished.out;
};
const json = async (...line: string[]) => {
  const finished = await run([...line, "--json"]);
  assert.equal(finished.code, 0, finished.errors);
  assert.equal(finished.errors, "");
  return JSON.parse(finished.out);
};

function file(name: string, content: unknown): string {
  const path = join(directory, name);
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
  return path;
}

const gated = (gate: object = {}) => workflow({ nodes: [{ id: "ask", gate: { prompt: "Pay \u001b[31mnow?", timeout: "1h", on_timeout: "reject", ...gate } }], output_mapping: "${state.ask}" });
const startGated = async (gate: object = {}) => {
  const id = await curfew.storeAndStart([gated(gate)]);
  await until("the gate in the list", async () => (await curfew.api("GET", "/v1/gates?limit=1000")).json.items.some((one: { run_id: string }) => one.run_id === id));
  return id;
};
const waiting = () => workflow({ nodes: [{ id: "pause", wait: { sleep: "20s" } }] });
/** The first request fails. */
const failing = (status: number) => {
  const path = `/${freshId("flaky")}`;
  peer.route(path, (_, times) => (times === 1 ? { status } : { body: {} }));
  return oneRequest(peer.url + path);
};

test("documents are stored children first, and the answer names each version", async () => {
  const child = workflow({ nodes: [{ id: "only" }] });
  const parent = callWorkflow(child);
  const [parentFile, childFile] = [file("parent.json", parent), file("child.json", child)];
  const out = await ok("put", parentFile, childFile);
  assert.deepEqual(out.trim().split("\n").map((line) => line.split(/ {2,}/).slice(0, 2).join(" ")), [`stored workflow ${child.id} v1`, `stored workflow ${parent.id} v1`]);
  const again = await json("put", parentFile);
  assert.deepEqual(again, [{ file: parentFile, kind: "workflows", id: parent.id, version: 1, warnings: [] }]);
});

test("a refused document shows each problem at its pointer; what refers to it is not sent, the rest is", async () => {
  const broken = { id: freshId("broken"), nodes: [{ id: "a", task_id: "no-such-task", timeoutt: "1s" }] };
  const [parent, other] = [callWorkflow(broken), workflow({ nodes: [{ id: "only" }] })];
  const files = [file("p.json", parent), file("b.json", broken), file("o.json", other)];
  const { code, out, errors } = await run(["put", ...files]);
  assert.equal(code, 1);
  assert.match(out, new RegExp(`^stored  workflow ${other.id} v1 `));
  assert.match(errors, new RegExp(`^refused workflow ${broken.id} \\(.*b.json\\): `));
  assert.match(errors, /^  \/nodes\/0\/timeoutt: /m);
  assert.match(errors, new RegExp(`^not sent workflow ${parent.id} .*: workflow ${broken.id} was refused$`, "m"));
  const listed = JSON.parse((await run(["put", ...files, "--json"])).out);
  assert.deepEqual(listed.map((one: object) => Object.keys(one).at(-1)), ["error", "skipped", "warnings"]);
});

test("several problems are listed once, below their number", async () => {
  const { errors } = await run(["put", file("many.json", { id: freshId("many"), nodes: [{ id: "a", one: 1, two: 2 }] })]);
  const [first, ...rest] = errors.trimEnd().split("\n");
  assert.match(first!, /: 2 problems in the document$/);
  assert.deepEqual(rest.map((line) => line.trim().split(":")[0]), ["/nodes/0/one", "/nodes/0/two"]);
});

test("workflows: the list; workflow: a document and its versions", async () => {
  const document = workflow({ nodes: [{ id: "only" }] });
  const second = { ...document, name: "Second" };
  await curfew.store(document);
  await curfew.store(second);
  assert.match(await ok("workflows"), new RegExp(`^WORKFLOW +VERSION +STORED.*\n(.*\n)*${document.id} +2 +\\d\\d:`));
  const listed = (await json("workflows")).find(({ id }: { id: string }) => id === document.id);
  assert.deepEqual([listed.version, /Z$/.test(listed.created_at)], [2, true]);
  const shown = await run(["workflow", document.id, "--version", "1"]);
  assert.deepEqual([shown.code, JSON.parse(shown.out)], [0, document]);
  assert.match(shown.errors, new RegExp(`^${document.id} v1, stored \\d\\d:`));
  assert.equal((await json("workflow", document.id)).document.name, "Second");
});

test("what was not found decides where to look", async () => {
  for (const [line, hint] of [
    [["start", "nope"], "`curfew workflows` lists the workflows; `curfew put <file>` stores one"],
    [["workflow", "nope"], "`curfew workflows` lists the workflows; `curfew put <file>` stores one"],
    [["run", "nope"], "`curfew runs` lists the runs"],
    [["breakers", "--reset", "nope"], "`curfew breakers` lists the breakers"],
  ] as const) {
    const { code, errors } = await run([...line]);
    assert.deepEqual([code, errors.trimEnd().split("\n").at(-1)], [1, hint]);
  }
});

test("a workflow of a TypeScript file is stored and runs", async () => {
  const id = freshId("typed");
  const path = file("typed.ts", `type Id = string; const id: Id = ${JSON.stringify(id)}; export default { id, nodes: [{ id: "only" }], output_mapping: { answer: 42 } };`);
  await ok("put", path);
  assert.match(await ok("start", id, "--wait"), /completed after .*\n\{\n {2}"answer": 42\n\}\n$/);
});

test("the examples are stored by one command", async () => {
  const { readdirSync } = await import("node:fs");
  const names = readdirSync(join(root, "examples")).filter((name) => name.endsWith(".json"));
  const stored = await json("put", ...names.map((name) => join(root, "examples", name)));
  assert.equal(stored.length, names.length);
  assert.ok(stored.every(({ version }: { version: number }) => version === 1));
});

test("start: the run and what to do next; input from a file and from standard input; twice is once", async () => {
  const echo = workflow({ nodes: [{ id: "only" }], output_mapping: "${input}" });
  await curfew.store(echo);
  const id = freshId("run");
  const first = await run(["start", echo.id, "--id", id, "--input", `@${file("input.json", { a: 1 })}`]);
  assert.equal(first.code, 0, first.errors);
  assert.match(first.out, new RegExp(`^${id}  ${echo.id} v1  completed\n$`));
  const same = await run(["start", echo.id, "--id", id, "--input", "-", "--wait", "--json"], { input: '{"a": 1}' });
  assert.equal(same.code, 0, same.errors);
  assert.deepEqual(JSON.parse(same.out).output, { a: 1 });
  const other = await run(["start", echo.id, "--id", id, "--input", '{"a": 2}']);
  assert.equal(other.code, 1);
  assert.match(other.errors, /\[409 run_exists\]\nchoose another --id/);
  const running = await run(["start", await curfew.store(waiting()).then(() => echo.id), "--timeout", "10"]);
  assert.equal(running.code, 2);
});

test("the exit code says how a run ended", async () => {
  const failed = oneTask([check("false", "not \u001b[2J today")]);
  const timedOut = oneRequest(`${peer.url}/hang`, { workflow: { timeout: "1s" } });
  const cancelled = waiting();
  for (const document of [failed, timedOut, cancelled]) await curfew.store(document);
  const [first, second] = await Promise.all([run(["start", failed.id, "--wait"]), run(["start", timedOut.id, "--wait"])]);
  assert.equal(first.code, 3);
  assert.match(first.out, /failed after .*\n.*not \\u001b\[2J today/);
  assert.match(first.out, /go on: curfew retry /);
  assert.equal(second.code, 4);
  const id = freshId("cancelled");
  const waitingFor = run(["start", cancelled.id, "--id", id, "--wait"]);
  await until("the run", async () => (await curfew.api("GET", `/v1/runs/${id}`)).status === 200);
  await ok("cancel", id, "--reason", "the shop is closed");
  const third = await waitingFor;
  assert.equal(third.code, 5);
  assert.match(third.out, /reason: the shop is closed/);
});

test("runs: filters, a table, and JSON with ISO times", async () => {
  const [done, failed] = [workflow({ nodes: [{ id: "only" }], tags: ["cli"] }), oneTask([check("false", "no")])];
  await curfew.runToEnd(done);
  await curfew.runToEnd(failed);
  const listed = await until("both in the list", async () => {
    const pages = await Promise.all([json("runs", "--workflow", done.id), json("runs", "--workflow", failed.id, "--status", "failed,timed_out")]);
    return pages.every(({ items }) => items.length === 1) && pages;
  });
  assert.match(listed[0]!.items[0].started_at, /^\d{4}-\d\d-\d\dT.*Z$/);
  assert.equal(listed[1]!.items[0].status, "failed");
  const out = await ok("runs", "--workflow", failed.id, "--since", "1h");
  assert.match(out, /^RUN +WORKFLOW +STATUS +STARTED +TIME +ERROR\n/);
  assert.match(out, / failed +\d\d:\d\d:\d\d /);
  const none = await run(["runs", "--tag", "no-such-tag"]);
  assert.deepEqual([none.code, none.out, none.errors], [0, "", "no run matches\n"]);
  assert.ok((await json("runs", "--all", "--since", "1h")).items.length >= 2);
  const limited = await run(["runs", "--limit", "1"]);
  assert.match(limited.errors, /there are more: --limit 2, or --all/);
});

test("run: status, deadlines and tokens; outputs cannot control the terminal", async () => {
  const id = await startGated();
  const out = await ok("run", id);
  assert.match(out, /^run +/);
  assert.match(out, /\nDeadlines\nLIMIT +LEFT +NODE +TOKEN +GATE\n(.*\n)*gate +(59m\d+s|1h0m0s) left +ask +t1 +g1\n/);
  assert.match(out, /\nTokens\nTOKEN +NODE +STATUS .*\nt1 +ask +awaiting human/);
  const ended = await curfew.runToEnd(oneTask([set({ "output.text": "\u001b]0;title\u0007\u009b2J" })]));
  const shown = await ok("run", ended.id);
  assert.match(shown, /\\u001b\]0;title\\u0007\\u009b2J/);
  assert.doesNotMatch(shown, /[\u001b\u0007\u009b]/);
  assert.equal((await json("run", ended.id)).tokens.length, 1);
});

test("inbox: by deadline, with what happens without a decision, and the command that decides", async () => {
  const [late, soon, forever] = [await startGated({ timeout: "3h" }), await startGated({ timeout: "2m", on_timeout: "fail" }), await startGated({ timeout: null, on_timeout: "fail" })];
  const gates = (await json("inbox")).filter((gate: { run_id: string }) => [late, soon, forever].includes(gate.run_id));
  assert.deepEqual(gates.map((gate: { run_id: string; if_undecided: string }) => [gate.run_id, gate.if_undecided]), [
    [soon, "the node fails"],
    [late, 'it counts as "reject"'],
    [forever, "it stays open"],
  ]);
  const out = await ok("inbox", "--run", soon);
  assert.match(out, new RegExp(`^${soon}  node ask  (1m\\d+s|2m0s) left \\(.*\\)\n  Pay \\\\u001b\\[31mnow\\?\n  without a decision: the node fails\n  choices: "approve", "reject"\n  curfew decide ${soon} g1\n$`));
});

test("decide: by gate, by node, with input and comment; twice shows the first decision", async () => {
  const [one, two] = [await startGated(), await startGated()];
  assert.match(await ok("decide", one, "g1", "approve", "--comment", "fine", "--as", "ada"), new RegExp(`^${one}  completed`));
  await ok("decide", two, "ask", "reject", "--input", '{"why": "too much"}');
  assert.deepEqual((await curfew.ended(one)).output, { choice: "approve", input: null, comment: "fine", by: "ada" });
  assert.deepEqual(((await curfew.ended(two)).output as { input: unknown }).input, { why: "too much" });
  const again = await run(["decide", one, "g1", "reject"]);
  assert.equal(again.code, 1);
  assert.match(again.errors, /\[409 gate_closed\]\n {2}ada decided "approve" at \d\d:\d\d:\d\d: fine$/m);
  const byNode = await run(["decide", two, "ask", "approve"]);
  assert.deepEqual([byNode.code, /\[409 gate_closed\]\n {2}it was decided "reject" at \S+, with \{"why":"too much"\}$/m.test(byNode.errors)], [1, true], byNode.errors);
  const asJson = JSON.parse((await run(["decide", one, "g1", "reject", "--json"])).errors);
  assert.match(asJson.error.details.decision.at, /^\d{4}-.*Z$/);
  const wrong = await run(["decide", await startGated(), "nowhere", "approve"]);
  assert.equal(wrong.code, 1);
  assert.match(wrong.errors, /nowhere is neither an open gate of run .* nor a node/);
  assert.match(wrong.errors, /curfew inbox --run/);
});

test("commands to copy go to the same address", async () => {
  const id = await startGated();
  const elsewhere = { environment: { CURFEW_URL: "http://127.0.0.1:9" } };
  const at = async (...line: string[]) => run([...line, "--url", curfew.url, "--token", "not-to-be-shown"], elsewhere);
  const inbox = await at("inbox", "--run", id);
  const command = new RegExp(`^  curfew (decide ${id} g1 --url ${curfew.url})$`, "m").exec(inbox.out)?.[1];
  assert.ok(command, inbox.out);
  const refused = await at("decide", id, "nowhere", "approve");
  assert.match(refused.errors, new RegExp(`curfew inbox --run ${id} --url ${curfew.url}$`, "m"));
  assert.match((await at("run", "none")).errors, new RegExp(`\`curfew runs --url ${curfew.url}\` lists`));
  const decided = await run([...command.split(" "), "reject"], elsewhere);
  assert.equal(decided.code, 0, decided.errors);
  const failed = oneTask([check("false", "no")]);
  await curfew.store(failed);
  const ended = await at("start", failed.id, "--wait");
  assert.match(ended.out, new RegExp(`go on: curfew retry \\S+ --url ${curfew.url}`));
  for (const { out, errors } of [inbox, refused, decided, ended]) assert.doesNotMatch(out + errors, /not-to-be-shown/);
});

test("a limit that has passed is extended at its gate", async () => {
  const document = oneRequest(`${peer.url}/hang`, { workflow: { timeout: "1s", on_timeout: "human_gate" } });
  const id = await curfew.storeAndStart([document]);
  await until("the gate of the run", async () => (await curfew.run(id)).status === "paused");
  const shown = await ok("run", id);
  assert.match(shown, /Why it timed out\nthe workflow limit of 1s passed: \/timeout\n(usually work takes .*\n)?the run has not completed/, shown);
  assert.match(await ok("decide", id, "run1", "extend", "--by", "5m"), new RegExp(`^${id}  running  [45]m\\d+s left`));
  await ok("cancel", id);
});

test("controls: pause, resume, extend, retry, restart, signal", async () => {
  const id = await curfew.storeAndStart([waiting()]);
  assert.match(await ok("pause", id), /paused .*left, stopped/);
  assert.match(await ok("resume", id), /running/);
  assert.match(await ok("extend", id, "--by", "10m"), /10m\d+s left/);
  assert.match(await ok("extend", id, "--until", new Date(Date.now() + 7_200_000).toISOString()), /left/);
  const refused = await run(["retry", id]);
  assert.equal(refused.code, 1);
  await ok("cancel", id);

  const hopeless = await curfew.runToEnd(failing(404));
  const advised = await run(["retry", hopeless.id]);
  assert.equal(advised.code, 1);
  assert.match(advised.errors, /is not recommended: .*\n(.*\n)*choose one:\n {2}--mode retry_step: /);
  await ok("retry", hopeless.id, "--mode", "retry_step");
  assert.equal((await curfew.ended(hopeless.id)).status, "completed");

  const failed = await curfew.runToEnd(failing(500));
  const retried = await run(["retry", failed.id]);
  assert.equal(retried.code, 0, retried.errors);
  assert.match(retried.errors, /^mode \w+: /);
  assert.equal((await curfew.ended(failed.id)).status, "completed");
  assert.equal((await json("restart", failed.id)).attempt, 2);

  const signalled = await curfew.storeAndStart([workflow({ nodes: [{ id: "paid", wait: { signal: "payment", timeout: "20s" } }], output_mapping: "${state.paid}" })]);
  await ok("signal", signalled, "payment", '{"paid": true}');
  assert.deepEqual((await curfew.ended(signalled)).output, { paid: true });
  const unknown = await run(["signal", signalled, "payment"]);
  assert.match(unknown.errors, /\[409 run_finished\]/);
});

test("publish: the runs that an event starts", async () => {
  const event = freshId("event");
  const triggered = workflow({ nodes: [{ id: "only" }], trigger: { event } });
  await curfew.store(triggered);
  assert.match(await ok("publish", event, '{"order": 7}', "--key", "k1"), new RegExp(`  ${triggered.id}  started\n$`));
  assert.match(await ok("publish", event, '{"order": 7}', "--key", "k1"), /started before\n$/);
  assert.match((await run(["publish", freshId("nothing")])).errors, /^no workflow has the trigger/);
});

test("breakers: the list, and closing one", async () => {
  const key = freshId("breaker");
  const action = { kind: "http_request", implementation: { url: `${peer.url}/status/500` }, execution: { breaker: key, retry_policy: { max_attempts: 3, initial_delay_ms: 1 } } };
  await curfew.runToEnd(oneTask([{ action }]));
  await until("the breaker in the list", async () => (await json("breakers")).some((breaker: { key: string; state: string }) => breaker.key === key && breaker.state === "open"));
  assert.match(await ok("breakers"), new RegExp(`\n${key} +open +3 `));
  assert.equal((await json("breakers", "--reset", key)).state, "closed");
});

test("with --json every verb prints one value, also where text would be a note", async () => {
  const id = await startGated();
  for (const line of [["runs", "--tag", "nothing"], ["inbox", "--run", "nothing"], ["run", id], ["pause", id], ["resume", id], ["help"], ["help", "start"], ["version"], ["breakers"]]) await json(...line);
  const refused = await run(["run", "no-such-run", "--json"]);
  assert.deepEqual([refused.code, refused.out, JSON.parse(refused.errors).error.code], [1, "", "not_found"]);
});

test("colours: none in a pipe, some if they are forced, none with NO_COLOR", async () => {
  const { id } = await curfew.runToEnd(workflow({ nodes: [{ id: "only" }] }));
  const colour = async (environment: Record<string, string>) => (await run(["run", id], { environment })).out.includes("\u001b[32mcompleted\u001b[0m");
  assert.deepEqual([await colour({}), await colour({ FORCE_COLOR: "1" }), await colour({ FORCE_COLOR: "1", NO_COLOR: "1" })], [false, true, false]);
});

test("completions ask for ids of workflows and runs", async () => {
  const document = workflow({ id: freshId("completed"), nodes: [{ id: "only" }] });
  const ended = await curfew.runToEnd(document);
  assert.equal(await ok("__complete", "--", "start", "complet"), `${document.id}\n`);
  await until("the run in the list", async () => (await ok("__complete", "--", "watch", ended.id.slice(0, 12))) === `${ended.id}\n`);
});

test("a token that is missing or too weak is exit code 7, with what to set", async () => {
  const secured = await startCurfew({ vars: roleVars });
  try {
    const missing = await runCommand(secured.url, ["runs"]);
    assert.equal(missing.code, 7);
    assert.match(missing.errors, /\[401 unauthorized\]\nset CURFEW_TOKEN \(or --token\)/);
    const weak = await runCommand(secured.url, ["cancel", "r1"], { environment: { CURFEW_TOKEN: READ } });
    assert.equal(weak.code, 7);
    assert.match(weak.errors, /\[403 forbidden\]/);
    assert.equal((await runCommand(secured.url, ["runs", "--token", READ])).code, 0);
  } finally {
    await secured.dispose();
  }
});
