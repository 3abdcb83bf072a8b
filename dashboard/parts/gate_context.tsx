// What a person should know before they decide: what happens without them, who may decide, what the choices do, and what was done so far.
import type { Gate } from "../../client/index.ts";
import { CHOICES, needsFourEyes, withoutDecision } from "../logic/gates.ts";
import { count, duration, words } from "../logic/words.ts";
import { usePolled } from "../state/poll.ts";
import { Text } from "./text.tsx";

export function GateContext({ gate }: { gate: Gate }) {
  const { data } = usePolled(`gate-${gate.run_id}-${gate.id}`, 0, async (client, signal) => {
    const run = await client.run(gate.run_id, { signal });
    const stored = await client.read("workflows", run.workflow_id, { version: run.version, signal }).catch(() => undefined);
    return { run, document: stored?.document };
  });
  const found = data.value;
  if (!found) return null;
  const { run, document } = found;
  const done = run.counts["completed"] ?? 0;
  return (
    <ul class="cuts small muted">
      <li>{withoutDecision(gate, document)}</li>
      {needsFourEyes(gate, document) && (
        <li>
          Another person than {run.started_by ? <Text value={run.started_by} max={80} /> : "the one who started the run"} has to decide.
        </li>
      )}
      {gate.kind !== "node" && gate.choices.map((choice) => CHOICES[gate.kind]?.[choice] && <li key={choice}>{CHOICES[gate.kind]![choice]}</li>)}
      <li>
        The run of <Text value={run.workflow_id} /> has taken {duration(run.duration_ms)}, {count(done, "token")} completed
        {run.timeout_ms !== null && `, its limit is ${duration(run.timeout_ms)}`}.{" "}
        {Object.entries(run.counts)
          .filter(([status]) => status !== "completed")
          .map(([status, value]) => `${value} ${words(status)}`)
          .join(", ")}
      </li>
    </ul>
  );
}
