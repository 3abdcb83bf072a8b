// Much, large and hostile: a thousand tokens, a graph of 200 nodes, texts that try to break the page; and how fast all of it is.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { end, startBrowser, type Browser } from "./browser.ts";
import { reaches, startPeer, storeAll, type Peer } from "./scene.ts";
import { startServer, type Server } from "./server.ts";
import { large } from "./workflows.ts";

const FIRST_PAINT_MS_MAX = 500;
const LIVE_MS_MAX = 100;
const FRAME_MS_MAX = 32;
const SIXTY_A_SECOND_MS = 17.5;
const OWN_FRAME_MS_MAX = 12;
const SCROLL_FRAME_MS_MAX = 100;
const GRAPH_OF_30_MS_MAX = 200;
const GRAPH_OF_200_MS_MAX = 2_000;

let server: Server;
let peer: Peer;
let browser: Browser;
const figures: string[] = [];
before(async () => {
  [server, peer, browser] = await Promise.all([startServer(), startPeer(), startBrowser()]);
  await storeAll(server.client);
});
after(async () => {
  for (const figure of figures) console.log(figure);
  await end(browser, server, peer);
});

/**
 * The best of several rounds: other processes of the machine delay frames and answers, too. Rounds end with the first one that is below the
 * limit, so that a quiet machine needs one.
 */
async function best<Figure>(measure: (round: number) => Promise<Figure>, of: (figure: Figure) => number, below: number, rounds = 12): Promise<Figure> {
  let found = await measure(0);
  for (let round = 1; round < rounds && of(found) >= below; round += 1) {
    const next = await measure(round);
    if (of(next) < of(found)) found = next;
  }
  return found;
}

/** The processor time that the page itself takes for a frame, in ms: without what other processes take in between. */
async function ownTimeOfFrames(page: Page, frames: number, step: string): Promise<number> {
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  const busy = async (): Promise<number> => (await session.send("Performance.getMetrics")).metrics.find(({ name }) => name === "TaskDuration")!.value * 1_000;
  const before = await busy();
  await framesOf(page, frames, step);
  const after = await busy();
  await session.detach();
  return (after - before) / frames;
}

const longestFrame = (page: Page, frames: number, step: string, below: number): Promise<{ longest: number; median: number }> => best(() => framesOf(page, frames, step), ({ longest }) => longest, below);

/** The longest frame while `step` is called once a frame, without the first ones. */
const framesOf = (page: Page, frames: number, step: string): Promise<{ longest: number; median: number }> =>
  page.evaluate(
    async ([frames, step]) => {
      const act = new Function("index", step as string) as (index: number) => void;
      const lengths: number[] = [];
      let before = performance.now();
      for (let index = 0; index < (frames as number); index += 1) {
        act(index);
        const at = await new Promise<number>((resolve) => requestAnimationFrame(resolve));
        lengths.push(at - before);
        before = at;
      }
      const counted = lengths.slice(5).sort((a, b) => a - b);
      return { longest: counted.at(-1)!, median: counted[Math.floor(counted.length / 2)]! };
    },
    [frames, step] as const,
  );

test("a thousand branches stay smooth", async () => {
  await server.client.start("wide", { run_id: "thousand", input: { items: Array.from({ length: 1_000 }, (_, index) => index) } });
  await reaches(server.client, "thousand", "completed");
  const page = await browser.open();
  await page.goto(`${server.url}/runs/thousand`);
  const fold = page.getByRole("button", { name: "branch", exact: true });
  await fold.waitFor();
  assert.ok((await page.locator(".timeline .rows .lane").count()) < 10, "branches are folded at first");
  await fold.click();
  await page.locator('.timeline .lane:has-text("#3")').first().waitFor();
  const drawn = await page.locator(".timeline .rows .lane").count();
  assert.ok(drawn < 60, `${drawn} rows are drawn`);
  const { longest, median } = await longestFrame(page, 60, "document.querySelector('.timeline .rows').scrollTop = index * 400", SCROLL_FRAME_MS_MAX);
  figures.push(`1 000 tokens, scrolling the timeline: median frame ${median.toFixed(1)} ms, longest ${longest.toFixed(1)} ms`);
  // As with the zoom below: where every round was disturbed, most frames are 60 a second.
  assert.ok(longest < SCROLL_FRAME_MS_MAX || median < SIXTY_A_SECOND_MS, `the longest frame took ${longest} ms, the median ${median} ms`);
  await page.goto(`${server.url}/runs/thousand/tokens/t990`);
  await page.locator('.timeline .lane.chosen:has-text("t990")').waitFor();
});

