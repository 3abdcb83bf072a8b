// `curfew watch` against the real Worker: lines in a pipe, a screen on a terminal, a connection that is lost, Ctrl-C. And questions that
// are asked on a terminal.
import assert from "node:assert/strict";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { after, before, test } from "node:test";
import { runCommandLine } from "../../cli/cli.ts";
import { testTerminal } from "../../cli/test_terminal.ts";
import { runCommand, startCommand } from "./command-line.ts";
import { check, fan, oneTask, request, workflow } from "./document-builders.ts";
import { startCurfew, type Curfew } from "./harness.ts";
import { startPeer, type Peer } from "./peer.ts";
import { until } from "./poll.ts";

let curfew: Curfew;
let peer: Peer;
before(async () => {
  [curfew, peer] = await Promise.all([startCurfew(), startPeer()]);
});
after(async () => {
  await Promise.all([curfew.dispose(), peer.close()]);
});

const gated = () => workflow({ nodes: [{ id: "first" }, { id: "ask", gate: { timeout: "1h" } }, { id: "last" }], transitions: [{ from_node_id: "first", to_node_id: "ask" }, { from_node_id: "ask", to_node_id: "last" }] });
const startGated = async () => {
  const id = await curfew.storeAndStart([gated()]);
  await until("the gate", async () => (await curfew.run(id)).status === "waiting");
  return id;
};
const approve = async (id: string) => assert.equal((await curfew.api("POST", `/v1/runs/${id}/gates/g2`, { choice: "approve" })).status, 200);

/** The command in this process, on a terminal of the test. */
function onTerminal(line: string[], size = { columns: 80, rows: 24 }, url = curfew.url) {
  const terminal = testTerminal(size);
  const ended = runCommandLine(line, { CURFEW_URL: url, NO_COLOR: "1" }, terminal);
  return { terminal, ended };
}

test("in a pipe each event is a line, and the last ones say how the run ended", async () => {
  const id = await startGated();
  const watching = startCommand(curfew.url, ["watch", id]);
  await until("the gate in the output", async () => watching.printed.out.includes("gate_opened"));
  await approve(id);
  const { code, out, errors } = await watching.finished;
  assert.deepEqual([code, errors], [0, ""]);
  const events = await curfew.events(id);
  const lines = out.trimEnd().split("\n");
  assert.deepEqual(lines.slice(0, events.length).map((line) => line.split(" ")[1]), events.map(({ kind }) => kind));
  assert.match(out, /^\d\d:\d\d:\d\d gate_opened ask t2 gate_id=g2 gate_kind=node$/m);
  assert.match(lines[events.length]!, new RegExp(`^${id}  completed after `));
});

test("with --json each event is a line of JSON, with ISO times", async () => {
  const id = await startGated();
  await approve(id);
  const { code, out } = await runCommand(curfew.url, ["watch", id, "--json"]);
  assert.equal(code, 0);
  const events = out.trimEnd().split("\n").map((line) => JSON.parse(line));
  assert.deepEqual(events.map(({ seq }) => seq), (await curfew.events(id)).map(({ seq }) => seq));
  assert.match(events[0].at, /^\d{4}-.*Z$/);
});

test("the end of the run is the exit code, also of a run that has ended before", async () => {
  const failed = await curfew.runToEnd(oneTask([check("false", "no")]));
  const { code, out } = await runCommand(curfew.url, ["watch", failed.id]);
  assert.equal(code, 3);
  assert.match(out, /run_failed/);
  assert.match(out, /failed after .*\n.*no/);
  assert.equal((await runCommand(curfew.url, ["watch", "no-such-run"])).code, 1);
});

test("a connection that is lost is made again, and every event is printed once", async () => {
  const id = await startGated();
  const proxy = await cuttingProxy(curfew.url);
  try {
    const watching = startCommand(proxy.url, ["watch", id]);
    await until("the gate in the output", async () => watching.printed.out.includes("gate_opened"));
    proxy.cut();
    await approve(id);
    const { code, out, errors } = await watching.finished;
    assert.equal(code, 0, errors);
    const events = await curfew.events(id);
    assert.deepEqual(out.trimEnd().split("\n").slice(0, events.length).map((line) => line.split(" ")[1]), events.map(({ kind }) => kind));
    assert.ok(proxy.connections() > 1);
  } finally {
    proxy.close();
  }
});

