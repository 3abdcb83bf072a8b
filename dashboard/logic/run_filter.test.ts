import assert from "node:assert/strict";
import { test } from "node:test";
import { filterOf, filterWords, isFiltered, isSameView, selectionOf } from "./run_filter.ts";

test("what the address says is what the API is asked", () => {
  const filter = filterOf(new URLSearchParams("status=failed,timed_out&workflow=order&within=1h&sort=remaining"));
  assert.equal(filter.sort, "remaining");
  assert.deepEqual(selectionOf(filter, 10_000_000), { status: ["failed", "timed_out"], workflow: "order", since: 6_400_000 });
});

test("what the API would refuse is dropped", () => {
  const filter = filterOf(new URLSearchParams("status=exploded&within=long&sort=up"));
  assert.equal(isFiltered(filter), false);
  assert.deepEqual(selectionOf(filter, 0), {});
});

test("a filter in words", () => {
  const filter = filterOf(new URLSearchParams("status=failed,timed_out&workflow=order&within=1h&id_prefix=o-&tag=shop&parent=p"));
  assert.equal(filterWords(filter), "status failed or timed out; workflow order; id begins with o-; tag shop; called by run p; started in the last 1h");
  assert.equal(filterWords(filterOf(new URLSearchParams())), "");
});

test("views are compared by what they mean", () => {
  assert.ok(isSameView("sort=remaining&status=failed", "?status=failed&sort=remaining&workflow="));
  assert.ok(!isSameView("status=failed", ""));
});
