// One token: its times, its limit and where that comes from, its attempts, steps, progress and result.
import { sourceOfLimit } from "../logic/limits.ts";
import { runPath, tokenPath } from "../logic/routes.ts";
import { duration, moment, timeLeft, words } from "../logic/words.ts";
import { now } from "../state/clock.ts";
import type { RunStore } from "../state/run_store.ts";
import { Icon } from "./icon.tsx";
import { Json, Status, Text } from "./text.tsx";

export function TokenPanel({ store, id }: { store: RunStore; id: string }) {
  const run = store.run.value!;
  const token = store.tokens.value.find((token) => token.id === id);
  const close = (
    <a class="button quiet small" href={runPath(run.id) + location.search} aria-label="Close the token">
      <Icon name="close" />
    </a>
  );
  if (!token) {
    return (
      <aside class="card token-panel" aria-label="Token">
        <header>
          <h2 class="grow">{id}</h2>
          {close}
        </header>
        <div class="empty">{store.isLoaded.value ? "This run has no such token." : "Loading …"}</div>
      </aside>
    );
  }
  const progress = store.progress.value.get(id) ?? token.progress;
  const child = store.events.value.find((event) => event.kind === "subworkflow_started" && event.token_id === id)?.child_run_id;
  const times: [string, number | null][] = [["created", token.created_at], ["dispatched", token.dispatched_at], ["started", token.started_at], ["ended", token.ended_at]];
  return (
    <aside class="card token-panel" aria-label={`Token ${id}`}>
      <header>
        <h2 class="grow">
          <Text value={token.node_id} max={80} /> <span class="muted mono">{token.id}</span>
        </h2>
        <Status status={token.status} />
        {close}
      </header>
      <div class="body stack">
        <dl class="facts number">
          {times.map(([name, at]) => at !== null && <Fact key={name} name={name} value={`${moment(at)}${at === token.created_at ? "" : ` (+${duration(at - token.created_at)})`}`} />)}
          {token.timeout_at !== null && <Fact name="deadline" value={`${moment(token.timeout_at)}${token.ended_at === null ? ` (${timeLeft(token.timeout_at, now.value)})` : ""}`} />}
          <Fact name="attempt" value={`${token.epoch}${token.retry_count > 0 ? `, ${token.retry_count} after a timeout` : ""}`} />
          {token.lane && <Fact name="lane" value={token.lane} />}
          {token.branch && <Fact name="branch" value={`#${token.branch.index} of ${token.branch.total} (${token.branch.group})`} />}
          {token.reason && <Fact name="reason" value={token.reason} />}
        </dl>
        <p class="small">{sourceOfLimit(token, run, store.document.value)}</p>
        <div class="row small">
          {token.parent_token_id && (
            <a href={tokenPath(run.id, token.parent_token_id) + location.search}>follows {token.parent_token_id}</a>
          )}
          {token.compensates && <a href={tokenPath(run.id, token.compensates) + location.search}>undoes {token.compensates}</a>}
          {child && <a href={runPath(child)}>its sub-workflow</a>}
        </div>
        {token.error && (
          <div class="problem-box">
            <strong>
              <Text value={token.error.code} /> <span class="muted small">{token.error.class}</span>
            </strong>
            <div>
              <Text value={token.error.message} />
            </div>
          </div>
        )}
        {progress && token.ended_at === null && (
          <div class="note-box">
            <strong>
              Step {progress.step_index + 1} of {progress.steps_total}: <Text value={progress.step_ref} max={80} />
            </strong>
            {progress.attempt > 1 && <span class="muted"> call {progress.attempt}</span>}
            {progress.partial.map((part) => (
              <div key={part.name} class="small">
                <Text value={part.text} max={400} />
              </div>
            ))}
          </div>
        )}
        {token.steps.length > 0 && (
          <div class="table-scroll">
            <table>
              <thead>
                <tr>
                  <th>Step</th>
                  <th>Status</th>
                  <th class="right">Calls</th>
                  <th class="right">Time</th>
                </tr>
              </thead>
              <tbody>
                {token.steps.map((step) => (
                  <tr key={step.ref}>
                    <td>
                      <Text value={step.ref} max={80} />
                      {step.retries?.map((retry, index) => (
                        <div key={index} class="muted small">
                          {words(retry.class)} {retry.code}, then {duration(retry.delay_ms)} of backoff
                        </div>
                      ))}
                    </td>
                    <td>
                      <Status status={step.status} />
                    </td>
                    <td class="right number">{step.attempts}</td>
                    <td class="right number nowrap">{duration(step.duration_ms)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
        {token.branch && token.branch.item !== null && (
          <>
            <h3>Item</h3>
            <Json value={token.branch.item} label="Item" />
          </>
        )}
        <h3>Output</h3>
        <Json value={token.output} label="Output" />
      </div>
    </aside>
  );
}

const Fact = ({ name, value }: { name: string; value: string }) => (
  <>
    <dt>{name}</dt>
    <dd>
      <Text value={value} max={300} />
    </dd>
  </>
);
