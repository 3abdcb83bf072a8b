// Progress of attempts with a model that streams slowly: the text so far is on the token while the call is open, in both lanes that
// have an executor, and in the records of timeouts.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { assertCompleted } from "./assertions.ts";
import { fan, freshId, oneTask, request, type WorkflowDocument } from "./document-builders.ts";
import { startCurfew, type Curfew } from "./harness.ts";
import { startPeer, type Peer, type Reply } from "./peer.ts";
import { until } from "./poll.ts";
import { watch, type Watcher } from "./watcher.ts";
import type { TokenView } from "./api-types.ts";

const KEY = "sk-0123456789-abcdef";

/** Direct calls only. */
let curfew: Curfew;
/** With the queue; a heartbeat, and with it a row, every 500 ms at most. Objects can be evicted. */
let queue: Curfew;
/** Its executor hangs, and is of an older build: it knows neither heartbeats nor progress. */
let withOlderExecutor: Curfew;
let peer: Peer;
before(async () => {
  const executorVars = { CURFEW_SECRETS: "LLM_KEY", LLM_KEY: KEY };
  const vars = { CURFEW_QUEUE: "on", CURFEW_HEARTBEAT_MS: "500", CURFEW_SILENCE_MS: "2500" };
  [peer, curfew, queue, withOlderExecutor] = await Promise.all([
    startPeer(),
    // A test calls the executor itself.
    startCurfew({ executorVars, separateExecutor: true }),
    startCurfew({ executorVars, vars, entry: "tests/workerd/workers/evicting-coordinator.mjs" }),
    startCurfew({ vars: { CURFEW_QUEUE: "on" }, executor: "tests/workerd/workers/older-executor.mjs" }),
  ]);
});
after(() => Promise.all([curfew.dispose(), queue.dispose(), withOlderExecutor.dispose(), peer.close()]));

