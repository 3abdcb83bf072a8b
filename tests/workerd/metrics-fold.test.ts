// The statements that fold the metrics of runs into totals, in SQLite, with messages in any order and number.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { chance } from "../crash/seeded-random.ts";
import { root } from "./harness.ts";

const text = (path: string): string => readFileSync(join(root, path), "utf8");
const fold = text("src/index/metrics/fold.sql");
/** The statement that the consumer runs after it. */
const save = /const SAVE: &str = "([\s\S]*?)";/.exec(text("src/worker/index/runs.rs"))![1]!.replace(/\\\n\s*/g, "");

const NODES_MAX = 200;
type Sample = [node: string, name: string, total: number];

interface Summary {
  revision: number;
  at: number;
  metrics?: Sample[];
  summary: { id: string; workflow_id: string; version: 1; status: string; tags: []; started_at: number };
}

function summary(id: string, revision: number, metrics: Sample[] | undefined, more: Partial<Summary["summary"]> & { at?: number } = {}): Summary {
  const { at = 1_000 + revision, ...fields } = more;
  return { revision, at, ...(metrics ? { metrics } : {}), summary: { id, workflow_id: "w", version: 1, status: "running", tags: [], started_at: 5, ...fields } };
}

class Index {
  database = new DatabaseSync(":memory:");

  constructor() {
    for (const name of readdirSync(join(root, "migrations")).sort()) this.database.exec(text(`migrations/${name}`));
  }

  /** As the consumer: one transaction. Of several summaries of a run it sends the newest. */
  take(batch: Summary[], { step = 100, known = false } = {}): void {
    const json = JSON.stringify(batch);
    this.database.exec("BEGIN");
    this.database.prepare(fold).run(json, step, known ? 0 : 1, NODES_MAX);
    if (!known) this.database.prepare(save).run(json);
    this.database.exec("COMMIT");
  }

  totals(): Record<string, Record<string, number>> {
    const rows = this.database.prepare("SELECT workflow, node, samples FROM metrics ORDER BY workflow, node").all();
    return Object.fromEntries(rows.map((row) => [`${row["workflow"]}/${row["node"]}`, JSON.parse(String(row["samples"]))]));
  }
}

test("a repeated message adds nothing, a later one the difference, an earlier one nothing", () => {
  const index = new Index();
  const first = summary("a", 1, [["", "starts", 1], ["n", "100", 1], ["n", "sum", 70]]);
  const second = summary("a", 2, [["", "starts", 2], ["", "ends/failed", 1], ["n", "100", 3], ["n", "sum", 200]]);
  index.take([first]);
  index.take([first]);
  index.take([second]);
  index.take([first]);
  index.take([second]);
  assert.deepEqual(index.totals(), {
    "/": { starts: 2, "ends/failed": 1, "recent/100/failed": 1 },
    "w/n": { "100": 3, sum: 200 },
  });
});

test("runs of a batch are added together; the totals outlive the rows of runs", () => {
  const index = new Index();
  index.take([summary("a", 1, [["", "starts", 1], ["n", "10", 1]]), summary("b", 1, [["", "starts", 1], ["n", "10", 2]])]);
  index.database.exec("DELETE FROM runs");
  assert.deepEqual(index.totals(), { "/": { starts: 2 }, "w/n": { "10": 3 } });
});

test("a summary with the same revision that was made later counts", () => {
  const index = new Index();
  index.take([summary("a", 1, [["", "late_results", 1]], { at: 10 })]);
  index.take([summary("a", 1, [["", "late_results", 2]], { at: 11 })]);
  assert.deepEqual(index.totals(), { "/": { late_results: 2 } });
});

test("another run with the same id counts from zero, and the earlier one no more", () => {
  const index = new Index();
  index.take([summary("a", 7, [["", "starts", 3]], { started_at: 5 })]);
  index.take([summary("a", 1, [["", "starts", 1]], { started_at: 9 })]);
  index.take([summary("a", 8, [["", "starts", 4]], { started_at: 5 })]);
  assert.deepEqual(index.totals(), { "/": { starts: 4 } });
});

test("a summary of an earlier build changes nothing, and what was counted stays remembered", () => {
  const index = new Index();
  index.take([summary("a", 1, [["", "starts", 1]])]);
  index.take([summary("a", 2, undefined)]);
  index.take([summary("a", 3, [["", "starts", 1], ["", "ends/completed", 1]])]);
  assert.deepEqual(index.totals(), { "/": { starts: 1, "ends/completed": 1, "recent/100/completed": 1 } });
});

