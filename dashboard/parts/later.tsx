// A part of the page that is loaded when it is first shown.
import type { FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Problem } from "./text.tsx";

export function Later({ load }: { load: () => Promise<FunctionComponent> }) {
  const [part, setPart] = useState<{ View: FunctionComponent } | { problem: string } | undefined>(undefined);
  useEffect(() => {
    let isGone = false;
    load().then(
      (View) => !isGone && setPart({ View }),
      (error) => !isGone && setPart({ problem: `this part of the dashboard could not be loaded, reload the page: ${error instanceof Error ? error.message : error}` }),
    );
    return () => {
      isGone = true;
    };
  }, []);
  if (part === undefined) {
    return (
      <div class="empty" aria-busy="true">
        Loading …
      </div>
    );
  }
  return "View" in part ? <part.View /> : <Problem message={part.problem} />;
}
