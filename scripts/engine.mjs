// `npm run engine`: the engine without a Worker around it.
// - Events decided per second, and the longest decision of the worst documents within the limits: printed, because machines differ.
// - Instructions per run, counted by valgrind: equal on every machine with the same compiler, so more than recorded is a failure.
//   `-- --record` replaces the record.
import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { script, step, StepFailed } from "./terminal.mjs";
import { root } from "./toolchain.mjs";

const execute = promisify(execFile);
const RECORD = join(root, "bench", "results", "engine.json");
const KINDS = ["chain", "fan"];
/** Runs that are counted. The difference leaves out what is done once per process. */
const [FEW, MANY] = [5, 25];
/** Runs that are timed. */
const TIMED = 2_000;
/** More than this share above the record is a failure. */
const TOLERANCE = 0.03;

/** @typedef {{instructions_per_run: number, events_per_run: number}} Count */

await script(async () => {
  const binary = await step("engine compiled", build, "compiling the engine: usually 1 to 3 minutes the first time");
  const compiler = (await execute("rustc", ["--version"])).stdout.trim();
  for (const kind of KINDS) {
    const { events_per_second: perSecond } = JSON.parse((await execute(binary, [kind, String(TIMED)])).stdout);
    console.log(`[curfew] ${kind}: ${perSecond} events a second`);
  }
  console.log((await execute(binary, ["simulate", String(TIMED)])).stdout.trim());
  await printWorst(binary);
  if (!(await hasValgrind())) {
    const missing = "valgrind is not installed: instructions were not counted";
    // A gate that checks nothing must not pass.
    if (process.env.CI) throw new StepFailed(missing);
    console.log(`[curfew] ${missing}`);
    return;
  }
  /** @type {Record<string, Count>} */
  const counts = {};
  for (const kind of KINDS) counts[kind] = await count(binary, kind);
  const recorded = JSON.parse(readFileSync(RECORD, "utf8"));
  for (const [kind, { instructions_per_run: now }] of Object.entries(counts)) {
    const before = recorded.counts[kind]?.instructions_per_run;
    console.log(`[curfew] ${kind}: ${now} instructions a run, ${before} recorded (${(100 * (now / before - 1)).toFixed(1)} %)`);
  }
  if (process.argv.includes("--record")) {
    writeFileSync(RECORD, `${JSON.stringify({ compiler, counts }, null, 2)}\n`);
    return;
  }
  if (recorded.compiler !== compiler) {
    console.log(`[curfew] not compared: the record was made with ${recorded.compiler}, this is ${compiler}`);
    return;
  }
  const above = Object.entries(counts)
    .filter(([kind, now]) => now.instructions_per_run > recorded.counts[kind].instructions_per_run * (1 + TOLERANCE))
    .map(([kind]) => kind);
  if (above.length > 0) throw new StepFailed(`${above.join(" and ")}: more than ${100 * TOLERANCE} % above the record. If that is intended: npm run engine -- --record`);
});

async function build() {
  const args = ["bench", "--locked", "--bench", "engine", "--no-run", "--message-format=json"];
  const { stdout } = await execute("cargo", args, { cwd: root, maxBuffer: 1 << 28 });
  const artifacts = stdout.split("\n").filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));
  const built = artifacts.find(({ target, executable }) => target?.name === "engine" && executable);
  if (built === undefined) throw new StepFailed("cargo built no bench named engine");
  return built.executable;
}

/** @param {string} binary */
async function printWorst(binary) {
  const lines = (await execute(binary, ["worst"])).stdout.trim().split("\n");
  const documents = lines.map((line) => JSON.parse(line));
  console.log("[curfew] the longest decision of the worst documents, natively:");
  for (const { document, millis, steps, decisions, status } of documents) {
    console.log(`[curfew]   ${String(millis).padStart(6)} ms, ${String(steps).padStart(8)} steps, ${String(decisions).padStart(5)} decisions, ${status}: ${document}`);
  }
  const longest = documents.reduce((one, other) => (other.millis > one.millis ? other : one));
  console.log(`[curfew] longest decision: ${longest.millis} ms, ${Math.max(...documents.map(({ steps }) => steps))} steps`);
}

async function hasValgrind() {
  return execute("valgrind", ["--version"]).then(() => true, () => false);
}

/** @param {string} binary @param {string} kind @returns {Promise<Count>} */
async function count(binary, kind) {
  const [few, many] = [await counted(binary, kind, FEW), await counted(binary, kind, MANY)];
  const runs = MANY - FEW;
  return {
    instructions_per_run: Math.round((many.instructions - few.instructions) / runs),
    events_per_run: (many.events - few.events) / runs,
  };
}

/** @param {string} binary @param {string} kind @param {number} runs */
async function counted(binary, kind, runs) {
  const args = ["--tool=callgrind", "--callgrind-out-file=/dev/null", binary, kind, String(runs)];
  const { stdout, stderr } = await execute("valgrind", args);
  const instructions = Number(/Collected : (\d+)/.exec(stderr)?.[1]);
  return { instructions, events: JSON.parse(stdout).events };
}
