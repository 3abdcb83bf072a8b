// shell, with the runner of examples/: real processes, which are killed at their deadline.
import assert from "node:assert/strict";
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once as event } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { oneTask, singleAttempt } from "./document-builders.ts";
import { root, startCurfew, type Curfew } from "./harness.ts";
import { startPeer } from "./peer.ts";
import { until } from "./poll.ts";
import type { RunView } from "./api-types.ts";

const TOKEN = "runner-token-0123456789";
const script = join(root, "examples", "runner", "runner.mjs");

interface Runner {
  url: string;
  process: ChildProcess;
}

/** The runner, started as its README describes, on a free port. */
async function startRunner(more: Record<string, string> = {}): Promise<Runner> {
  const env = { PATH: process.env["PATH"], RUNNER_TOKEN: TOKEN, RUNNER_ALLOW: "echo,cat,sh", RUNNER_PORT: "0", ...more };
  const child = spawn(process.execPath, [script], { env, stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  child.stdout.on("data", (chunk) => (output += chunk));
  const url = await until("the runner to listen", () => /http:\S+\d/.exec(output)?.[0]);
  return { url, process: child };
}

let curfew: Curfew;
let runner: Runner;
let limitedRunner: Runner;
before(async () => {
  const executorVars = { CURFEW_SECRETS: "RUNNER_TOKEN, API_KEY", RUNNER_TOKEN: TOKEN, API_KEY: "key-0123456789" };
  [curfew, runner, limitedRunner] = await Promise.all([
    startCurfew({ executorVars }),
    startRunner(),
    startRunner({ RUNNER_OUTPUT_BYTES: "1000", RUNNER_MAX_MS: "300", RUNNER_CONCURRENCY: "1" }),
  ]);
});
after(async () => {
  await curfew.dispose();
  for (const { process: child } of [runner, limitedRunner]) child.kill();
});

const headers = { authorization: "Bearer ${secret.RUNNER_TOKEN}" };

const shellWorkflow = (implementation: object, more: Parameters<typeof oneTask>[1] = {}) => {
  const whole = { url: runner.url, headers, ...implementation };
  return oneTask([{ ref: "run", action: { kind: "shell", implementation: whole, execution: singleAttempt } }], more);
};

const runCommand = (implementation: object, input: object = {}): Promise<RunView> => curfew.runToEnd(shellWorkflow(implementation), input);

/** Processes whose command line contains the marker. */
const processCount = (marker: string): number => {
  const { stdout } = spawnSync("ps", ["-eo", "args"], { encoding: "utf8" });
  return stdout.split("\n").filter((line) => line.includes(marker)).length;
};

test("a command is run as it is written, without a shell", async () => {
  const run = await runCommand({ command: "echo", args: ["-n", "a  b; $HOME", "${input.n}"] }, { n: 5 });
  assert.equal(run.status, "completed", JSON.stringify(run.error));
  assert.deepEqual(run.output, { exit_code: 0, stdout: "a  b; $HOME 5", stderr: "", truncated: false });
});

test("a command gets its input, directory and environment, and nothing of the runner's", async () => {
  const printing = 'read line; echo "$line from $PWD, $GREETING, token:$RUNNER_TOKEN" >&2';
  const run = await runCommand({ command: "sh", args: ["-c", printing], cwd: "/tmp", stdin: "words\n", env: { GREETING: "hello" } });
  assert.equal(run.output?.stderr, "words from /tmp, hello, token:\n", JSON.stringify(run.error));
});

test("a secret in the environment is redacted", async () => {
  const run = await runCommand({ command: "sh", args: ["-c", 'echo "it is $KEY"'], env: { KEY: "${secret.API_KEY}" } });
  assert.equal(run.output?.stdout, "it is [redacted]\n", JSON.stringify(run.error));
  const failed = await runCommand({ command: "sh", args: ["-c", 'echo "$KEY" >&2; exit 4'], env: { KEY: "${secret.API_KEY}" } });
  assert.equal(failed.error?.message, "the command ended with exit code 4; stderr: [redacted]");
});

test("a failing command fails its step permanently, unless its exit code is expected", async () => {
  const failing = { command: "sh", args: ["-c", "echo half; echo wrong >&2; exit 3"] };
  const run = await runCommand(failing);
  assert.deepEqual([run.status, run.error?.class, run.error?.code], ["failed", "permanent", "exit_code"]);
  assert.equal(run.error?.message, "the command ended with exit code 3; stderr: wrong; stdout: half");
  const expected = await runCommand({ ...failing, expect_exit: [0, 3] });
  assert.deepEqual(expected.output, { exit_code: 3, stdout: "half\n", stderr: "wrong\n", truncated: false });
  const killed = await runCommand({ command: "sh", args: ["-c", "kill -SEGV $$"] });
  assert.deepEqual([killed.error?.class, killed.error?.code], ["permanent", "killed"], JSON.stringify(killed.error));
});

test("at its deadline a command is killed with its children, and its output is kept", async () => {
  const marker = `${Date.now()}${process.pid}`;
  const args = ["-c", `echo begun; sleep 60.${marker} & sleep 61.${marker}; echo never`];
  const document = shellWorkflow({ command: "sh", args }, { node: { timeout: "1500ms" } });
  await curfew.store(document);
  const runId = await curfew.start(document.id);
  await until("the command and both its children to run", () => processCount(marker) >= 3);
  const run = await curfew.ended(runId);
  assert.deepEqual([run.status, run.error?.class], ["failed", "timeout"]);
  await until("every process to end", () => processCount(marker) === 0);
  const { json } = await curfew.api("GET", `/v1/runs/${run.id}/timeouts`);
  const record = (await curfew.api("GET", json.items[0].recovery_path)).json;
  assert.ok(record.timeout_event.elapsed_ms >= 1_500, JSON.stringify(record.timeout_event));
  assert.deepEqual(
    record.partial_artifacts.map(({ name, complete, text }: any) => [name, complete, text]),
    [["run", false, "begun\n"]],
  );
});

test("a command whose caller disconnects is killed", async () => {
  const marker = `62.${Date.now()}${process.pid}`;
  const abort = new AbortController();
  const body = JSON.stringify({ command: "sh", args: ["-c", `sleep ${marker}; true`] });
  const request = fetch(runner.url, { method: "POST", body, signal: abort.signal, headers: { authorization: `Bearer ${TOKEN}` } });
  await until("the command to run", () => processCount(marker) >= 2);
  abort.abort();
  await assert.rejects(request);
  await until("the command to end", () => processCount(marker) === 0);
});

test("long output is truncated and marked", async () => {
  const printing = "i=0; while [ $i -lt 500 ]; do echo line $i; i=$((i+1)); done";
  const run = await runCommand({ url: limitedRunner.url, command: "sh", args: ["-c", printing] });
  assert.equal(run.status, "completed", JSON.stringify(run.error));
  assert.equal(run.output.truncated, true);
  assert.equal(run.output.stdout.length, 1_000);
  assert.ok(run.output.stdout.startsWith("line 0\nline 1\n"));
});

test("a runner has its own limits", async () => {
  const run = await runCommand({ url: limitedRunner.url, command: "sh", args: ["-c", "echo begun; sleep 30"] });
  assert.deepEqual([run.error?.class, run.error?.code], ["timeout", "runner_timeout"]);
  assert.match(run.error?.message ?? "", /stdout: begun/);
});

test("each refusal of a runner has a class", async () => {
  const cases: [what: object, errorClass: string, code: string][] = [
    [{ command: "echo", headers: { authorization: "Bearer wrong" } }, "auth", "http_401"],
    [{ command: "echo", headers: {} }, "auth", "http_401"],
    [{ command: "rm" }, "auth", "http_403"],
    [{ command: "/bin/echo" }, "auth", "http_403"],
    [{ command: "../bin/echo" }, "auth", "http_403"],
    [{ command: "echo", cwd: "/no/such/directory" }, "validation", "http_422"],
    [{ command: "echo", env: { "A=B": "c" } }, "validation", "http_422"],
    [{ command: "echo", env: { PATH: "/tmp" } }, "bad_request", "http_400"],
    [{ command: "echo", url: "http://127.0.0.1:1/" }, "network", "network"],
  ];
  for (const [what, errorClass, code] of cases) {
    const run = await runCommand(what);
    assert.deepEqual([run.error?.class, run.error?.code], [errorClass, code], JSON.stringify([what, run.error]));
  }
});

test("a bound Worker can be the runner", async () => {
  const action = { kind: "shell", implementation: { binding: "ECHO", command: "make", args: ["all"] }, execution: singleAttempt };
  const run = await curfew.runToEnd(oneTask([{ action }]));
  // The echo Worker is no runner: the test shows that it gets the request.
  assert.deepEqual([run.error?.class, run.error?.code], ["validation", "invalid_response"], JSON.stringify(run.error));
  const unbound = { kind: "shell", implementation: { binding: "NOBODY", command: "make" }, execution: singleAttempt };
  assert.equal((await curfew.runToEnd(oneTask([{ action: unbound }]))).error?.code, "no_binding");
});

test("a private address is refused, as for http_request", async () => {
  const strict = await startCurfew({ executorVars: { CURFEW_ALLOW_PRIVATE: "", CURFEW_SECRETS: "RUNNER_TOKEN", RUNNER_TOKEN: TOKEN } });
  try {
    const run = await strict.runToEnd(shellWorkflow({ command: "echo" }));
    assert.deepEqual([run.error?.class, run.error?.code], ["permanent", "private_address"]);
  } finally {
    await strict.dispose();
  }
});

test("the runner does not start without a token, a list of commands, or one of them", async () => {
  const PATH = process.env["PATH"] ?? "";
  for (const [name, env] of [
    ["RUNNER_TOKEN", { PATH, RUNNER_ALLOW: "echo" }],
    ["RUNNER_TOKEN", { PATH, RUNNER_ALLOW: "echo", RUNNER_TOKEN: "short" }],
    ["RUNNER_ALLOW", { PATH, RUNNER_TOKEN: TOKEN }],
    ['"no-such-command"', { PATH, RUNNER_TOKEN: TOKEN, RUNNER_ALLOW: "echo,no-such-command" }],
    ['"echo"', { PATH: "", RUNNER_TOKEN: TOKEN, RUNNER_ALLOW: "echo" }],
    // Relative to the directory in which the runner was started, whatever that is.
    ['"echo"', { PATH: ".:node_modules", RUNNER_TOKEN: TOKEN, RUNNER_ALLOW: "echo" }],
    // A directory, and a file that is no program.
    ['"/tmp"', { PATH, RUNNER_TOKEN: TOKEN, RUNNER_ALLOW: "/tmp" }],
    ['"/etc/passwd"', { PATH, RUNNER_TOKEN: TOKEN, RUNNER_ALLOW: "/etc/passwd" }],
    ['"bin/echo"', { PATH: "/", RUNNER_TOKEN: TOKEN, RUNNER_ALLOW: "bin/echo" }],
  ] as const) {
    const child = spawn(process.execPath, [script], { env: { RUNNER_PORT: "0", ...env }, stdio: ["ignore", "ignore", "pipe"] });
    let said = "";
    child.stderr.on("data", (chunk) => (said += chunk));
    // One that starts all the same does not end by itself.
    const timer = setTimeout(() => child.kill(), 10_000);
    const [code] = await event(child, "close");
    clearTimeout(timer);
    assert.equal(code, 2, `${JSON.stringify(env)}: ${said}`);
    assert.match(said, new RegExp(name));
  }
});

test("a busy runner responds with 503 and Retry-After", async () => {
  const body = JSON.stringify({ command: "sh", args: ["-c", "sleep 0.25"] });
  const occupied = fetch(limitedRunner.url, { method: "POST", body, headers: { authorization: `Bearer ${TOKEN}` } });
  const refused = await until("the runner to be busy", async () => {
    const response = await fetch(limitedRunner.url, { method: "POST", body: '{"command": "echo"}', headers: { authorization: `Bearer ${TOKEN}` } });
    await response.text();
    return response.status === 503 && response;
  });
  assert.equal(refused.headers.get("retry-after"), "1");
  assert.equal((await occupied).status, 200);
});

/** Sends an order to the runner as an executor would. */
async function send(order: object, token = TOKEN): Promise<{ status: number; json: any }> {
  const response = await fetch(runner.url, { method: "POST", body: JSON.stringify(order), headers: { authorization: `Bearer ${token}` } });
  return { status: response.status, json: await response.json() };
}

test("a variable that decides which code a command loads is refused by name", async () => {
  for (const name of [
    "PATH", "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "NODE_OPTIONS", "NODE_PATH", "BASH_ENV", "ENV", "IFS", "SHELLOPTS", "BASH_FUNC_echo",
    "PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "PERL5LIB", "PERL5OPT", "RUBYOPT", "RUBYLIB", "JAVA_TOOL_OPTIONS", "GCONV_PATH", "GIT_SSH_COMMAND", "GIT_CONFIG_COUNT",
    "ld_preload", "Path",
  ]) {
    const { status, json } = await send({ command: "sh", args: ["-c", "echo ran"], env: { OK: "1", [name]: "/tmp/x" } });
    assert.equal(status, 400, name);
    assert.ok(json.error.includes(`"${name}"`), json.error);
  }
  const { status, json } = await send({ command: "sh", args: ["-c", 'echo "$OK $MY_PATH $ENVIRONMENT"'], env: { OK: "1", MY_PATH: "/x", ENVIRONMENT: "test" } });
  assert.deepEqual([status, json.stdout], [200, "1 /x test\n"]);
});

test("a command is started by the path it had when the runner started", async () => {
  const directory = mkdtempSync(join(tmpdir(), "curfew-runner-"));
  const [first, second] = [join(directory, "first"), join(directory, "second")];
  const put = (folder: string, name: string, text: string) => {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, name), `#!/bin/sh\necho ${text}\n`, { mode: 0o755 });
  };
  mkdirSync(first);
  put(second, "tool", "second");
  const own = await startRunner({ RUNNER_ALLOW: `tool,${join(second, "tool")}`, PATH: `${first}:${second}:${process.env["PATH"]}` });
  try {
    // It would be found first now.
    put(first, "tool", "first");
    for (const command of ["tool", join(second, "tool")]) {
      const response = await fetch(own.url, { method: "POST", body: JSON.stringify({ command, cwd: first }), headers: { authorization: `Bearer ${TOKEN}` } });
      assert.equal(((await response.json()) as any).stdout, "second\n", command);
    }
    // A command that is gone is a refusal, and no other takes its place.
    rmSync(join(second, "tool"));
    const gone = await fetch(own.url, { method: "POST", body: '{"command": "tool"}', headers: { authorization: `Bearer ${TOKEN}` } });
    assert.equal(gone.status, 422, await gone.text());
  } finally {
    own.process.kill();
    rmSync(directory, { recursive: true, force: true });
  }
});

