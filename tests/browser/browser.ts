// Debian's chromium under playwright-core. No request may leave this machine, and no page may report an error.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium, type BrowserContext, type Page } from "playwright-core";

const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

export interface PageOptions {
  dark?: boolean;
  width?: number;
  height?: number;
  reducedMotion?: boolean;
  timezone?: string;
}

export interface Browser {
  /** A page of its own session. */
  open(options?: PageOptions): Promise<Page>;
  /** Requests that were not to this machine, and errors of pages: both must stay empty. */
  foreign: string[];
  problems: string[];
  close(): Promise<void>;
}

/** What pages print when the server is stopped on purpose. */
const OF_A_LOST_CONNECTION = /net::ERR_|Failed to load resource/;

export async function startBrowser(): Promise<Browser> {
  const profile = mkdtempSync(join(tmpdir(), "curfew-browser-"));
  const foreign: string[] = [];
  const problems: string[] = [];
  const main = await chromium.launchPersistentContext(profile, { executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: FLAGS, headless: true });
  const browser = main.browser();
  const contexts: BrowserContext[] = [];
  const watch = (context: BrowserContext): void => {
    context.on("request", (request) => {
      const { hostname, protocol } = new URL(request.url());
      if (!["localhost", "127.0.0.1"].includes(hostname) && !["data:", "blob:"].includes(protocol)) foreign.push(request.url());
    });
    context.on("weberror", (error) => problems.push(String(error.error())));
    context.on("console", (message) => {
      if (message.type() === "error" && !OF_A_LOST_CONNECTION.test(message.text())) problems.push(message.text());
    });
  };
  return {
    foreign,
    problems,
    async open({ dark = false, width = 1280, height = 900, reducedMotion = false, timezone } = {}) {
      if (!browser) throw new Error("chromium has ended");
      const context = await browser.newContext({ viewport: { width, height }, colorScheme: dark ? "dark" : "light", reducedMotion: reducedMotion ? "reduce" : "no-preference", timezoneId: timezone });
      // Long: other processes of the machine may have it for a while.
      context.setDefaultTimeout(30_000);
      watch(context);
      contexts.push(context);
      return context.newPage();
    },
    async close() {
      for (const context of contexts) await context.close();
      await main.close();
      rmSync(profile, { recursive: true, force: true });
    },
  };
}

/** After the tests of a file. What did not start is undefined: the failure of `before` is the one to report. */
export async function end(browser: Browser | undefined, ...others: ({ dispose(): Promise<void> } | { close(): unknown } | undefined)[]): Promise<void> {
  await browser?.close();
  for (const other of others) await (other && "dispose" in other ? other.dispose() : other?.close());
  if (!browser) return;
  assert.deepEqual(browser.foreign, [], "requests left this machine");
  assert.deepEqual(browser.problems, [], "pages reported errors");
}
