// What checking a credential adds to a request.
import { createHash } from "node:crypto";
import { start } from "./contenders.ts";
import { chain } from "./documents.ts";
import { median, percentile, rounded } from "./figures.ts";
import type { Curfew } from "../tests/workerd/harness.ts";

/** As many as fit into a setting of the platform. The one that is used is last, though every entry is compared. */
const TOKENS = 25;
const REQUESTS = 2_000;
const RUNS = 300;

const token = (number: number): string => createHash("sha256").update(`token ${number}`).digest("hex");
const hashed = (text: string): string => `sha256:${createHash("sha256").update(text).digest("hex")}`;
const setting = Object.fromEntries(
  Array.from({ length: TOKENS }, (_, number) => [hashed(token(number)), { name: `caller-${number}`, roles: ["admin"] }]),
);

export async function credentialFigures() {
  console.log(`${REQUESTS} requests and ${RUNS} runs by turns with and without a credential`);
  const guarded = await start({ vars: { CURFEW_TOKENS: JSON.stringify(setting) } });
  const open = await start();
  try {
    return { tokens: TOKENS, ...(await ofARequest(guarded)), ...(await ofOneStep(guarded, open)) };
  } finally {
    await guarded.dispose();
    await open.dispose();
  }
}

/** Both are refused for their query, one after its credential was checked, the other without: nothing else differs. */
async function ofARequest(curfew: Curfew) {
  const checked: number[] = [];
  const unchecked: number[] = [];
  for (let request = 0; request < REQUESTS; request += 1) {
    checked.push(await timed(curfew, "GET", "/v1/gates?unknown=1", 400));
    unchecked.push(await timed(curfew, "GET", "/healthz?unknown=1", 400));
  }
  return {
    request_ms: rounded(median(unchecked), 3),
    added_ms: rounded(median(checked) - median(unchecked), 3),
    p95_added_ms: rounded(percentile(checked, 0.95) - percentile(unchecked, 0.95), 3),
  };
}

/** In development nothing but the origin of a request is checked. */
async function ofOneStep(guarded: Curfew, open: Curfew) {
  const document = chain("direct", 1);
  for (const curfew of [guarded, open]) await timed(curfew, "PUT", `/v1/workflows/${document.id}`, 201, document);
  const millis = new Map<Curfew, number[]>([[guarded, []], [open, []]]);
  for (let run = 0; run < RUNS; run += 1) {
    for (const [curfew, samples] of millis) {
      samples.push(await timed(curfew, "POST", `/v1/workflows/${document.id}/runs?wait_ms=30000`, 201, { input: {}, version: 1 }));
    }
  }
  return {
    one_step_ms: rounded(median(millis.get(open)!)),
    one_step_added_ms: rounded(median(millis.get(guarded)!) - median(millis.get(open)!), 3),
  };
}

async function timed(curfew: Curfew, method: string, path: string, expected: number, body?: unknown): Promise<number> {
  const startedAt = performance.now();
  const response = await curfew.api(method, path, body, token(TOKENS - 1));
  const took = performance.now() - startedAt;
  if (response.status !== expected) throw new Error(`${method} ${path}: ${response.status} ${response.text}`);
  return took;
}