test("a token of any length is compared, and a wrong one refused before the order is read", async () => {
  for (const token of ["", "x", TOKEN.slice(0, -1), `${TOKEN}x`, TOKEN.toUpperCase(), "y".repeat(8_000)]) {
    assert.equal((await send({ command: 7 }, token)).status, 401, token.slice(0, 40));
  }
  assert.equal((await send({ command: 7 })).status, 422);
});

test("a runner that redirects elsewhere gets nothing sent there", async () => {
  const [redirecting, elsewhere] = await Promise.all([startPeer(), startPeer()]);
  try {
    for (const status of [301, 302, 303, 307, 308]) {
      const path = `/run/${status}`;
      redirecting.route(path, () => ({ status, headers: { location: `${elsewhere.url}/run` }, body: {} }));
      const run = await runCommand({ url: redirecting.url + path, command: "echo", env: { KEY: "${secret.API_KEY}" } });
      assert.deepEqual([run.error?.code, run.error?.class], ["redirected", "permanent"], JSON.stringify(run.error));
      assert.ok(run.error?.message.includes(`redirects to ${elsewhere.url}:`), run.error?.message);
      assert.equal(elsewhere.requests.length, 0);
    }
  } finally {
    await Promise.all([redirecting.close(), elsewhere.close()]);
  }
});

test("an output that is cut inside a secret ends before it", async () => {
  const printing = 'printf "%0990d" 0; printf "%s" "$KEY"';
  const run = await runCommand({ url: limitedRunner.url, command: "sh", args: ["-c", printing], env: { KEY: "${secret.API_KEY}" } });
  assert.equal(run.output?.truncated, true, JSON.stringify(run.error));
  assert.ok(run.output.stdout.endsWith("0[redacted]"), run.output.stdout.slice(-30));
});
