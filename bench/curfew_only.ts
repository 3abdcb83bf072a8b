// Figures that only Curfew has: long loops, and runs that are read back from the disk.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Curfew } from "../tests/workerd/harness.ts";
import { curfewRun, start } from "./contenders.ts";
import { loop, waitingTokens } from "./documents.ts";
import { median, percentile, rounded } from "./figures.ts";

const ROUND_TRIPS = [10_000, 30_000] as const;
const TOKENS = 1_000;
const COLD = 10;

/** A node after the ten-thousandth must cost what those before it cost. */
export async function loopFigures(curfew: Curfew) {
  console.log(`loops of ${ROUND_TRIPS.join(" and ")} nodes`);
  const took: number[] = [];
  for (const rounds of ROUND_TRIPS) {
    const document = loop(rounds);
    await curfew.store(document);
    const millis: number[] = [];
    // The first round warms up.
    for (let round = 0; round < 4; round += 1) {
      const { insideMs } = await curfewRun(curfew, document.id, rounds + 1);
      if (round > 0) millis.push(insideMs);
    }
    took.push(median(millis));
  }
  const [short, long] = ROUND_TRIPS;
  const perNode = [took[0]! / short, (took[1]! - took[0]!) / (long - short)];
  return { nodes: ROUND_TRIPS, ms_per_node: perNode.map((millis) => rounded(millis, 4)), ratio: rounded(perNode[1]! / perNode[0]!) };
}

/**
 * The first request to a run that is only on disk, with one live token or a thousand. The process was restarted and has answered
 * other requests, so that only the run is cold.
 */
export async function coldFigures() {
  console.log(`${COLD} runs of ${TOKENS} tokens, loaded from the disk`);
  const directory = mkdtempSync(join(tmpdir(), "curfew-bench-"));
  try {
    const ids: Record<number, string[]> = {};
    const before = await start({ persistTo: directory });
    try {
      for (const tokens of [1, TOKENS]) {
        const document = waitingTokens(tokens);
        await before.store(document);
        ids[tokens] = [];
        for (let run = 0; run < COLD + 1; run += 1) ids[tokens].push(await before.start(document.id));
      }
    } finally {
      await before.dispose();
    }
    const after = await start({ persistTo: directory });
    try {
      const millis: Record<number, number[]> = { 1: [], [TOKENS]: [] };
      for (let run = 0; run < COLD + 1; run += 1) {
        for (const tokens of [1, TOKENS]) {
          const startedAt = performance.now();
          const answer = await after.api("GET", `/v1/runs/${ids[tokens]![run]}`);
          const took = performance.now() - startedAt;
          const live = answer.json?.counts?.executing ?? answer.json?.counts?.suspended ?? 0;
          if (answer.json?.status !== "waiting" || live < tokens) throw new Error(`not ${tokens} live tokens: ${answer.text.slice(0, 500)}`);
          if (run > 0) millis[tokens]!.push(took);
        }
      }
      const figures = (tokens: number) => ({
        p50_ms: rounded(median(millis[tokens]!)),
        p95_ms: rounded(percentile(millis[tokens]!, 0.95)),
      });
      return { tokens: TOKENS, one: figures(1), many: figures(TOKENS) };
    } finally {
      await after.dispose();
    }
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
