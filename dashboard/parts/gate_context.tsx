// What a person should know before they decide: what happens without them, who may decide, what the choices do, what was done so far, and why
// a limit passed.
import type { Client, Gate } from "../../client/index.ts";
import { choiceSentence, doneSoFar, fourEyes, recordOf, stateOf, withoutDecision } from "../logic/gates.ts";
import { usedSentence, whyOf } from "../logic/why.ts";
import { usePolled } from "../state/poll.ts";
import { identity } from "../state/session.ts";
import { Text } from "./text.tsx";
import { WhyDetails } from "./why_details.tsx";

/** Enough to say what was done; the page of the run has the rest. */
const TOKENS = 200;

export function GateContext({ gate }: { gate: Gate }) {
  const { data } = usePolled(`gate-${gate.run_id}-${gate.id}`, 0, async (client, signal) => {
    const run = await client.run(gate.run_id, { signal });
    const stored = client.read("workflows", run.workflow_id, { version: run.version, signal }).catch(() => undefined);
    const tokens = gate.kind === "node" ? undefined : client.tokens(gate.run_id, { limit: TOKENS, signal }).catch(() => undefined);
    const record = gate.kind === "workflow_timeout" ? await readRecord(client, gate, signal).catch(() => undefined) : undefined;
    return { run, document: (await stored)?.document, tokens: (await tokens)?.items, record };
  });
  const found = data.value;
  if (!found) return null;
  const { run, document, tokens, record } = found;
  const eyes = fourEyes(gate, document, run.started_by, identity.value?.name);
  return (
    <>
      <ul class="cuts small muted">
        {[record?.used ?? "", ...(tokens ? doneSoFar(tokens) : [])].filter((sentence) => sentence !== "").map((sentence) => (
          <li key={sentence}>
            <Text value={sentence} max={1_000} />
          </li>
        ))}
        <li>
          A run of <Text value={run.workflow_id} />. <Text value={stateOf(run)} />
        </li>
        {gate.choices.map((choice) => {
          const sentence = choiceSentence(gate, choice);
          return sentence && <li key={choice}>{sentence}</li>;
        })}
        <li>{withoutDecision(gate, document)}</li>
        {eyes !== undefined && (
          <li>
            <Text value={eyes} max={400} />
          </li>
        )}
      </ul>
      {record && <WhyDetails run={gate.run_id} record={record.id} />}
    </>
  );
}

async function readRecord(client: Client, gate: Gate, signal: AbortSignal) {
  const records = [];
  for await (const record of client.pages((page) => client.timeouts(gate.run_id, { limit: 1_000, signal, ...page }))) records.push(record);
  const record = recordOf(gate, records);
  if (!record) return undefined;
  const why = whyOf(await client.timeout(gate.run_id, record.id, { signal }));
  return { id: record.id, used: why ? usedSentence(why) : "" };
}