const chunk = (content: string): Uint8Array =>
  Buffer.from(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason: null }] })}\n\n`);
const DONE = Buffer.from('data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n');

/** A model that streams these texts; its step and the path of its requests. */
function model(texts: string[], { everyMs = 1, ends = false, reply }: { everyMs?: number; ends?: boolean; reply?: (times: number) => Reply | undefined } = {}) {
  const name = freshId("m");
  const path = `/${name}/chat/completions`;
  const chunks = [...texts.map(chunk), ...(ends ? [DONE] : [])];
  const stream = { chunks, everyMs, then: ends ? ("end" as const) : ("hang" as const) };
  peer.route(path, (_seen, times) => reply?.(times) ?? { headers: { "content-type": "text/event-stream" }, stream });
  const implementation = { provider: "openai", model: name, prompt: "Tell a story", base_url: `${peer.url}/${name}`, api_key: "${secret.LLM_KEY}" };
  const execution = { retry_policy: { max_attempts: 3, initial_delay_ms: 10 } };
  return { path, step: { ref: "ask", action: { kind: "llm_call", implementation, execution } } };
}

async function started(at: Curfew, document: WorkflowDocument): Promise<string> {
  await at.store(document);
  return at.start(document.id);
}

/** The first token whose progress is as `isWanted` says. */
function progressed(at: Curfew, runId: string, isWanted: (progress: NonNullable<TokenView["progress"]>) => boolean) {
  return until("the progress", async () => (await at.tokens(runId)).find(({ progress }) => progress && isWanted(progress)));
}

const textOf = ({ progress }: TokenView): string | undefined => progress?.partial.at(-1)?.text;

const isOpen = (path: string): boolean => peer.seen(path).every(({ closedAt }) => closedAt === undefined);

for (const lane of ["direct", "queue"] as const) {
  // The local queue delivers one batch at a time.
  describe(`lane ${lane}`, { concurrency: lane === "direct" ? 6 : 1 }, () => {
    const at = () => (lane === "queue" ? queue : curfew);
    const task = { dispatch: lane };

    test("the text so far is on the token while the call is open", async () => {
      const { path, step } = model(["Once ", "upon ", "a time"], { everyMs: 1_500, ends: true });
      const id = await started(at(), oneTask([step], { task, node: { timeout: "20s" } }));
      const first = await progressed(at(), id, ({ partial }) => partial.length > 0);
      assert.ok(isOpen(path), "the call is open");
      const since = Date.now() - peer.seen(path)[0]!.at;
      assert.ok(since < 1_500 + 2_000, `the first text came ${since} ms after the request, and was sent after 1500 ms`);
      const { at: seenAt, ...shown } = first.progress!;
      assert.deepEqual(shown, { step_ref: "ask", step_index: 0, steps_total: 1, attempt: 1, partial: [{ name: "ask", complete: false, bytes: 5, text: "Once " }] });
      assert.ok(seenAt >= first.started_at! && seenAt <= Date.now());
      assert.deepEqual([first.lane, first.status], [lane, "executing"]);
      const second = await progressed(at(), id, ({ partial }) => partial[0]?.text === "Once upon ");
      assert.ok(second.progress!.at - seenAt >= 900, "at most once a second");
      const run = await at().ended(id);
      assertCompleted(run);
      assert.equal(run.output.text, "Once upon a time");
      assert.deepEqual((await at().tokens(id)).map(({ progress }) => progress), [undefined]);
    });

    test("the text so far is in the live stream, and is sent at once to a client that comes later", async () => {
      const { step } = model(["Once ", "upon ", "a time"], { everyMs: 1_500, ends: true });
      const id = await started(at(), oneTask([step], { task, node: { timeout: "20s" } }));
      const watcher = await watch(at().url, id);
      const other = await watch(at().url, id, "?kinds=run_completed");
      const texts = (from: Watcher) => from.sent.filter(({ event }) => event === "progress").map(({ data }) => data.partial[0]?.text);
      const [token] = await until("progress", () => (texts(watcher).includes("Once ") ? at().tokens(id) : undefined));
      const late = await watch(at().url, id, "?kinds=progress");
      await until("the progress so far", () => texts(late).length > 0);
      const sent = watcher.sent.find(({ event }) => event === "progress")!;
      assert.equal(sent.id, undefined, "progress has no number: a client that connects again continues with events");
      const { kind, token_id, node_id, epoch } = sent.data;
      assert.deepEqual({ kind, token_id, node_id, epoch }, { kind: "progress", token_id: token!.id, node_id: token!.node_id, epoch: 1 });
      const events = await watcher.ended();
      assert.equal(events.at(-1)?.kind, "run_completed");
      assert.ok(texts(watcher).includes("Once upon "));
      assert.deepEqual(events, await at().events(id), "the history is whole");
      await Promise.all([other.ended(), late.ended()]);
      assert.deepEqual(texts(other), [], "who asks for other kinds gets no progress");
      assert.deepEqual(late.events(), []);
    });

    test("finished steps, the step under way and its retries are shown", async () => {
      const held = freshId("k");
      const failing = (times: number): Reply | undefined => (times === 1 ? { status: 503, body: { error: "busy" } } : undefined);
      const { step } = model(["Once "], { reply: failing });
      const steps = [request({ url: `${peer.url}/held/${held}` }, { ref: "look" }), step];
      const id = await started(at(), oneTask(steps, { task, node: { timeout: "20s" } }));
      const looking = await progressed(at(), id, () => true);
      assert.deepEqual([looking.progress?.step_ref, looking.progress?.step_index, looking.progress?.steps_total], ["look", 0, 2]);
      peer.release(held);
      const asking = await progressed(at(), id, ({ partial }) => partial.length === 2);
      assert.deepEqual([asking.progress?.step_ref, asking.progress?.step_index, asking.progress?.attempt], ["ask", 1, 2]);
      const [looked, asked] = asking.progress!.partial;
      assert.deepEqual([looked?.name, looked?.complete, JSON.parse(looked?.text ?? "").status], ["look", true, 200]);
      assert.deepEqual(asked, { name: "ask", complete: false, bytes: 5, text: "Once " });
      await at().api("POST", `/v1/runs/${id}/cancel`, {});
    });

    test("nothing of a secret is shown, wherever the text ends", async () => {
      const halves = ["the key is ", KEY.slice(0, 3), KEY.slice(3, 9), KEY.slice(9), " and again ", KEY.slice(0, 7)];
      const { step } = model(halves, { everyMs: 700 });
      const id = await started(at(), oneTask([step], { task, node: { timeout: "20s" } }));
      const shown = new Set<string>();
      await until("the end of the text", async () => {
        const [token] = await at().tokens(id);
        const text = token && textOf(token);
        if (text !== undefined) shown.add(text);
        return text === "the key is [redacted] and again ";
      });
      for (const text of shown) assert.ok("the key is [redacted] and again ".startsWith(text), text);
      assert.ok(shown.size > 1, [...shown].join("|"));
      assert.ok(!(await at().visibleText(id)).includes("sk-"), "no part of it anywhere");
      await at().api("POST", `/v1/runs/${id}/cancel`, {});
    });

    test("progress of another attempt is a 409 and changes nothing", async () => {
      const { step } = model(["Once "]);
      const id = await started(at(), oneTask([step], { task, node: { timeout: "20s" } }));
      await progressed(at(), id, ({ partial }) => partial.length > 0);
      const progress = { step_ref: "ask", step_index: 0, steps_total: 1, attempt: 7, partial: [] };
      for (const [token_id, epoch] of [["t1", 0], ["t1", 2], ["t9", 1]]) {
        assert.equal((await at().sendToRun(id, { heartbeat: { token_id, epoch, progress } })).status, 409);
      }
      assert.equal((await at().tokens(id))[0]?.progress?.attempt, 1);
      assert.equal((await at().sendToRun(id, { heartbeat: { token_id: "t1", epoch: 1, progress } })).status, 200);
      assert.equal((await at().tokens(id))[0]?.progress?.attempt, 7);
      await at().api("POST", `/v1/runs/${id}/cancel`, {});
    });

    for (const on_timeout of ["proceed_with_available", "fail"]) {
      test(`a join that times out (${on_timeout}) records what the late branch had streamed`, async () => {
        const { step } = model(["Half a ", "story"]);
        const early = { ref: "early", condition: "input.index == 0", action: { kind: "http_request", implementation: { url: `${peer.url}/ok` } } };
        const late = { ...step, condition: "input.index > 0" };
        const document = fan({
          spawn: { spawn_count: 2 },
          work: { task_id: "tell", input_mapping: { index: "${_branch.index}" } },
          join: { timeout: "2500ms", on_timeout },
          workflow: { tasks: [{ id: "tell", steps: [early, late], ...task }] },
        });
        const run = await at().ended(await started(at(), document));
        assert.equal(run.status, on_timeout === "fail" ? "failed" : "completed", JSON.stringify(run.error));
        const [record] = await at().timeouts(run.id);
        const [token] = (await at().tokens(run.id)).filter(({ reason, branch }) => reason === "sync_timeout" && branch?.index === 1);
        assert.deepEqual(record?.partial_artifacts, [{ node_id: "work", token_id: token?.id, name: "ask", complete: false, bytes: 12, text: "Half a story" }]);
        assert.equal(record?.timeout_event.scope, "sync");
        assert.equal(record?.last_known_state.progress.at_work[0].step_ref, "ask");
      });
    }

    test("the end of the run records what was streamed", async () => {
      const { step } = model(["So far"]);
      const run = await at().ended(await started(at(), oneTask([step], { task, workflow: { timeout: "2500ms" } })));
      assert.equal(run.status, "timed_out");
      const [record] = await at().timeouts(run.id);
      assert.deepEqual(record?.partial_artifacts.map(({ node_id, token_id, text }) => [node_id, token_id, text]), [["work", "t1", "So far"]]);
    });
  });
}

test("direct: progress costs no row", async () => {
  const rows = async (everyMs: number): Promise<number> => {
    const { step } = model(["a", "b", "c", "d"], { everyMs, ends: true });
    const document = oneTask([step]);
    await curfew.store(document);
    const run = await curfew.api("POST", `/v1/workflows/${document.id}/runs?wait_ms=20000`, { input: {} });
    assertCompleted(run.json);
    return Number(/rows_written=(\d+)/.exec(run.headers.get("x-curfew-bill") ?? "")?.[1]);
  };
  assert.equal(await rows(1_100), await rows(1));
});

/** Aborts the object of a run, as a deployment does. */
async function evict(runId: string): Promise<void> {
  const runs = (await queue.miniflare.getBindings<{ RUNS: any }>("curfew")).RUNS;
  await runs.get(runs.idFromName(runId)).fetch("http://run/evict").then(
    () => assert.fail("an evicted object answers nothing"),
    () => {},
  );
}

test("queue: an object that was evicted still shows the last progress", async () => {
  const { path, step } = model(["Once upon"]);
  const id = await started(queue, oneTask([step], { task: { dispatch: "queue" }, node: { timeout: "20s" } }));
  const before = await progressed(queue, id, ({ partial }) => partial.length > 0);
  // Saved with a heartbeat; without an end of the text nothing new comes.
  await until("a row with the progress", async () => {
    await evict(id);
    const [token] = await queue.tokens(id);
    return token?.status === "executing" && textOf(token) === "Once upon";
  });
  const [again] = await queue.tokens(id);
  assert.deepEqual([again?.epoch, again?.progress?.at], [before.epoch, before.progress?.at]);
  assert.ok(isOpen(path), "the call was not interrupted");
  await queue.api("POST", `/v1/runs/${id}/cancel`, {});
});

describe("an executor of an older build", { concurrency: 2 }, () => {
  for (const lane of ["direct", "queue"] as const) {
    test(`${lane}: works as before, without progress`, async () => {
      const document = oneTask([request({ url: "http://peer.example" })], { task: { dispatch: lane } });
      await withOlderExecutor.store(document);
      const id = await withOlderExecutor.start(document.id, { answer_after_ms: 2_500 });
      await until("the attempt to run", async () => (await withOlderExecutor.run(id)).counts["executing"] === 1);
      const run = await withOlderExecutor.ended(id);
      assertCompleted(run);
      assert.deepEqual((await withOlderExecutor.tokens(id)).map(({ lane: of, epoch }) => [of, epoch]), [[lane, 1]]);
    });
  }
});

test("a coordinator of an older build gets reports and nothing else", async () => {
  const worker = await curfew.miniflare.getWorker("curfew-executor");
  const { step, path } = model(["Once ", "upon"], { everyMs: 1_200, ends: true });
  const send = async (headers: Record<string, string>): Promise<string[]> => {
    const { webSocket, headers: announced } = await worker.fetch("http://executor/execute", { headers: { upgrade: "websocket", ...headers } });
    assert.ok(webSocket);
    assert.equal(announced.has("curfew-progress-ms"), "curfew-progress-ms" in headers);
    const lines: string[] = [];
    webSocket.addEventListener("message", ({ data }) => lines.push(...String(data).trimEnd().split("\n")));
    webSocket.accept();
    const order = { run_id: "r", token_id: "t1", epoch: 1, task: { id: "t", steps: [step] }, input: {}, deadline_at: null, idempotency_key: "r:t1" };
    webSocket.send(`${JSON.stringify(order)}\n`);
    await until("the report", () => lines.some((line) => line.startsWith("{")));
    webSocket.close();
    return lines;
  };
  assert.deepEqual((await send({})).map((line) => JSON.parse(line).status), ["completed"]);
  const progress = (await send({ "curfew-progress-ms": "1" })).filter((line) => line.startsWith("progress "));
  // Asked for every millisecond, sent every second.
  assert.ok(progress.length >= 1 && progress.length <= 4, progress.join("\n"));
  assert.equal(peer.seen(path).length, 2);
});
