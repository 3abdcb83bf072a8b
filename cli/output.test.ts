// Commands to copy, and what an error says to do next.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { Run } from "../client/index.ts";
import { runCommandLine } from "./cli.ts";
import { makeOutput } from "./output.ts";
import { outcomeLines } from "./run_text.ts";
import { testTerminal } from "./test_terminal.ts";

const CALLED_BY_NPX = { npm_command: "exec" };

async function errorsOf(line: readonly string[], environment: Record<string, string> = {}): Promise<[code: number, errors: string]> {
  const terminal = testTerminal();
  return [await runCommandLine(line, environment, terminal), terminal.errors];
}

test("commands to copy begin as the command line was called", () => {
  assert.equal(makeOutput(testTerminal(), {}, false).command("runs"), "curfew runs");
  assert.equal(makeOutput(testTerminal(), { npm_command: "run-script" }, false).command("runs"), "curfew runs");
  assert.equal(makeOutput(testTerminal(), CALLED_BY_NPX, false, "http://h:1").command("runs"), "npx curfew runs --url http://h:1");
});

test("errors say what to do next, in the words of the caller", async () => {
  const refused = await errorsOf(["runs", "--nothing"], CALLED_BY_NPX);
  assert.deepEqual([refused[0], /run `npx curfew help runs` for its flags/.test(refused[1])], [2, true], refused[1]);
  const unreachable = await errorsOf(["runs", "--url", "http://127.0.0.1:1"]);
  assert.deepEqual([unreachable[0], /start it with `curfew dev`/.test(unreachable[1])], [6, true], unreachable[1]);
  const undecided = await errorsOf(["decide", "r1", "approve"]);
  assert.deepEqual([undecided[0], /`curfew inbox --run r1` lists the choices/.test(undecided[1])], [2, true], undecided[1]);
});

test("another service that answers with JSON of its own is no bug of the command line", async () => {
  let answer = "";
  const service = createServer((_, response) => response.end(answer));
  await new Promise<void>((resolve) => service.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(service.address() as AddressInfo).port}`;
  try {
    for (answer of ["{}", "null", '{"ok": true}']) {
      for (const line of [["runs"], ["run", "r"], ["inbox"], ["workflows"], ["start", "hello"], ["decide", "r", "g1", "yes"]]) {
        const [code, errors] = await errorsOf([...line, "--url", url]);
        assert.equal(code, 6, errors);
        assert.equal(errors, `curfew: what answers at ${url} is not Curfew\nstart Curfew with \`curfew dev\`, or set CURFEW_URL (or --url) to the address of your deployment\n`);
      }
    }
  } finally {
    await new Promise((resolve) => service.close(resolve));
  }
});

test("a file that is no export of a run is refused with the command that writes one", async () => {
  const directory = mkdtempSync(join(tmpdir(), "curfew-output-"));
  const file = join(directory, "package.json");
  try {
    for (const content of ['{"name": "shop"}', "[]", "null", "no JSON"]) {
      writeFileSync(file, content);
      const [code, errors] = await errorsOf(["simulate", "--from", file], CALLED_BY_NPX);
      assert.equal(code, 2, content);
      assert.match(errors, /package\.json is no export of a run\n`npx curfew export <run> --output run\.json` writes one/);
    }
    writeFileSync(file, '{"format": "curfew-export/9"}');
    assert.match((await errorsOf(["simulate", "--from", file]))[1], /curfew-export\/1/);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("JSON has the value that it had, without characters that could control a terminal", () => {
  const value = { "a\u009b2J": "\u001b[2J \u202e \u0085 \ufeff\n", b: [1, null] };
  for (const print of ["rawJson", "jsonLine"] as const) {
    const terminal = testTerminal();
    makeOutput(terminal, {}, true)[print](value);
    assert.deepEqual(JSON.parse(terminal.out), value);
    assert.match(terminal.out, /^[\n\x20-\x7e]*$/);
  }
});

test("what ended a run, and how it can go on; a command does not name itself", () => {
  const run = { id: "r1", status: "failed", error: { code: "http_500", message: "no" } } as Run;
  const output = makeOutput(testTerminal(), {}, false);
  const next = "go on: curfew retry r1   from the start: curfew restart r1";
  assert.deepEqual(outcomeLines(run, undefined, output), ["http_500: no", `what happened: curfew run r1   ${next}`]);
  assert.deepEqual(outcomeLines(run, undefined, output, { isWhole: true }), ["http_500: no", next]);
});
