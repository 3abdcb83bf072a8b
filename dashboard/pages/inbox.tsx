// Everything that waits for a person, the nearest deadline first. Keys: j and k move, numbers decide.
import { useEffect, useState } from "preact/hooks";
import type { Gate } from "../../client/index.ts";
import { byDeadline } from "../logic/gates.ts";
import { count } from "../logic/words.ts";
import { GateCard } from "../parts/gate_card.tsx";
import { GateContext } from "../parts/gate_context.tsx";
import { Problem } from "../parts/text.tsx";
import { usePolled } from "../state/poll.ts";
import { may } from "../state/session.ts";

const EVERY_MS = 3_000;
const SHOWN = 30;

export function InboxPage() {
  const [current, setCurrent] = useState<string | undefined>(undefined);
  const [decided, setDecided] = useState<ReadonlySet<string>>(new Set());
  const [shown, setShown] = useState(SHOWN);
  const { data, error, refresh } = usePolled("inbox", EVERY_MS, async (client, signal) => {
    const gates: Gate[] = [];
    for await (const gate of client.pages((page) => client.gates({ limit: 500, signal, ...page }))) gates.push(gate);
    return byDeadline(gates);
  });
  useEffect(() => {
    document.title = "Inbox - Curfew";
  }, []);
  // The list is about a second behind: what was decided here is gone at once.
  const gates = (data.value ?? []).filter((gate) => !decided.has(keyOf(gate)));
  const chosen = gates.find((gate) => keyOf(gate) === current) ?? gates[0];

  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || (event.target as Element).closest?.("input, textarea, select, dialog")) return;
      const step = event.key === "j" ? 1 : event.key === "k" ? -1 : 0;
      if (step === 0 || !chosen) return;
      const next = gates[Math.min(Math.max(gates.indexOf(chosen) + step, 0), gates.length - 1)]!;
      setCurrent(keyOf(next));
      document.getElementById(keyOf(next))?.scrollIntoView({ block: "nearest" });
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  });

  return (
    <>
      <div class="page-head">
        <h1>Inbox</h1>
        <span class="muted">{data.value && count(gates.length, "decision waits", "decisions wait")}</span>
      </div>
      {gates.length > 0 && (
        <p class="muted small">
          Nearest deadline first. <kbd>j</kbd> and <kbd>k</kbd> move, number keys decide; a decision can be taken back for a second.
          {!may("decide") && " Your role may not decide."}
        </p>
      )}
      {error.value && <Problem message={error.value} />}
      {gates.slice(0, shown).map((gate) => (
        <div key={keyOf(gate)} id={keyOf(gate)} class={`inbox-item ${gate === chosen ? "current" : ""}`} onFocusCapture={() => setCurrent(keyOf(gate))} onMouseDown={() => setCurrent(keyOf(gate))}>
          <GateCard gate={gate} showsRun isCurrent={gate === chosen} onDecided={() => (setDecided(new Set([...decided, keyOf(gate)])), refresh())}>
            <GateContext gate={gate} />
          </GateCard>
        </div>
      ))}
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

const keyOf = (gate: Gate): string => `gate-${gate.run_id}-${gate.id}`;
