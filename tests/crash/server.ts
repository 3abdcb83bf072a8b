// Curfew in a process that can be killed. process.ts starts it and gets its URL and workerd's pid over IPC.
import type { ChildProcess } from "node:child_process";
import { subscribe } from "node:diagnostics_channel";
import { startCurfew } from "../workerd/harness.ts";

export interface ServerReady {
  url: string;
  workerdPid: number;
}

const children: ChildProcess[] = [];
subscribe("child_process", (message) => children.push((message as { process: ChildProcess }).process));

const [persistTo, vars = "{}", executorVars = "{}"] = process.argv.slice(2);
const curfew = await startCurfew({ ...(persistTo ? { persistTo } : {}), vars: JSON.parse(vars), executorVars: JSON.parse(executorVars) });
// When the driver ends for any reason, this process and its workerd end, too.
process.on("disconnect", async () => {
  await curfew.dispose();
  process.exit(0);
});
const workerd = children.find((child) => /workerd/.test(child.spawnfile) && child.exitCode === null);
if (workerd?.pid === undefined) throw new Error("miniflare started no workerd");
// Run ids: their summaries are sent to the index once more, as the sweep would do for runs that it knows of.
process.on("message", async (ids: string[]) => {
  const queue = await curfew.miniflare.getQueueProducer<string>("INDEX_QUEUE", "curfew");
  for (const id of ids) {
    const { json } = await curfew.sendToRun(id, "probe");
    await queue.send(JSON.stringify(json.standing), { contentType: "text" });
  }
  process.send?.("probed");
});
process.send?.({ url: curfew.url, workerdPid: workerd.pid } satisfies ServerReady);