test("a total that falls adds nothing", () => {
  const index = new Index();
  index.take([summary("a", 1, [["", "rows_written", 20]])]);
  index.take([summary("a", 2, [["", "rows_written", 15]])]);
  index.take([summary("a", 3, [["", "rows_written", 25]])]);
  assert.deepEqual(index.totals(), { "/": { rows_written: 30 } });
});

test("the removal of a run counts what the index has not seen, once; not without a row", () => {
  const index = new Index();
  index.take([summary("a", 1, [["", "starts", 1]])]);
  const last = summary("a", 2, [["", "starts", 1], ["", "ends/completed", 1]]);
  index.take([last], { known: true });
  index.database.exec("DELETE FROM runs");
  index.take([last], { known: true });
  assert.deepEqual(index.totals(), { "/": { starts: 1, "ends/completed": 1, "recent/100/completed": 1 } });
});

test("ends of more than an hour ago leave the totals of the last hour", () => {
  const index = new Index();
  const ended = (revision: number, count: number): Summary => summary("a", revision, [["", "ends/timed_out", count]]);
  index.take([ended(1, 1)], { step: 100 });
  index.take([ended(2, 3)], { step: 112 });
  assert.deepEqual(index.totals()["/"], { "ends/timed_out": 3, "recent/100/timed_out": 1, "recent/112/timed_out": 2 });
  index.take([ended(3, 4)], { step: 113 });
  assert.deepEqual(index.totals()["/"], { "ends/timed_out": 4, "recent/112/timed_out": 2, "recent/113/timed_out": 1 });
});

test("200 nodes have rows of their own, the rest is one", () => {
  const index = new Index();
  const nodes = (count: number): Sample[] => Array.from({ length: count }, (_, number) => [`n${number}`, "10", 1]);
  index.take([summary("a", 1, nodes(150))]);
  index.take([summary("b", 1, nodes(100), { workflow_id: "x" })]);
  index.take([summary("b", 2, nodes(100).map(([node, name]) => [node, name, 3]), { workflow_id: "x" })]);
  const totals = index.totals();
  assert.equal(Object.keys(totals).length, 201);
  assert.deepEqual(totals["other/other"], { "10": 150 });
  const sum = Object.values(totals).reduce((all, samples) => all + samples["10"]!, 0);
  assert.equal(sum, 150 + 300);
});

test("any order, repetition and batching of messages gives the same totals", () => {
  for (let seed = 1; seed <= 300; seed++) {
    let drawn = 0;
    const random = (): number => chance(seed, `${drawn++}`);
    const below = (limit: number): number => Math.floor(random() * limit);
    const names: [string, string][] = [["", "starts"], ["", "ends/completed"], ["a", "10"], ["a", "sum"], ["b", "inf"]];
    const messages: Summary[] = [];
    const expected: Record<string, Record<string, number>> = {};
    for (let run = 0; run < 1 + below(4); run++) {
      const workflow = `w${below(2)}`;
      const totals = names.map(() => 0);
      const revisions = 1 + below(5);
      for (let revision = 1; revision <= revisions; revision++) {
        names.forEach((_, index) => (totals[index]! += below(3)));
        const samples = names.flatMap(([node, name], index): Sample[] => (totals[index] ? [[node, name, totals[index]!]] : []));
        const message = summary(`r${run}`, revision, samples, { workflow_id: workflow });
        for (let copy = 0; copy < 1 + below(3); copy++) messages.push(message);
      }
      names.forEach(([node, name], index) => {
        if (totals[index] === 0) return;
        const row = (expected[node === "" ? "/" : `${workflow}/${node}`] ??= {});
        row[name] = (row[name] ?? 0) + totals[index]!;
        if (name === "ends/completed") row["recent/100/completed"] = row[name]!;
      });
    }
    const places = messages.map((message) => ({ message, place: random() })).sort((one, other) => one.place - other.place);
    const shuffled = places.map(({ message }) => message);
    const index = new Index();
    while (shuffled.length > 0) {
      // Of a run's summaries in one batch the consumer keeps the newest.
      const newest = new Map<string, Summary>();
      for (const message of shuffled.splice(0, 1 + below(4))) {
        const other = newest.get(message.summary.id);
        if (!other || other.revision < message.revision) newest.set(message.summary.id, message);
      }
      index.take([...newest.values()]);
    }
    assert.deepEqual(index.totals(), expected, `seed ${seed}`);
  }
});
