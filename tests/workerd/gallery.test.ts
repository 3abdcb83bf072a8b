// The gallery as a whole: what belongs to each example, and the command that plays it.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { report, type Example, type Played } from "../../examples/gallery/example.mjs";
import { quick } from "../../examples/gallery/documents.mjs";
import { startCurfew, root } from "./harness.ts";

const gallery = join(root, "examples", "gallery");
const names = readdirSync(gallery, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : [])).sort();
const read = (...path: string[]): string => readFileSync(join(root, ...path), "utf8");

interface Ended {
  code: number | null;
  text: string;
}

/** Runs a script of the repository to its end. */
function runScript(args: string[], variables: Record<string, string> = {}): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { cwd: root, env: { ...process.env, ...variables }, stdio: ["ignore", "pipe", "pipe"], timeout: 120_000 });
    let text = "";
    child.stdout.on("data", (chunk) => (text += chunk));
    child.stderr.on("data", (chunk) => (text += chunk));
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, text }));
  });
}

test("the gallery has the examples that its page lists", () => {
  assert.deepEqual(names, ["agent", "approvals", "migration", "order", "poller", "research"]);
  const page = read("examples", "README.md");
  for (const name of names) assert.ok(page.includes(`[\`npm run example -- ${name}\`](gallery/${name}/README.md)`), name);
});

for (const name of names) {
  test(`${name} has a page, services, scenarios, a test, and documents that name their schema`, async () => {
    for (const file of ["services.mjs", "demo.mjs"]) assert.ok(existsSync(join(gallery, name, file)), file);
    const page = read("examples", "gallery", name, "README.md");
    assert.match(page, /^# \S.*\n/);
    assert.ok(page.includes(`npm run example -- ${name}\n`));
    assert.ok(page.includes("**For production**") || name === "migration");
    assert.ok(read("tests", "workerd", `gallery-${name}.test.ts`).includes(`examples/gallery/${name}/demo.mjs`));

    const { example } = (await import(join(gallery, name, "demo.mjs"))) as { example: Example<any> };
    assert.ok(example.scenarios.length >= 2);
    const stored = example.documents.map(({ id }) => id);
    for (const file of readdirSync(join(gallery, name)).filter((file) => file.endsWith(".json"))) {
      const document = JSON.parse(read("examples", "gallery", name, file));
      assert.equal(document.$schema, "../../../schema/workflow.json");
      assert.equal(`${document.id}.json`, file);
      assert.ok(stored.includes(document.id), `${file} is stored by the demonstration`);
    }
  });
}

test("npm run example lists the examples with their headings", async () => {
  const { code, text } = await runScript(["scripts/example.mjs"]);
  assert.equal(code, 0, text);
  for (const name of names) {
    const heading = /^# (.*)$/m.exec(read("examples", "gallery", name, "README.md"))?.[1] ?? "no heading";
    assert.match(text, new RegExp(`npm run example -- ${name} +\\S`));
    assert.ok(text.includes(heading), heading);
  }
});

test("an unknown name is refused with those that exist, and so are two names", async () => {
  const unknown = await runScript(["scripts/example.mjs", "ordr"]);
  assert.equal(unknown.code, 1);
  assert.ok(unknown.text.includes(`there is no example "ordr": take one of ${names.join(", ")}`), unknown.text);
  const outside = await runScript(["scripts/example.mjs", "../runner"]);
  assert.equal(outside.code, 1);
  assert.match(outside.text, /there is no example/);
  const two = await runScript(["scripts/example.mjs", "order", "agent"]);
  assert.equal(two.code, 1);
  assert.match(two.text, /one example at a time/);
});

test("an example plays on the Curfew at CURFEW_URL", async () => {
  const curfew = await startCurfew();
  try {
    const { code, text } = await runScript(["examples/gallery/run.mjs", "approvals"], { CURFEW_URL: curfew.url });
    assert.equal(code, 0, text);
    assert.match(text, /manager +█+ +.*completed/);
    assert.match(text, /left out: it needs the tokens/);
    assert.match(text, /All scenarios went as expected/);
    const { json } = await curfew.api("GET", "/v1/workflows");
    assert.deepEqual(json.items.map(({ id }: { id: string }) => id), ["spending", "spending-quick"]);
  } finally {
    await curfew.dispose();
  }
});

test("a CURFEW_URL that cannot reach the services, or where nothing answers, is refused", async () => {
  for (const url of ["https://curfew.example.com", "nonsense"]) {
    const { code, text } = await runScript(["examples/gallery/run.mjs", "order"], { CURFEW_URL: url });
    assert.equal(code, 1);
    assert.match(text, /CURFEW_URL must be a Curfew on this machine/);
  }
  // Port 9 is "discard", where no Curfew listens.
  const { code, text } = await runScript(["examples/gallery/run.mjs", "order"], { CURFEW_URL: "http://localhost:9" });
  assert.equal(code, 1);
  assert.match(text, /no Curfew answers at http:\/\/localhost:9/);
});

test("an outcome that is not the expected one is reported as such", () => {
  const expected = { status: "completed", output: { parcel: "p-1" } };
  const scenario = { title: "An order.", play: async () => ({ runId: "r" }), expected };
  const run = { id: "r", status: "failed", error: { code: "http_409" }, output: null, started_at: 1_000, ended_at: 3_000 };
  const tokens = [{ node_id: "ship", status: "failed", created_at: 1_000, ended_at: 3_000, error: { code: "http_409" } }];
  const played: Played = { run, tokens, calls: [], seen: { status: "failed", output: null } };
  const unexpected = report(scenario, played);
  assert.equal(unexpected.isExpected, false);
  assert.match(unexpected.text, /NOT AS EXPECTED/);
  assert.match(unexpected.text, /ship +█+ +2\.0 s {2}failed, http_409/);
  assert.equal(report(scenario, { ...played, seen: expected }).isExpected, true);
});

test("a quick copy has an id of its own, and a pointer that leads nowhere is an error", () => {
  const document = { id: "w", nodes: [{ id: "a", wait: { sleep: "1h" } }] };
  assert.deepEqual(quick(document, { "/nodes/0/wait/sleep": "1s" }), { id: "w-quick", nodes: [{ id: "a", wait: { sleep: "1s" } }] });
  assert.equal(document.nodes[0]?.wait.sleep, "1h");
  assert.throws(() => quick(document, { "/nodes/1/wait/sleep": "1s" }), /w has no \/nodes\/1\/wait\/sleep/);
});
