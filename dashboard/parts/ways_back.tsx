// The ways back of a run that failed or timed out, with the recommended one and the button that takes it.
import { useState } from "preact/hooks";
import type { ResumeOptions } from "../../client/index.ts";
import { words } from "../logic/words.ts";
import { attempt } from "../state/notices.ts";
import { usePolled } from "../state/poll.ts";
import type { RunStore } from "../state/run_store.ts";
import { client, may } from "../state/session.ts";
import { Text } from "./text.tsx";

const TITLES: Record<string, string> = { retry_step: "Retry from what failed", discard_and_retry: "Discard and retry", escalate: "Ask a person" };

type Mode = NonNullable<ResumeOptions["recommended"]>;

/** The ways back of a run that has failed or timed out. */
export interface Ways {
  options: ResumeOptions;
  /** The newest version of the workflow, where it is another one than that of the run. */
  newer: number | undefined;
  /** Without a version on that of the run. */
  retry: (mode: Mode, version?: number) => Promise<void>;
}

const NEWEST_EVERY_MS = 5_000;

/** The newest version of a run's workflow, if the run has another one. */
export function useNewerVersion(store: RunStore, isWanted: boolean): number | undefined {
  const { workflow_id, version } = store.run.value!;
  const { data } = usePolled(`newest-${workflow_id}-${isWanted}`, isWanted ? NEWEST_EVERY_MS : 0, async (client, signal) => (isWanted ? (await client.read("workflows", workflow_id, { signal })).version : undefined));
  return data.value === undefined || data.value <= version ? undefined : data.value;
}

/** Undefined for any other run, and until they are known. */
export function useWaysBack(store: RunStore): Ways | undefined {
  const run = store.run.value!;
  const hasEnded = run.status === "failed" || run.status === "timed_out";
  const { data } = usePolled(`resume-${run.id}-${run.attempt}-${hasEnded && run.ended_at}`, 0, async (client, signal) => (hasEnded ? client.resumeOptions(run.id, { signal }) : undefined));
  const newer = useNewerVersion(store, hasEnded && may("operate"));
  const options = data.value;
  if (!hasEnded || !options) return undefined;
  return {
    options,
    newer,
    async retry(mode, version) {
      const next = await attempt(() => client.value.retry(run.id, { mode, ...(version !== undefined && { version }) }), "The run goes on.");
      if (next) store.changed(next);
    },
  };
}

/** What the button beside the budget of the run does: the recommended way, if this caller may take it. */
export function recommendedWay(ways: Ways | undefined): { title: string; take: () => void } | undefined {
  const mode = ways?.options.resumable ? ways.options.recommended : null;
  if (!ways || !mode || !may("operate")) return undefined;
  const version = ways.options.version.recommended ? ways.newer : undefined;
  return { title: `${TITLES[mode] ?? words(mode)}${version === undefined ? "" : `, on version ${version}`}`, take: () => void ways.retry(mode, version) };
}

export function WaysBack({ ways: { options, newer, retry } }: { ways: Ways }) {
  const [chosen, setChosen] = useState<"own" | "newer" | undefined>(undefined);
  // A document that has to be fixed first was fixed, as far as it can be known.
  const onNewer = newer !== undefined && (chosen === undefined ? options.version.recommended : chosen === "newer");
  return (
    <section class="card" aria-label="Ways back">
      <header>
        <h2>Ways back</h2>
        {options.resumable && options.last_successful_checkpoint && (
          <span class="muted small">
            last completed: <Text value={options.last_successful_checkpoint.node_id} max={60} />
          </span>
        )}
      </header>
      <div class="body ways">
        {!options.resumable && <p>{options.reason ? <Text value={options.reason} /> : "This run cannot be retried."}</p>}
        {options.version.recommended && (
          <div class="note-box">
            <strong>{newer === undefined ? "Fix the document first." : `Go on with version ${newer}, if it fixes this:`}</strong> {options.version.why && <Text value={options.version.why} />}
            {options.version.how && newer === undefined && (
              <div class="small">
                <Text value={options.version.how} />
              </div>
            )}
          </div>
        )}
        {options.resumable && newer !== undefined && may("operate") && (
          <label class="row">
            On version
            <select class="input" value={onNewer ? "newer" : "own"} onChange={(event) => setChosen(event.currentTarget.value as "own" | "newer")}>
              <option value="own">{options.version.current}, that of the run</option>
              <option value="newer">{newer}, the newest</option>
            </select>
          </label>
        )}
        {options.options
          .filter(({ open }) => open)
          .map(({ mode, what }) => {
            const isRecommended = mode === options.recommended;
            return (
              <div key={mode} class={`way ${isRecommended ? "recommended" : ""}`}>
                <div class="grow">
                  <strong>{TITLES[mode] ?? words(mode)}</strong> {isRecommended && <span class="muted small">recommended</span>}
                  <div class="small">
                    <Text value={what} />
                    {isRecommended && options.why && (
                      <div class="muted">
                        Why: <Text value={options.why} />
                      </div>
                    )}
                  </div>
                </div>
                {may("operate") && (
                  <button type="button" class={`button ${isRecommended ? "primary" : ""}`} onClick={() => retry(mode, onNewer ? newer : undefined)}>
                    {TITLES[mode] ?? words(mode)}
                  </button>
                )}
              </div>
            );
          })}
      </div>
    </section>
  );
}
