// What is known after a run: why a limit passed, and what would have been under another one.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { parseDuration } from "../../dashboard/logic/words.ts";
import { end, startBrowser, type Browser } from "./browser.ts";
import { reaches, startPeer, storeAll, until, type Peer } from "./scene.ts";
import { startServer, type Server } from "./server.ts";

let server: Server;
let peer: Peer;
let browser: Browser;
before(async () => {
  [server, peer, browser] = await Promise.all([startServer(), startPeer(), startBrowser()]);
  await storeAll(server.client);
  await server.client.start("timing", { run_id: "late", input: { base: peer.url } });
  await reaches(server.client, "late", "failed", "timed_out");
});
after(() => end(browser, server, peer));

const WHY = {
  limit: { layer: "execution", source: "node", timeout_ms: 700, pointer: "/nodes/0/timeout", document: null, preset: null, reason: null },
  outer: { layer: "workflow", run_id: "late", token_id: null, passed_first: false, left_ms: 59_000 },
  used: {
    elapsed_ms: 700,
    queued_ms: 20,
    waited_ms: 0,
    stopped_ms: null,
    attempts: [{ epoch: 1, dispatched_at: 0, queued_ms: 20, duration_ms: 680, ended: "timed_out" }],
    attempts_left_out: 0,
    calls: [{ step_ref: "ask", status: "timed_out", calls: 1, duration_ms: 680, backoff_ms: 0 }],
  },
  usual: { workflow_id: "timing", node_id: "think", samples: 30, p50_ms: 400, p99_ms: 1_900, source: "latencies", reason: null },
  smallest_limit_ms: 2_500,
  more_than_ms: 700,
  smallest_limit_reason: "its result came 2.5s after it was sent, and <b>was discarded</b>\u202e",
  change: [{ op: "replace", path: "/nodes/0/timeout", value: "2500ms" }],
};

/** The record of the server with this instead of what it says of why. */
const explain = (page: Page, why: unknown) =>
  page.route(/\/v1\/runs\/late\/timeouts\/\d+$/, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...(await response.json()), why } });
  });

/** The server gives no export, and replays by itself: with a limit of 2 s or more the run completes. */
const replay = async (page: Page, asked: unknown[]) => {
  await page.route(/\/v1\/runs\/late\/export$/, (route) => route.fulfill({ status: 403, json: { error: { code: "forbidden", message: "the run calls workflows that this credential is not for" } } }));
  await page.route(/\/v1\/runs\/late\/what-if$/, async (route) => {
    const body = route.request().postDataJSON() as { changes: { path: string; value: string }[] };
    asked.push(body);
    const change = body.changes.find(({ path }) => path === "/nodes/0/timeout");
    const seconds = (change === undefined ? 700 : parseDuration(change.value)!) / 1_000;
    const recorded = { status: "failed", duration_ms: 2_400, error: { code: "execution_timeout", message: "too late" }, output: null, tokens: [], timeouts: [] };
    const token = { token_id: "t1", node_id: "think", created_at_ms: 0, started_at_ms: 20, timeout_ms: seconds * 1_000, retry_count: 0 };
    const replayed =
      seconds >= 2
        ? { ...recorded, status: "completed", duration_ms: 2_500, error: null, tokens: [{ ...token, status: "completed", ended_at_ms: 2_500 }] }
        : { ...recorded, tokens: [{ ...token, status: "timed_out", ended_at_ms: 2_400 }], timeouts: [{ node_id: "think", token_id: "t1", scope: "step", timeout_ms: seconds * 1_000, at_ms: 700, final_action: "retry" }] };
    const differences = seconds >= 2 ? [{ what: "status", recorded: "failed", replayed: "completed", message: "the run completes instead of failing" }] : [];
    await route.fulfill({ json: { recorded, replayed, differences, unknown: seconds > 5 ? [{ node_id: "think", token_id: "t1", epoch: 1, at_ms: 3_000, message: "the call was cut before it answered" }] : [] } });
  });
};

