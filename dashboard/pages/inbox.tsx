// Everything that waits for a person, the nearest deadline first.
import { useEffect, useState } from "preact/hooks";
import type { Gate } from "../../client/index.ts";
import { byDeadline } from "../logic/gates.ts";
import { count } from "../logic/words.ts";
import { GateList } from "../parts/gate_list.tsx";
import { Problem } from "../parts/text.tsx";
import { undecided } from "../state/decided_gates.ts";
import { usePolled } from "../state/poll.ts";
import { may } from "../state/session.ts";

const EVERY_MS = 3_000;
const SHOWN = 30;

export function InboxPage() {
  const [shown, setShown] = useState(SHOWN);
  const { data, error, refresh } = usePolled("inbox", EVERY_MS, async (client, signal) => {
    const gates: Gate[] = [];
    for await (const gate of client.pages((page) => client.gates({ limit: 500, signal, ...page }))) gates.push(gate);
    return byDeadline(gates);
  });
  useEffect(() => {
    document.title = "Inbox - Curfew";
  }, []);
  const gates = undecided(data.value ?? []);

  return (
    <>
      <div class="page-head">
        <h1>Inbox</h1>
        <span class="muted">{data.value && count(gates.length, "decision waits", "decisions wait")}</span>
      </div>
      {gates.length > 0 && (
        <p class="muted small">
          Nearest deadline first. <kbd>j</kbd> and <kbd>k</kbd> move, number keys decide; for a second <kbd>u</kbd> takes a decision back.
          {!may("decide") && " Your role may not decide."}
        </p>
      )}
      {error.value && <Problem message={error.value} />}
      <GateList gates={gates.slice(0, shown)} showsRun onDecided={refresh} />
      {gates.length > shown && (
        <div>
          <button type="button" class="button" onClick={() => setShown(shown + SHOWN)}>
            Show more of {gates.length}
          </button>
        </div>
      )}
      {gates.length === 0 && <div class="card empty">{data.value ? "Nothing waits for a person." : "Loading …"}</div>}
    </>
  );
}
