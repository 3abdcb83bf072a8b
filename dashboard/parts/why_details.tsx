// Why a limit passed, to be opened: it is a request of its own.
import { useState } from "preact/hooks";
import { Later } from "./later.tsx";

export function WhyDetails({ run, record, isOpen = false }: { run: string; record: number; isOpen?: boolean }) {
  const [isWanted, setWanted] = useState(isOpen);
  return (
    <details open={isWanted} onToggle={(event) => event.currentTarget.open && setWanted(true)}>
      <summary>
        <h3>Why it timed out</h3>
      </summary>
      {isWanted && <Later load={() => import("./timeout_why.tsx").then(({ Why }) => () => <Why run={run} record={record} />)} />}
    </details>
  );
}