test("a record says why: the limit, what used the time, what is usual, and the limit that would have held", async () => {
  const page = await browser.open();
  await explain(page, WHY);
  await page.goto(`${server.url}/runs/late?view=timeouts`);
  const first = page.locator("article").first();
  await first.getByText("The limit of an attempt was 700 ms, written at the node.").waitFor();
  await first.getByText("/nodes/0/timeout").first().waitFor();
  await first.getByText("The limit of the run had 59 s left.").waitFor();
  await first.getByText("Usually half of the runs of think are done in 400 ms, 99 of 100 in 1.9 s (30 samples).").waitFor();
  await first.getByText("A limit of 2.5 s would have held").waitFor();
  await first.getByRole("group", { name: "What used the time" }).getByText("attempts").waitFor();
  await first.locator('td [data-status="timed_out"]').waitFor();
  assert.equal(await page.locator("main b b, article p b:has-text('discarded')").count(), 0, "it is text");
  await first.getByText("⟨U+202E⟩").waitFor();
  // The others are asked for when they are opened.
  const second = page.locator("article").nth(1);
  assert.equal(await second.locator(".why").count(), 0);
  await second.getByText("Why it timed out").click();
  await second.locator(".why").waitFor();
});

test("the server's own record says why", async () => {
  const page = await browser.open();
  await page.goto(`${server.url}/runs/late?view=timeouts`);
  const first = page.locator("article").first();
  await first.getByText("The limit of an attempt was 700 ms, written at the node.").waitFor();
  await first.locator('.why td [data-status="timed_out"]').first().waitFor();
  await first.getByRole("group", { name: "What used the time" }).waitFor();
  await first.locator(".why .note-box").getByText(/limit would have held/).waitFor();
});

test("a record without it, or with fields of a later version, is shown all the same", async () => {
  const page = await browser.open();
  await explain(page, undefined);
  await page.goto(`${server.url}/runs/late?view=timeouts`);
  await page.getByText("This server does not say why.").first().waitFor();
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await explain(page, { limit: { layer: "orbit", source: "moon" }, used: { attempts: [{ ended: "eclipsed" }], phases: 4 }, outer: null, usual: null, smallest_limit_ms: null });
  await page.reload();
  await page.getByText("The limit of orbit passed, written at the moon.").waitFor();
  await page.locator('[data-status="eclipsed"]').waitFor();
});

test("without an export the server replays; limits come from the record or by sliders, and the address has them", async () => {
  const page = await browser.open();
  const asked: any[] = [];
  await explain(page, WHY);
  await replay(page, asked);
  await page.goto(`${server.url}/runs/late?view=timeouts`);
  await page.getByRole("link", { name: "Replay the run with this limit" }).first().click();
  await page.getByText("Recorded: failed after 2.4 s. Replayed: completed after 2.5 s.").waitFor();
  assert.deepEqual(asked.at(-1), { changes: [{ op: "replace", path: "/nodes/0/timeout", value: "2500ms" }], durations: [] });
  await page.getByRole("list", { name: "Differences" }).getByText("the run completes instead of failing").waitFor();
  await page.locator('.simulator .timeline .lane:has-text("think")').waitFor();

  await page.getByRole("button", { name: "back to 700ms" }).click();
  await page.getByText("It would have been the same: failed after 2.4 s.").waitFor();
  assert.deepEqual(asked.at(-1), { changes: [], durations: [] });
  await page.getByRole("list", { name: "Limits that would have passed" }).getByText("think t1").waitFor();

  await page.getByRole("slider", { name: "the limit of think" }).focus();
  await page.keyboard.press("End");
  await page.getByText("The recording does not say everything.").waitFor();
  await page.waitForURL(/limits=%2Fnodes%2F0%2Ftimeout%3D70000/);
  await page.reload();
  await page.getByText("the call was cut before it answered").waitFor();
});