test("a graph of 200 nodes is drawn and zoomed smoothly, one of 30 at once", async () => {
  await server.client.put("workflows", large(200));
  const page = await browser.open();
  const drawn = async (id: string): Promise<number> => {
    await page.goto(`${server.url}/workflows/${id}?view=document`);
    await page.locator("pre").waitFor();
    return page.evaluate(async () => {
      // A layout that is kept would be measured instead.
      sessionStorage.clear();
      const before = performance.now();
      document.querySelector<HTMLElement>('[role="tab"]')!.click();
      while (!document.querySelector(".node")) await new Promise(requestAnimationFrame);
      return performance.now() - before;
    });
  };
  const same = (ms: number): number => ms;
  const small = await best(() => drawn("large-30"), same, GRAPH_OF_30_MS_MAX);
  const big = await best(() => drawn("large-200"), same, GRAPH_OF_200_MS_MAX);
  figures.push(`graph of 30 nodes: ${small.toFixed(0)} ms; of 200 nodes: ${big.toFixed(0)} ms`);
  assert.ok(big < GRAPH_OF_200_MS_MAX, `200 nodes took ${big} ms`);
  assert.ok(small < GRAPH_OF_30_MS_MAX, `30 nodes took ${small} ms`);
  const zoom = "document.querySelector('.graph-frame').dispatchEvent(new WheelEvent('wheel', { ctrlKey: true, deltaY: index % 40 < 20 ? -1 : 1, clientX: 600, clientY: 500, bubbles: true, cancelable: true }))";
  const { longest, median } = await longestFrame(page, 60, zoom, FRAME_MS_MAX);
  const own = await best(() => ownTimeOfFrames(page, 60, zoom), (ms) => ms, OWN_FRAME_MS_MAX);
  figures.push(`zooming 200 nodes: median frame ${median.toFixed(1)} ms, longest ${longest.toFixed(1)} ms, ${own.toFixed(1)} ms of it the page's own`);
  assert.ok(own < OWN_FRAME_MS_MAX, `a frame takes ${own} ms of the processor`);
  // Where other processes take the processor in every round, some frame is late whatever the page does: then most are 60 a second.
  assert.ok(longest < FRAME_MS_MAX || median < SIXTY_A_SECOND_MS, `the longest frame took ${longest} ms, the median ${median} ms`);
});

test("the run page is painted at once", async () => {
  await server.client.start("review", { run_id: "painted", input: { title: "x", amount: 1 } });
  await reaches(server.client, "painted", "waiting");
  const page = await browser.open();
  await page.goto(`${server.url}/runs/painted?view=events`);
  await page.locator(".event").first().waitFor();
  // From the second time on the server is warm.
  const measure = async () => {
    await page.reload();
    await page.locator(".event").first().waitFor();
    return page.evaluate(() => ({ paint: performance.getEntriesByName("first-contentful-paint")[0]!.startTime, ready: performance.now() }));
  };
  const { paint, ready } = await best(measure, ({ paint }) => paint, FIRST_PAINT_MS_MAX);
  figures.push(`run page: first paint ${paint.toFixed(0)} ms, events shown before ${ready.toFixed(0)} ms`);
  assert.ok(paint < FIRST_PAINT_MS_MAX, `first paint after ${paint} ms`);
});

test("events are on screen as they happen", async () => {
  const page = await browser.open();
  const measure = async (round: number): Promise<number> => {
    const id = `live-${round}`;
    await server.client.start("review", { run_id: id, input: { title: "x", amount: 1 } });
    const waiting = await reaches(server.client, id, "waiting");
    await page.goto(`${server.url}/runs/${id}?view=events`);
    await page.locator('.event[data-kind="gate_opened"]').waitFor();
    // It looks before the decision is sent, however long the order takes to the browser.
    await page.evaluate(() => {
      new MutationObserver((_, observer) => {
        if (!document.querySelector('.event[data-kind="gate_decided"]')) return;
        observer.disconnect();
        document.body.dataset["shownAt"] = String(Date.now());
      }).observe(document.body, { childList: true, subtree: true });
    });
    await server.client.decide(id, waiting.deadlines.find(({ kind }) => kind === "gate")!.gate_id!, { choice: "approve" });
    const shownAt = Number(await page.locator("body[data-shown-at]").getAttribute("data-shown-at"));
    const { items } = await server.client.events(id);
    return shownAt - items.find(({ kind }) => kind === "gate_decided")!.at;
  };
  const took = await best(measure, (ms) => ms, LIVE_MS_MAX);
  figures.push(`a live event is on screen ${took} ms after it happened`);
  assert.ok(took < LIVE_MS_MAX, `${took} ms`);
});