test("a terminal shows the end of a run though Curfew was away in between", async () => {
  const id = await startGated();
  const proxy = await cuttingProxy(curfew.url);
  try {
    const { terminal, ended } = onTerminal(["watch", id], undefined, proxy.url);
    await until("the gate on the screen", async () => terminal.screen().lines.includes(`  curfew decide ${id} g2`));
    await proxy.refuse(async () => {
      // The screen asks once within 1.5 s, and again three times.
      const asked = Date.now() + 4_000;
      await until("a question without an answer", async () => Date.now() > asked);
    });
    await approve(id);
    assert.equal(await ended, 0, terminal.errors);
    assert.match(terminal.screen().lines[0]!, new RegExp(`^${id}  completed  `));
  } finally {
    proxy.close();
  }
});

test("start --wait goes on waiting while Curfew is away, and names the run", async () => {
  const document = gated();
  await curfew.store(document);
  const proxy = await cuttingProxy(curfew.url);
  try {
    const waiting = startCommand(proxy.url, ["start", document.id, "--id", `${document.id}-run`, "--wait"]);
    await until("the gate", async () => waiting.printed.errors.includes("waits for a person"));
    await proxy.refuse(() => until("the note", async () => waiting.printed.errors.includes(`Curfew does not answer; asking for ${document.id}-run again`)));
    await approve(`${document.id}-run`);
    const { code, out, errors } = await waiting.finished;
    assert.equal(code, 0, errors);
    assert.match(out, new RegExp(`^${document.id}-run  completed`));
  } finally {
    proxy.close();
  }
});

test("Ctrl-C ends the watch with 130, and the run goes on", async () => {
  const id = await startGated();
  const watching = startCommand(curfew.url, ["watch", id]);
  await until("the gate in the output", async () => watching.printed.out.includes("gate_opened"));
  watching.process.kill("SIGINT");
  const { code, errors } = await watching.finished;
  assert.equal(code, 130);
  assert.equal(errors, `the run goes on; watch it again: curfew watch ${id}\n`);
  assert.equal((await curfew.run(id)).status, "waiting");
});

test("a pipe that is closed early is no failure", async () => {
  const { id } = await curfew.runToEnd(workflow({ nodes: [{ id: "only" }] }));
  const watching = startCommand(curfew.url, ["watch", id]);
  watching.process.stdout.destroy();
  assert.deepEqual(await watching.finished, { code: 0, out: "", errors: "" });
});

test("on a terminal the screen is redrawn in place until the run ends", async () => {
  const id = await startGated();
  const { terminal, ended } = onTerminal(["watch", id]);
  await until("the gate on the screen", async () => terminal.screen().lines.includes(`  curfew decide ${id} g2`));
  const shown = terminal.screen();
  assert.equal(shown.isCursorShown, false);
  assert.match(shown.lines[0]!, new RegExp(`^${id}  waiting  .*30s left of 30s, stopped  `));
  assert.match(shown.lines[1]!, /^ask waits for a person, (59m\d+s|1h0m0s) left$/);
  assert.match(shown.lines.at(-1)!, /^ask +awaiting human +(59m\d+s|1h0m0s) left$/);
  terminal.resize(100, 24);
  await approve(id);
  assert.equal(await ended, 0);
  const last = terminal.screen();
  assert.equal(last.isCursorShown, true);
  assert.match(last.lines[0]!, new RegExp(`^${id}  completed  `));
  assert.deepEqual(last.lines.slice(3, 6).map((line) => line.split(/ +/).slice(0, 2).join(" ")), ["first completed", "ask completed", "last completed"]);
  assert.equal(last.lines.filter((line) => line.startsWith(id)).length, 1, "one frame is left");
});

test("deadlines count down, and progress is shown while a task is at work", async () => {
  // Two tokens that begin together share an invocation, whose executor sends progress.
  const steps = [request({ url: `${peer.url}/held/progress` }, { ref: "one" }), request({ url: `${peer.url}/ok` }, { ref: "two" })];
  const document = workflow({
    nodes: [{ id: "begin" }, ...["left", "right"].map((id) => ({ id, task_id: "work", timeout: "20s" }))],
    transitions: ["left", "right"].map((id) => ({ from_node_id: "begin", to_node_id: id })),
    tasks: [{ id: "work", steps }],
  });
  const id = await curfew.storeAndStart([document]);
  const { terminal, ended } = onTerminal(["watch", id]);
  const left = () => Number(/ (\d+)s left +step 1\/2 one/.exec(terminal.screen().lines.join("\n"))?.[1] ?? NaN);
  const first = await until("the progress", async () => !Number.isNaN(left()) && left());
  await until("less time", async () => left() < first);
  peer.release("progress");
  assert.equal(await ended, 0);
});