test("the engine replays in the page: unchanged it is the same, under a shorter limit or with a longer call the run fails", async () => {
  peer.release("third");
  await server.client.start("steps", { run_id: "in-time", input: { base: peer.url } });
  await reaches(server.client, "in-time", "completed");
  const page = await browser.open();
  const asked: string[] = [];
  page.on("request", (request) => asked.push(`${request.method()} ${new URL(request.url()).pathname}`));
  await page.goto(`${server.url}/runs/in-time?view=what_if`);
  await page.getByText(/It would have been the same: completed after/).waitFor();
  await page.locator('.simulator .timeline .lane:has-text("third")').waitFor();
  // The second call took 900 ms.
  await page.getByRole("textbox", { name: "the limit of second, as text" }).fill("500ms");
  await page.getByText(/Replayed: failed after/).waitFor();
  await page.getByRole("list", { name: "Differences" }).getByText("the run would be failed instead of completed").waitFor();
  await page.getByRole("list", { name: "Limits that would have passed" }).getByText("second").waitFor();
  await page.getByRole("button", { name: "back to 5s" }).click();
  await page.getByText(/It would have been the same: completed after/).waitFor();

  // Its limit is 5 s.
  await page.getByRole("textbox", { name: "second takes, as text" }).fill("4s");
  // The other calls take as long as they took.
  await page.getByText(/Replayed: completed after [4-9]\.\d s/).waitFor();
  await page.getByRole("textbox", { name: "second takes, as text" }).fill("6s");
  await page.getByText(/Replayed: failed after ([5-9]\.\d|\d\d) s/).waitFor();
  await page.waitForURL(/durations=node%2Fsecond%3D6000/);
  await page.reload();
  await page.getByText(/Replayed: failed after ([5-9]\.\d|\d\d) s/).waitFor();
  await page.getByRole("slider", { name: "second takes" }).focus();
  await page.keyboard.press("Home");
  await page.getByText(/Replayed: completed after/).waitFor();
  assert.equal((await server.client.run("in-time")).status, "completed");
  assert.deepEqual(asked.filter((path) => path.endsWith("/what-if")), [], "by the engine in the page");
  assert.equal(asked.filter((path) => path.endsWith("/export")).length, 2, "once for each time the page was opened");

  // The hanging call was cut: what it would have answered is not recorded.
  await page.goto(`${server.url}/runs/late?view=what_if&limits=${encodeURIComponent("/nodes/0/timeout=5000")}`);
  await page.getByText("The recording does not say everything.").waitFor();
  await page.getByText(/The replay stops after/).waitFor();
});

test("a person who takes longer, in a run that waits", async () => {
  await server.client.start("review", { run_id: "reviewed", input: { title: "A new chair", amount: 120 } });
  const gate = await until("the gate", async () => (await server.client.gates({ run: "reviewed" })).items[0]);
  await server.client.decide("reviewed", gate.id, { choice: gate.choices[0]! });
  await reaches(server.client, "reviewed", "completed");
  const page = await browser.open();
  await page.goto(`${server.url}/runs/reviewed?view=what_if`);
  const after = page.getByRole("textbox", { name: `${gate.node_id} is decided after, as text` });
  await after.fill("30m");
  await page.getByText(/Replayed: completed after 30m/).waitFor();
});

test("a server that replays nothing does not offer it", async () => {
  const page = await browser.open();
  await page.route(/\/export$/, (route) => route.fulfill({ status: 404, json: { error: { code: "not_found", message: "there is no such path" } } }));
  await page.goto(`${server.url}/runs/late`);
  await page.getByRole("tab", { name: "What if" }).click();
  await page.getByRole("tab", { name: /Graph/, selected: true }).waitFor();
  assert.equal(await page.getByRole("tab", { name: "What if" }).count(), 0);
});

