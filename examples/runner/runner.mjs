// @ts-check
// A reference runner for actions of kind `shell`, without dependencies: takes a command over HTTP, runs it, answers with its exit
// code and output. README.md says how to protect it.
import { spawn } from "node:child_process";
import { createHash, timingSafeEqual } from "node:crypto";
import { accessSync, constants, statSync } from "node:fs";
import { createServer } from "node:http";
import { delimiter, isAbsolute, join } from "node:path";

const setting = (/** @type {string} */ name, /** @type {string} */ fallback) => process.env[name] || fallback;
const number = (/** @type {string} */ name, /** @type {number} */ fallback) => Number(setting(name, String(fallback)));

const token = setting("RUNNER_TOKEN", "");
/** Names as a request writes them, so `/tmp/echo` is not `echo`. */
const allowed = setting("RUNNER_ALLOW", "").split(",").map((name) => name.trim()).filter(Boolean);
const host = setting("RUNNER_HOST", "127.0.0.1");
const port = number("RUNNER_PORT", 8790);
const longestMs = number("RUNNER_MAX_MS", 600_000);
/** Of stdout and stderr each. Both together must fit into what an executor reads of an answer. */
const outputBytes = number("RUNNER_OUTPUT_BYTES", 64 * 1024);
const concurrency = number("RUNNER_CONCURRENCY", 8);
const BODY_BYTES = 1024 * 1024;
/** How long the pipes of a command that has ended are still read. */
const PIPES_MS = 100;
/**
 * Variables that decide which program or code a command loads: with one of them every allowed command could run any other. The
 * names are those of the usual shells, loaders and interpreters.
 */
const LOADERS = new RegExp(
  `^(${[
    "PATH|ENV|IFS|CDPATH|BASH_ENV|BASH_FUNC_.*|BASHOPTS|SHELLOPTS|PROMPT_COMMAND|PS4",
    "LD_.*|DYLD_.*|GCONV_PATH|LOCPATH|GLIBC_TUNABLES",
    "NODE_OPTIONS|NODE_PATH|PYTHON.*|PERL5.*|PERLLIB|RUBYOPT|RUBYLIB|LUA_.*PATH.*|PHPRC|PHP_INI_SCAN_DIR|CLASSPATH|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|JDK_JAVA_OPTIONS",
    "GIT_(SSH.*|EXEC_PATH|CONFIG.*|EXTERNAL_DIFF|PAGER|EDITOR|SEQUENCE_EDITOR|ASKPASS|PROXY_COMMAND|TEMPLATE_DIR)|SSH_ASKPASS|PAGER|EDITOR|VISUAL|MAKEFILES|MAKEFLAGS",
  ].join("|")})$`,
  "i",
);

if (token.length < 16) fail("RUNNER_TOKEN must hold a token of at least 16 characters; whoever knows it can run commands here");
if (allowed.length === 0) fail("RUNNER_ALLOW must list the commands that may run, e.g. RUNNER_ALLOW=git,make");
for (const [name, value] of Object.entries({ RUNNER_PORT: port, RUNNER_MAX_MS: longestMs, RUNNER_OUTPUT_BYTES: outputBytes, RUNNER_CONCURRENCY: concurrency })) {
  if (!Number.isSafeInteger(value) || value < 0) fail(`${name} must be a whole number`);
}

/**
 * Where each command is, found once: what is put into a directory of PATH later is not run in its place.
 * @type {Map<string, string>}
 */
const commands = new Map(allowed.map((name) => [name, locate(name) ?? fail(`the command ${JSON.stringify(name)} of RUNNER_ALLOW is not on this machine`)]));

/** The absolute path of a program. @param {string} name */
function locate(name) {
  const isProgram = (/** @type {string} */ path) => {
    try {
      accessSync(path, constants.X_OK);
      return statSync(path).isFile();
    } catch {
      return false;
    }
  };
  // A relative path, in the name or in PATH, would depend on the directory of the runner.
  const directories = (process.env["PATH"] ?? "").split(delimiter).filter(isAbsolute);
  const paths = isAbsolute(name) ? [name] : name.includes("/") ? [] : directories.map((directory) => join(directory, name));
  return paths.find(isProgram);
}

/** @param {string} message @returns {never} */
function fail(message) {
  console.error(`runner: ${message}`);
  process.exit(2);
}