test("a wide fan-out fits a small terminal, and no frame is written in two parts", async () => {
  const urls = Array.from({ length: 100 }, (_, index) => `${peer.url}/held/wide?n=${index}`);
  const document = fan({});
  await curfew.store(document);
  const id = await curfew.start(document.id, { urls });
  const { terminal, ended } = onTerminal(["watch", id], { columns: 60, rows: 10 });
  await until("the branches", async () => terminal.screen().lines.some((line) => /^work x100 +\d+ /.test(line)));
  peer.release("wide");
  assert.equal(await ended, 0);
  const frames = terminal.writes.filter((write) => write.includes("\u001b[?2026h"));
  assert.ok(frames.length > 1);
  assert.ok(frames.every((write) => write.endsWith("\u001b[?2026l")));
});

test("an interrupt gives the cursor back", async () => {
  const id = await startGated();
  const { terminal, ended } = onTerminal(["watch", id]);
  await until("the screen", async () => terminal.screen().lines.length > 3);
  terminal.interrupt();
  assert.equal(await ended, 130);
  assert.equal(terminal.screen().isCursorShown, true);
  assert.match(terminal.errors, /the run goes on/);
});

test("start --watch is a start and a watch", async () => {
  const document = workflow({ nodes: [{ id: "only" }], output_mapping: { done: true } });
  await curfew.store(document);
  const { terminal, ended } = onTerminal(["start", document.id, "--id", `${document.id}-run`, "--watch"]);
  assert.equal(await ended, 0);
  assert.match(terminal.screen().lines[0]!, new RegExp(`^${document.id}-run  completed`));
  assert.deepEqual(terminal.screen().lines.slice(-3), ["{", '  "done": true', "}"]);
});

test("without a choice decide asks, again after a wrong one; the end of the input decides nothing", async () => {
  const document = workflow({ nodes: [{ id: "ask", gate: { prompt: "Pay?", timeout: "1h", input_schema: { type: ["object", "null"] } } }], output_mapping: "${state.ask}" });
  const id = await curfew.storeAndStart([document]);
  const silent = onTerminal(["decide", id, "ask"]);
  assert.equal(await silent.ended, 130);
  assert.match(silent.terminal.errors, /Pay\?\n {2}1\) approve\n {2}2\) reject\nchoice \(a number or a name\): curfew: nothing was decided\n$/);

  const terminal = testTerminal({ columns: 80, rows: 24 });
  terminal.answers = ["3", "maybe", "2", "{broken", '{"why": "late"}'];
  assert.equal(await runCommandLine(["decide", id, "ask"], { CURFEW_URL: curfew.url, NO_COLOR: "1" }, terminal), 0);
  assert.match(terminal.errors, /choose one of approve, reject\n(.*\n)*.*choose one of approve, reject/);
  const { output } = await curfew.ended(id);
  assert.deepEqual([(output as any).choice, (output as any).input], ["reject", { why: "late" }]);
});

/** A proxy whose connections can be cut. */
async function cuttingProxy(target: string): Promise<{ url: string; cut(): void; refuse(during: () => Promise<unknown>): Promise<void>; connections(): number; close(): void }> {
  const sockets = new Set<Socket>();
  let connections = 0;
  const server = createServer((client) => {
    connections++;
    const upstream = connect(Number(new URL(target).port), "127.0.0.1");
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => socket.destroy());
      socket.on("close", () => sockets.delete(socket));
    }
    client.pipe(upstream);
    upstream.pipe(client);
  });
  const listen = (port: number) => new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  await listen(0);
  const { port } = server.address() as AddressInfo;
  const cut = () => sockets.forEach((socket) => socket.destroy());
  return {
    url: `http://127.0.0.1:${port}`,
    cut,
    refuse: async (during) => {
      server.close();
      cut();
      await during();
      await listen(port);
    },
    connections: () => connections,
    close: () => {
      cut();
      server.close();
    },
  };
}
