// What a browser loads before the first page is there: small, and without anything that the policy would refuse.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const output = fileURLToPath(new URL("../build/dashboard", import.meta.url));
const KIB_MAX = 90;

const html = readFileSync(join(output, "index.html"), "utf8");
const read = (address: string): string => readFileSync(join(output, address), "utf8");
const zipped = (text: string): number => gzipSync(text).length;

/** Scripts that a script imports at once, with those that they import. */
function importsOf(address: string, seen = new Set<string>()): Set<string> {
  if (seen.has(address)) return seen;
  seen.add(address);
  for (const [, file] of read(address).matchAll(/(?:from|import)\s*"\.\/([\w.-]+\.js)"/g)) importsOf(`/assets/${file}`, seen);
  return seen;
}

test(`the first load is at most ${KIB_MAX} KiB`, () => {
  const script = /<script type="module" src="([^"]+)">/.exec(html)?.[1];
  const style = /<link rel="stylesheet" href="([^"]+)">/.exec(html)?.[1];
  assert.ok(script && style, html);
  const files = [...importsOf(script), style];
  const total = zipped(html) + files.reduce((sum, file) => sum + zipped(read(file)), 0);
  assert.ok(total <= KIB_MAX * 1024, `${(total / 1024).toFixed(1)} KiB: ${files.join(", ")}`);
});

test("libraries of single views are not part of it", () => {
  const script = /<script type="module" src="([^"]+)">/.exec(html)?.[1];
  const first = [...importsOf(script!)].map(read).join("");
  assert.doesNotMatch(first, /uPlot|u-legend|nodesep/);
});

test("the page has no script or style of its own", () => {
  assert.doesNotMatch(html, /<script(?![^>]* src=)|<style|style=|\son\w+=|javascript:/);
  for (const [, address] of html.matchAll(/(?:src|href)="([^"]+)"/g)) assert.match(address!, /^\/assets\/[\w.-]+$/);
});

test("every answer has the policy, and names of files have hashes", () => {
  const headers = readFileSync(join(output, "_headers"), "utf8");
  for (const part of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "frame-ancestors 'none'", "nosniff", "no-referrer"]) assert.ok(headers.includes(part), part);
  assert.doesNotMatch(headers, /unsafe-inline|'unsafe-eval'|https?:/);
  const [pages, engine] = headers.split("/assets/engine_worker-*");
  assert.doesNotMatch(pages!, /wasm-unsafe-eval/, "only the worker of the engine compiles wasm");
  assert.match(engine!, /! Content-Security-Policy\n.*script-src 'self' 'wasm-unsafe-eval'/);
  for (const name of readdirSync(join(output, "assets"))) assert.match(name, /-[\w]{8}\.(js|css|svg|wasm)$/);
});
