// `curfew dev` that ends while it starts, in order or not. The Worker is one that never gets ready.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { until } from "../tests/workerd/poll.ts";

const directory = mkdtempSync(join(tmpdir(), "curfew-dev-"));
after(() => rmSync(directory, { recursive: true, force: true }));

const configuration = `
name = "never-ready"
main = "worker.mjs"
compatibility_date = "2026-11-01"

[[d1_databases]]
binding = "DB"
database_name = "db"
migrations_dir = "migrations"
`;
mkdirSync(join(directory, "migrations"));
writeFileSync(join(directory, "wrangler.toml"), configuration);
writeFileSync(join(directory, "worker.mjs"), 'export default { fetch: () => new Response("not yet", { status: 503 }) };');
writeFileSync(join(directory, "migrations", "0001_first.sql"), "CREATE TABLE first (id TEXT);");

const lock = join(directory, ".curfew", "dev.lock");
const log = join(directory, ".curfew", "dev.log");
/** What has happened when the signal comes. */
const moments: [name: string, hasCome: () => boolean][] = [
  ["the migrations are applied", () => existsSync(lock)],
  ["wrangler dev starts", () => existsSync(log)],
  ["the Worker does not answer", () => existsSync(log) && /Ready on/.test(readFileSync(log, "utf8"))],
];

