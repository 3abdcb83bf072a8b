// What happens if a gate is not decided. A gate does not say it; the document of its workflow does.
import type { Client, Gate } from "../client/index.ts";

/** Requests at the same time. */
const AT_ONCE = 8;

const OF_NODE: Record<string, string> = {
  fail: "the node fails",
  approve: 'it counts as "approve"',
  reject: 'it counts as "reject"',
  cancel_all: "the run ends as timed_out",
};
const OF_RUN: Record<string, string> = { fail: "the run ends as failed", cancel_all: "the run ends as timed_out" };

/** A sentence for each gate, in their order; undefined where the document cannot be read. */
export async function undecided(api: Client, gates: readonly Gate[]): Promise<(string | undefined)[]> {
  const documents = await documentsOfRuns(api, [...new Set(gates.filter(({ timeout_at }) => timeout_at !== null).map(({ run_id }) => run_id))]);
  return gates.map((gate) => (gate.timeout_at === null ? "it stays open" : policyOf(gate, documents.get(gate.run_id))));
}

type Document = Record<string, any>;

function policyOf(gate: Gate, document: Document | undefined): string | undefined {
  if (document === undefined) return undefined;
  if (gate.kind !== "node") return OF_RUN[document["gate"]?.on_timeout ?? "cancel_all"];
  const node = (document["nodes"] as Document[] | undefined)?.find(({ id }) => id === gate.node_id);
  return node?.["gate"] === undefined ? undefined : OF_NODE[node["gate"].on_timeout ?? "fail"];
}

/** Runs of one version share its document. */
async function documentsOfRuns(api: Client, runIds: readonly string[]): Promise<Map<string, Document>> {
  const versions = new Map<string, Promise<Document>>();
  const found = new Map<string, Document>();
  const queue = [...runIds];
  const worker = async () => {
    for (let runId = queue.shift(); runId !== undefined; runId = queue.shift()) {
      try {
        const { workflow_id, version } = await api.run(runId);
        const key = `${workflow_id} ${version}`;
        const reading = versions.get(key) ?? api.read("workflows", workflow_id, { version }).then(({ document }) => document as Document);
        versions.set(key, reading);
        found.set(runId, await reading);
      } catch {
        // The run has ended meanwhile, or the token may not see it: the sentence is left out.
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return found;
}