test("what was undone is said, at the nodes, too, and until then the run has no controls", async () => {
  peer.route("/charge", () => ({ status: 422, body: { error: "declined" } }));
  await server.client.start("undone", { run_id: "undone-1", input: { base: peer.url } });
  await reaches(server.client, "undone-1", "compensating");
  const page = await browser.open();
  await page.goto(`${server.url}/runs/undone-1`);
  await page.locator('[data-node="book-flight"] .node-count', { hasText: "being undone" }).waitFor();
  await page.locator('[data-node="book-hotel"] .node-count', { hasText: "not undone" }).waitFor();
  assert.equal(await page.getByRole("group", { name: "Controls" }).getByRole("button").count(), 0);
  assert.equal(await page.locator(".handle").count(), 0);
  peer.release("undo");
  const result = page.getByRole("region", { name: "Compensation" });
  await result.getByText("Some work was not undone").waitFor();
  await result.getByText(/^book-flight\s+t1\s+was undone$/).waitFor();
  await result.getByText(/^book-hotel\s+t2\s+was not undone: .*500/).waitFor();
  await result.locator('[data-status="completed"]').waitFor();
  await page.getByRole("button", { name: "Restart …" }).click();
  await until("the nodes to begin at", async () => (await page.getByRole("dialog").locator("option").allTextContents()).join().startsWith("the start,book-flight"));
  assert.equal(await page.getByRole("dialog").locator("option").count(), 4, "end handlers are no nodes");
});

test("a run whose document was wrong goes on with the version that was fixed", async () => {
  const branch = (condition: string) => ({ id: "fixed", timeout: "1m", nodes: [{ id: "ask" }, { id: "answer" }], transitions: [{ from_node_id: "ask", to_node_id: "answer", condition }] });
  await server.client.put("workflows", branch("input.amount > 3"));
  await server.client.start("fixed", { run_id: "fixed-1", input: { amount: 1 } });
  await reaches(server.client, "fixed-1", "failed");
  const page = await browser.open();
  await page.goto(`${server.url}/runs/fixed-1`);
  await page.getByText("Fix the document first.").waitFor();
  await server.client.put("workflows", branch("input.amount > 0"));
  await page.getByLabel("On version").waitFor();
  assert.equal(await page.getByLabel("On version").locator("option:checked").textContent(), "2, the newest");
  await page.locator(".way.recommended button").click();
  await page.locator('.page-head [data-status="completed"]').waitFor();
  assert.equal((await server.client.run("fixed-1")).version, 2);
});

test("the time in which a called run waited for a person is hatched, and the delays between calls are drawn", async () => {
  await server.client.put("workflows", { id: "asking", timeout: "10m", nodes: [{ id: "call", workflow_id: "review" }] });
  await server.client.start("asking", { run_id: "asking-1", input: { title: "x", amount: 1 } });
  await reaches(server.client, "asking-1", "waiting");
  const page = await browser.open();
  await page.goto(`${server.url}/runs/asking-1`);
  await page.locator(".timeline .budget .hatch rect").waitFor();

  peer.route("/flaky", (_, times) => (times === 1 ? { status: 503, body: {} } : { body: {} }));
  const flaky = { id: "flaky", kind: "http_request", implementation: { method: "GET", url: "${input.base}/flaky" }, execution: { retry_policy: { max_attempts: 2, initial_delay: "400ms" } } };
  await server.client.put("workflows", { id: "repeats", timeout: "1m", nodes: [{ id: "call", action_id: "flaky" }], actions: [flaky] } as { id: string });
  await server.client.start("repeats", { run_id: "repeats-1", input: { base: peer.url } });
  await reaches(server.client, "repeats-1", "completed");
  await page.goto(`${server.url}/runs/repeats-1`);
  await page.locator(".timeline .rows .span-backoff").waitFor();
  assert.equal(await page.locator(".timeline .rows .span-attempt.good").count(), 2, "both calls are of one attempt");
});
