// Gates, the nearest deadline first. One of them is current: number keys decide it, j and k move to others.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Gate } from "../../client/index.ts";
import { byDeadline, gateKey } from "../logic/gates.ts";
import { markDecided, undecided } from "../state/decided_gates.ts";
import { GateCard } from "./gate_card.tsx";
import { GateContext } from "./gate_context.tsx";
import { Guard } from "./guard.tsx";
import { takesKeys } from "./keys.ts";

/** How long keys wait after the current gate has gone: who had pressed one a moment later meant the gate before. */
const SETTLED_MS = 700;

interface GateListProps {
  gates: readonly Gate[];
  showsRun?: boolean;
  onDecided: () => void;
}

export function GateList({ gates, showsRun = false, onDecided }: GateListProps) {
  const ordered = byDeadline(undecided(gates));
  const [current, setCurrent] = useState<string | undefined>(undefined);
  const index = ordered.findIndex((gate) => gateKey(gate) === current);
  const lastIndex = useRef(0);
  const goneAt = useRef(-Infinity);

  // It stays current when gates with nearer deadlines come: a key that is on its way must not decide another one.
  useLayoutEffect(() => {
    if (index >= 0) lastIndex.current = index;
    const next = index >= 0 ? undefined : ordered[Math.min(lastIndex.current, ordered.length - 1)];
    if (!next) return;
    if (current !== undefined) goneAt.current = performance.now();
    setCurrent(gateKey(next));
  });

  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const step = event.key === "j" ? 1 : event.key === "k" ? -1 : 0;
      if (step === 0 || index < 0 || !takesKeys(event)) return;
      const next = gateKey(ordered[Math.min(Math.max(index + step, 0), ordered.length - 1)]!);
      setCurrent(next);
      document.getElementById(next)?.scrollIntoView({ block: "nearest" });
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  });

  return (
    <>
      {ordered.map((gate) => {
        const key = gateKey(gate);
        const isCurrent = key === current;
        return (
          <div key={key} id={key} class={`gate-item ${isCurrent && ordered.length > 1 ? "current" : ""}`} onFocusCapture={() => setCurrent(key)} onMouseDown={() => setCurrent(key)}>
            <Guard what={`The gate ${gate.id} of ${gate.run_id}`}>
              <GateCard gate={gate} showsRun={showsRun} isCurrent={isCurrent} mayUseKeys={() => performance.now() - goneAt.current > SETTLED_MS} onDecided={() => (markDecided(gate), onDecided())}>
                <Guard what="What is known about it">
                  <GateContext gate={gate} />
                </Guard>
              </GateCard>
            </Guard>
          </div>
        );
      })}
    </>
  );
}
