// `curfew dev` as users run it: wrangler, the Worker and the assets of this checkout, on a free port, with storage that a restart keeps.
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startLocal, type LocalServer } from "../../cli/local/server.ts";
import { createClient, type Client } from "../../client/index.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

export interface Server {
  url: string;
  client: Client;
  stop(): Promise<void>;
  /** Starts it again on the same port. */
  start(): Promise<void>;
  /** Stops it and removes what it stored. */
  dispose(): Promise<void>;
}

const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const probe = createServer();
    probe.on("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() => (typeof address === "object" && address ? resolve(address.port) : reject(new Error("no port"))));
    });
  });

export async function startServer(variables: Record<string, string> = {}, token?: string): Promise<Server> {
  const persistTo = mkdtempSync(join(tmpdir(), "curfew-dashboard-"));
  let port = await freePort();
  let running: LocalServer | undefined;
  const start = async (): Promise<void> => {
    running = await startLocal({ configuration: join(root, "wrangler.toml"), port, persistTo, variables, note: () => {} });
  };
  const stop = async (): Promise<void> => {
    await running?.stop();
    running = undefined;
  };
  for (let attempt = 1; running === undefined; attempt += 1) {
    try {
      await start();
    } catch (error) {
      // Another process may have taken the port before the server had it.
      if (attempt === 3 || !/Address already in use/.test(String(error))) throw error;
      port = await freePort();
    }
  }
  const url = `http://localhost:${port}`;
  return {
    url,
    client: createClient({ url, token }),
    start,
    stop,
    async dispose() {
      await stop();
      rmSync(persistTo, { recursive: true, force: true });
    },
  };
}
