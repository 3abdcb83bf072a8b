// The ways back of a run that failed or timed out, with the recommended one and the button that takes it.
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
  retry: (mode: Mode) => Promise<void>;
}

/** Undefined for any other run, and until they are known. */
export function useWaysBack(store: RunStore): Ways | undefined {
  const run = store.run.value!;
  const hasEnded = run.status === "failed" || run.status === "timed_out";
  const { data } = usePolled(`resume-${run.id}-${run.attempt}-${hasEnded && run.ended_at}`, 0, async (client, signal) => (hasEnded ? client.resumeOptions(run.id, { signal }) : undefined));
  const options = data.value;
  if (!hasEnded || !options) return undefined;
  return {
    options,
    async retry(mode) {
      const next = await attempt(() => client.value.retry(run.id, { mode }), "The run goes on.");
      if (next) store.changed(next);
    },
  };
}

/** What the button beside the budget of the run does: the recommended way, if this caller may take it. */
export function recommendedWay(ways: Ways | undefined): { title: string; take: () => void } | undefined {
  const mode = ways?.options.resumable ? ways.options.recommended : null;
  if (!ways || !mode || !may("operate")) return undefined;
  return { title: TITLES[mode] ?? words(mode), take: () => void ways.retry(mode) };
}

export function WaysBack({ ways: { options, retry } }: { ways: Ways }) {
  return (
    <section class="card" aria-label="Ways back">
      <header>
        <h2>Ways back</h2>
        {options.last_successful_checkpoint && (
          <span class="muted small">
            last completed: <Text value={options.last_successful_checkpoint.node_id} max={60} />
          </span>
        )}
      </header>
      <div class="body ways">
        {!options.resumable && <p>{options.reason ? <Text value={options.reason} /> : "This run cannot be retried."}</p>}
        {options.version.recommended && (
          <div class="note-box">
            <strong>Fix the document first.</strong> {options.version.why && <Text value={options.version.why} />}
            {options.version.how && (
              <div class="small">
                <Text value={options.version.how} />
              </div>
            )}
          </div>
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
                  <button type="button" class={`button ${isRecommended ? "primary" : ""}`} onClick={() => retry(mode)}>
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
