import assert from "node:assert/strict";
import { test } from "node:test";
import { histogram, quantile, samplesOf, total, totalsBy } from "./prometheus.ts";

const TEXT = `# HELP runs_total Runs.
# TYPE runs_total counter
runs_total{status="completed"} 7
runs_total{status="fa\\"iled"} 2
late_seconds_bucket{le="0.1"} 8
late_seconds_bucket{le="1"} 9
late_seconds_bucket{le="+Inf"} 10
plain 3.5
not a sample at all
`;

test("samples, sums and histograms", () => {
  const samples = samplesOf(TEXT);
  assert.equal(samples.length, 6);
  assert.deepEqual(totalsBy(samples, "runs_total", "status"), [["completed", 7], ['fa"iled', 2]]);
  assert.equal(total(samples, "runs_total"), 9);
  assert.equal(quantile(samples, "late_seconds", 0.5), 0.1);
  assert.equal(quantile(samples, "late_seconds", 0.99), Infinity);
  assert.equal(quantile(samples, "nothing", 0.5), undefined);
  assert.deepEqual(histogram(samples, "late_seconds"), [[0.1, 8], [1, 1], [Infinity, 1]]);
});