const HOSTILE = '<img src=x onerror="window.broken=1"><script>window.broken=1</script>\u202eevil\u202c\u0000"\'`${7*7}';

test("a run full of markup, direction marks and a megabyte is shown as text", async () => {
  const huge = "W".repeat(400_000);
  await server.client.put("workflows", {
    id: "hostile",
    description: HOSTILE,
    timeout: "5m",
    nodes: [{ id: "keep", output_mapping: { "state.kept": "${input}" } }, { id: "ask", gate: { prompt: "${input.text}", choices: ["<b>yes</b>", "no"] } }],
    transitions: [{ from_node_id: "keep", to_node_id: "ask" }],
  } as { id: string });
  await server.client.start("hostile", { run_id: "hostile-1", input: { text: HOSTILE, huge } });
  await reaches(server.client, "hostile-1", "waiting");
  const page = await browser.open();
  const pages: [path: string, ready: string][] = [
    ["/runs/hostile-1", ".node"],
    ["/runs/hostile-1?view=context", "pre"],
    ["/runs/hostile-1?view=raw", "pre"],
    ["/runs/hostile-1/tokens/t1", ".token-panel dl"],
    ["/inbox", ".gate .cuts"],
    ["/workflows/hostile?view=document", "pre"],
    ["/runs", "tbody tr"],
  ];
  for (const [path, ready] of pages) {
    await page.goto(server.url + path);
    await page.locator(ready).first().waitFor();
    assert.equal(await page.evaluate(() => (globalThis as any).broken), undefined, path);
    assert.equal(await page.locator("main img, main script, main b b").count(), 0, path);
  }
  await page.goto(`${server.url}/runs/hostile-1?view=context`);
  await page.getByText("⟨U+202E⟩").first().waitFor();
  const shown = (await page.locator("pre").first().textContent())!.length;
  assert.ok(shown < 30_000, `${shown} characters are shown at first`);
  await page.getByRole("button", { name: /^Show all/ }).first().click();
  await page.locator("pre", { hasText: "W".repeat(1_000) }).first().waitFor();
});

test("statuses, kinds and fields of a later version are shown as text", async () => {
  await server.client.start("review", { run_id: "later", input: { title: "x", amount: 1 } });
  await reaches(server.client, "later", "waiting");
  const page = await browser.open();
  const change = (pattern: RegExp, edit: (body: any) => void) =>
    page.route(pattern, async (route) => {
      const response = await route.fetch();
      const body = await response.json();
      edit(body);
      await route.fulfill({ response, json: body });
    });
  await change(/\/v1\/runs\/later(\?|$)/, (run) => Object.assign(run, { status: "hibernating_deeply", counts: { frozen: 2 }, deadlines: [{ kind: "moon", due_at: 1 }] }));
  await change(/\/v1\/runs\/later\/tokens/, (list) => list.items.forEach((token: any) => Object.assign(token, { status: "frozen", lane: "sideways" })));
  await change(/\/v1\/gates/, (list) => list.items.forEach((gate: any) => Object.assign(gate, { kind: "oracle" })));
  await change(/\/v1\/runs\?/, (list) => list.items.forEach((run: any) => Object.assign(run, { status: "hibernating_deeply" })));
  await page.route(/\/v1\/runs\/later\/live/, (route) =>
    route.fulfill({ contentType: "text/event-stream", body: `id: 1\ndata: ${JSON.stringify({ seq: 1, at: Date.now(), kind: "moon_rose", token_id: "t1", phase: "full" })}\n\n` }),
  );
  await page.goto(`${server.url}/runs/later?view=events`);
  await page.getByText("hibernating deeply").first().waitFor();
  await page.getByText("moon rose").first().waitFor();
  await page.goto(`${server.url}/runs/later?view=tokens`);
  await page.locator('td [data-status="frozen"]').first().waitFor();
  await page.goto(`${server.url}/runs`);
  await page.getByText("hibernating deeply").first().waitFor();
  await page.goto(`${server.url}/inbox`);
  await page.getByText("oracle").first().waitFor();
  await page.unrouteAll({ behavior: "ignoreErrors" });
});