function startDev(...flags: string[]) {
  const main = fileURLToPath(new URL("main.ts", import.meta.url));
  const args = ["--disable-warning=ExperimentalWarning", main, "dev", ...(flags.includes("--port") ? [] : ["--port", "0"]), ...flags];
  const env = { ...process.env, WRANGLER_REGISTRY_PATH: join(directory, "registry") };
  const dev = spawn(process.execPath, args, { cwd: directory, env, stdio: ["ignore", "pipe", "pipe"] });
  const running = { dev, printed: "", closed: once(dev, "close") };
  for (const stream of [dev.stdout, dev.stderr]) stream.on("data", (chunk) => (running.printed += chunk));
  return running;
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

for (const [name, hasCome] of moments) {
  test(`Ctrl-C while ${name} ends at once, and leaves nothing behind`, async () => {
    rmSync(join(directory, ".curfew"), { recursive: true, force: true });
    const running = startDev();
    const { dev, closed } = running;
    try {
      await until(name, () => hasCome() || dev.exitCode !== null, 60_000);
      const at = performance.now();
      dev.kill("SIGINT");
      const [code] = await closed;
      assert.deepEqual([code, running.printed], [0, ""]);
      // A Worker has a minute to get ready.
      assert.ok(performance.now() - at < 20_000, `${performance.now() - at} ms`);
      assert.equal(existsSync(lock), false);
    } finally {
      dev.kill("SIGKILL");
    }
  });
}

test("the server ends with a command line that is killed, and the next one waits for that", async () => {
  rmSync(join(directory, ".curfew"), { recursive: true, force: true });
  const [, , [, isReady]] = moments as [unknown, unknown, (typeof moments)[0]];
  const first = startDev();
  let second: ReturnType<typeof startDev> | undefined;
  let server: number | undefined;
  try {
    await until("the server", () => isReady() || first.dev.exitCode !== null, 60_000);
    const locked = JSON.parse(readFileSync(lock, "utf8")) as { server: number; url: string };
    server = locked.server;
    assert.equal(isAlive(server), true);
    first.dev.kill("SIGKILL");
    second = startDev();
    await until("its own lock", () => JSON.parse(readFileSync(lock, "utf8")).pid === second!.dev.pid || second!.dev.exitCode !== null, 20_000);
    assert.equal(isAlive(server), false, second.printed);
    await assert.rejects(fetch(locked.url, { signal: AbortSignal.timeout(5_000) }), "nothing is left at the port");
    assert.match(second.printed, new RegExp(`^waiting for the end of process ${server}, the server of a`));
  } finally {
    first.dev.kill("SIGKILL");
    second?.dev.kill("SIGINT");
    await second?.closed;
    if (server !== undefined && isAlive(server)) process.kill(server, "SIGTERM");
  }
});

for (const [how, signal] of [["is killed", "SIGKILL"], ["ends in order", "SIGINT"]] as const) {
  test(`a server that hangs is ended with all its processes when the command line ${how}`, async () => {
    rmSync(join(directory, ".curfew"), { recursive: true, force: true });
    const [, , [, isReady]] = moments as [unknown, unknown, (typeof moments)[0]];
    const { dev, closed } = startDev();
    try {
      await until("the server", () => isReady() || dev.exitCode !== null, 60_000);
      const { server } = JSON.parse(readFileSync(lock, "utf8"));
      const [wrangler] = execFileSync("pgrep", ["-P", String(server)], { encoding: "utf8" }).split("\n");
      process.kill(Number(wrangler), "SIGSTOP");
      dev.kill(signal);
      if (signal === "SIGINT") {
        await until("the lock to go", () => !existsSync(lock), 15_000);
        assert.equal(isAlive(server), false, "the next one would find the files in use");
      }
      await closed;
      await until("the end of its group", () => !isAlive(-server), 15_000);
    } finally {
      dev.kill("SIGKILL");
    }
  });
}

test("of several that start at once in one directory one runs, and the others are refused", async () => {
  rmSync(join(directory, ".curfew"), { recursive: true, force: true });
  const all = Array.from({ length: 4 }, () => startDev());
  try {
    const ended: string[] = [];
    for (const running of all) void running.closed.then(() => ended.push(running.printed));
    await until("the others to be refused", () => ended.length >= all.length - 1, 60_000);
    const one = all.find(({ dev }) => dev.exitCode === null);
    assert.ok(one, ended.join("\n"));
    for (const printed of ended) assert.match(printed, new RegExp(`is used by process ${one.dev.pid} `));
    one.dev.kill("SIGINT");
    assert.deepEqual(await one.closed, [0, null]);
    assert.deepEqual(readdirSync(join(directory, ".curfew")).filter((name) => name.startsWith("dev.lock")), []);
  } finally {
    for (const { dev } of all) dev.kill("SIGKILL");
  }
});

test("a Worker that cannot be built ends it with the reason, without the colours of wrangler", async () => {
  rmSync(join(directory, ".curfew"), { recursive: true, force: true });
  writeFileSync(join(directory, "broken.mjs"), "export default oh no;");
  writeFileSync(join(directory, "broken.toml"), configuration.replace("worker.mjs", "broken.mjs"));
  const running = startDev("--config", "broken.toml");
  try {
    const [code] = await running.closed;
    assert.equal(code, 1, running.printed);
    assert.match(running.printed, /^curfew: wrangler dev ended \(exit code 1\)\n[^]*broken\.mjs:1:18/);
    assert.doesNotMatch(running.printed, /\x1b|u001b/);
  } finally {
    running.dev.kill("SIGKILL");
  }
});

test("a port of another process is refused, also one at the other localhost", async (t) => {
  for (const host of ["127.0.0.1", "::1"]) {
    const other = createServer();
    try {
      try {
        await once(other.listen(0, host), "listening");
      } catch (error) {
        t.diagnostic(`this machine has no ${host}: ${error}`);
        continue;
      }
      const { port } = other.address() as AddressInfo;
      const running = startDev("--port", String(port));
      const [code] = await running.closed;
      assert.equal(code, 1);
      assert.equal(running.printed, `curfew: port ${port} is in use: stop the process that uses it, or choose another with --port\n`);
    } finally {
      other.close();
    }
  }
});

test("a store that cannot be made is refused", async () => {
  writeFileSync(join(directory, "file"), "");
  const running = startDev("--persist", "file");
  const [code] = await running.closed;
  assert.equal(code, 1);
  assert.match(running.printed, /^curfew: \S+file is no directory that can be written: EEXIST.*\nchoose where everything is stored with --persist <directory>\n$/);
});

test("a store whose server does not end is refused, with its process", async () => {
  const other = spawn("sleep", ["60"]);
  mkdirSync(join(directory, ".curfew"), { recursive: true });
  // No process has this number.
  writeFileSync(lock, JSON.stringify({ pid: 2 ** 30, server: other.pid, url: "http://localhost:1" }));
  const running = startDev();
  try {
    const [code] = await running.closed;
    assert.equal(code, 1);
    assert.match(running.printed, new RegExp(`is used by process ${other.pid} \\(http://localhost:1\\): stop it, or choose another directory with --persist; if it is not one of Curfew, remove .*dev\\.lock`));
  } finally {
    running.dev.kill("SIGKILL");
    other.kill("SIGKILL");
    rmSync(lock, { force: true });
  }
});
