// Completions without a server, and the script of bash in a real bash.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { runCommandLine } from "./cli.ts";
import { COMMANDS } from "./commands.ts";
import { testTerminal } from "./test_terminal.ts";

/** No server listens on this port. */
const NOWHERE = { CURFEW_URL: "http://127.0.0.1:9" };

async function complete(...words: string[]): Promise<string[]> {
  const terminal = testTerminal();
  assert.equal(await runCommandLine(["__complete", "--", ...words], NOWHERE, terminal), 0);
  assert.equal(terminal.errors, "");
  return terminal.out.split("\n").filter((line) => line !== "");
}

test("verbs, without those for scripts", async () => {
  assert.deepEqual(await complete("re"), ["resume", "retry", "restart"]);
  assert.deepEqual(await complete(""), COMMANDS.filter(({ isHidden }) => !isHidden).map(({ name }) => name));
  assert.deepEqual(await complete("help", "wat"), ["watch"]);
  assert.deepEqual(await complete("--url", "http://x", "wat"), ["watch"]);
});

test("flags of the verb that are not there yet", async () => {
  assert.deepEqual(await complete("extend", "r1", "--"), ["--by", "--until", "--url", "--token", "--json", "--help"]);
  assert.deepEqual(await complete("extend", "r1", "--by", "1m", "--json", "--"), ["--until", "--url", "--token", "--help"]);
  assert.deepEqual(await complete("runs", "--status", "failed", "--st"), ["--status"]);
});

test("values of flags, also behind a comma", async () => {
  assert.deepEqual(await complete("runs", "--sort", ""), ["started", "remaining"]);
  assert.deepEqual(await complete("runs", "--status", "failed,ti"), ["failed,timed_out"]);
  assert.deepEqual(await complete("completions", ""), ["bash", "zsh", "fish"]);
});

test("where nothing is known, and without a server, there is silence", async () => {
  for (const line of [["put", ""], ["start", ""], ["watch", "r"], ["no-such-verb", ""], ["signal", "r1", ""], ["runs", "--tag", ""]]) assert.deepEqual(await complete(...line), [], line.join(" "));
});

test("bash completes with the script", () => {
  const directory = mkdtempSync(join(tmpdir(), "curfew-completions-"));
  try {
    const main = fileURLToPath(new URL("main.ts", import.meta.url));
    writeFileSync(join(directory, "curfew"), `#!/bin/sh\nexec "${process.execPath}" --disable-warning=ExperimentalWarning "${main}" "$@"\n`, { mode: 0o755 });
    const script = 'source <(curfew completions bash); COMP_WORDS=(curfew runs --status ti); COMP_CWORD=3; _curfew; echo "${COMPREPLY[@]}"; COMP_WORDS=(curfew watc); COMP_CWORD=1; _curfew; echo "${COMPREPLY[@]}"; complete -p curfew';
    const environment = { ...process.env, ...NOWHERE, PATH: `${directory}:${process.env["PATH"]}` };
    const printed = execFileSync("bash", ["--norc", "-c", script], { env: environment, encoding: "utf8", timeout: 30_000 });
    assert.equal(printed, "timed_out\nwatch\ncomplete -o default -F _curfew curfew\n");
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("every shell has a script that asks for words", async () => {
  for (const shell of ["bash", "zsh", "fish"]) {
    const terminal = testTerminal();
    assert.equal(await runCommandLine(["completions", shell], {}, terminal), 0);
    assert.match(terminal.out, /curfew __complete -- /);
  }
});