/** A request that is refused. */
class Refused extends Error {
  /** @param {number} status @param {string} message */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** @typedef {{command: string, path: string, args: string[], env: Record<string, string>, cwd?: string, stdin: string, timeoutMs: number}} Order */

let running = 0;

const server = createServer(async (request, response) => {
  const answer = (/** @type {number} */ status, /** @type {object} */ body) =>
    response.writeHead(status, { "content-type": "application/json", ...(status === 503 ? { "retry-after": "1" } : {}) }).end(JSON.stringify(body));
  try {
    if (!knows(request.headers.authorization)) throw new Refused(401, "wrong or missing token");
    if (request.method !== "POST") throw new Refused(405, "send a command by POST");
    const order = read(await body(request));
    if (running >= concurrency) throw new Refused(503, "as many commands are running as may run");
    running += 1;
    try {
      // A caller that disconnects needs no result.
      const gone = new AbortController();
      response.on("close", () => gone.abort());
      answer(200, await run(order, gone.signal));
    } finally {
      running -= 1;
    }
  } catch (error) {
    const status = error instanceof Refused ? error.status : 500;
    answer(status, { error: error instanceof Refused ? error.message : "internal error" });
  }
});

/** Compared as hashes: all have the same length, so the comparison takes the same time. @param {string | undefined} header */
function knows(header) {
  const hash = (/** @type {string} */ text) => createHash("sha256").update(text).digest();
  return timingSafeEqual(hash(header ?? ""), hash(`Bearer ${token}`));
}

/** @param {import("node:http").IncomingMessage} request */
async function body(request) {
  const chunks = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += chunk.length;
    if (bytes > BODY_BYTES) throw new Refused(413, `an order has at most ${BODY_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** @param {string} text @returns {Order} */
function read(text) {
  let order;
  try {
    order = JSON.parse(text);
  } catch {
    throw new Refused(400, "the order is not JSON");
  }
  const { command, args = [], env = {}, cwd, stdin, timeout_ms } = order ?? {};
  const isText = (/** @type {unknown} */ value) => typeof value === "string" && !value.includes("\0");
  if (!isText(command) || command === "") throw new Refused(422, "command must be a string");
  const path = commands.get(command);
  if (path === undefined) throw new Refused(403, `the command ${JSON.stringify(command)} is not allowed here`);
  if (!Array.isArray(args) || !args.every(isText)) throw new Refused(422, "args must be strings");
  if (env === null || typeof env !== "object" || !Object.values(env).every(isText)) throw new Refused(422, "env must hold strings");
  if (!Object.keys(env).every((name) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name))) throw new Refused(422, "a name in env is none");
  const loader = Object.keys(env).find((name) => LOADERS.test(name));
  if (loader !== undefined) throw new Refused(400, `env may not hold ${JSON.stringify(loader)}: it decides which code a command loads`);
  if (cwd != null && !isText(cwd)) throw new Refused(422, "cwd must be a string");
  if (stdin != null && typeof stdin !== "string") throw new Refused(422, "stdin must be a string");
  if (timeout_ms != null && !(typeof timeout_ms === "number" && timeout_ms >= 0)) throw new Refused(422, "timeout_ms must be a number");
  return { command, path, args, env, cwd: cwd ?? undefined, stdin: stdin ?? "", timeoutMs: Math.min(timeout_ms ?? longestMs, longestMs) };
}

/** @param {Order} order @param {AbortSignal} gone */
function run({ command, path, args, env, cwd, stdin, timeoutMs }, gone) {
  return new Promise((resolve, reject) => {
    // A group of its own, so that what the command starts ends with it. The runner's own environment holds its token.
    const child = spawn(path, args, { cwd, env: { PATH: process.env["PATH"], HOME: process.env["HOME"], LANG: process.env["LANG"], ...env }, detached: true });
    let timedOut = false;
    const kill = () => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
      } catch {
        // The group is gone already.
      }
    };
    const timer = setTimeout(() => {
      timedOut = true;
      kill();
    }, timeoutMs);
    gone.addEventListener("abort", kill);
    const [out, err] = [keep(child.stdout), keep(child.stderr)];
    // A command that does not read its input closes it.
    child.stdin.on("error", () => {});
    child.stdin.end(stdin);
    child.on("error", (error) => {
      clearTimeout(timer);
      const code = /** @type {NodeJS.ErrnoException} */ (error).code ?? "error";
      reject(new Refused(422, `${JSON.stringify(command)} cannot be started here: ${code}`));
    });
    // Processes that the command left behind keep the pipes open and would delay the answer: they are killed with the group, or,
    // if they have left it, their output is ignored.
    child.on("exit", () => {
      kill();
      setTimeout(() => [child.stdout, child.stderr].forEach((pipe) => pipe.destroy()), PIPES_MS).unref();
    });
    child.on("close", (exit_code, signal) => {
      clearTimeout(timer);
      gone.removeEventListener("abort", kill);
      const truncated = out.truncated() || err.truncated();
      resolve({ exit_code, signal, stdout: out.text(), stderr: err.text(), truncated, timed_out: timedOut });
    });
  });
}

/** The start of an output; the rest is read and dropped, so that the command does not hang. @param {import("node:stream").Readable} stream */
function keep(stream) {
  /** @type {Buffer[]} */
  const chunks = [];
  let [bytes, dropped] = [0, false];
  stream.on("data", (/** @type {Buffer} */ chunk) => {
    const part = chunk.subarray(0, outputBytes - bytes);
    dropped ||= part.length < chunk.length;
    bytes += part.length;
    if (part.length > 0) chunks.push(part);
  });
  return { text: () => new TextDecoder().decode(Buffer.concat(chunks)), truncated: () => dropped };
}

server.on("error", (error) => fail(error.message));
server.listen(port, host, () => {
  const address = server.address();
  const at = typeof address === "object" && address ? address.port : port;
  console.log(`runner: listening on http://${host}:${at}, ${commands.size} commands allowed`);
});
