// Why a deadline passed: which limit it was, what used the time, what is usual, and which limit would have held.
import { runPath, tokenPath } from "../logic/routes.ts";
import { count, duration, moment, words } from "../logic/words.ts";
import { lengthToTry, limitSentence, list, outerSentence, progressSentence, smallestSentence, usedParts, usualSentence, whyOf, type TimeoutWhy, type UsedPart } from "../logic/why.ts";
import { usePolled } from "../state/poll.ts";
import { canReplay } from "../state/replay.ts";
import { Json, Problem, Status, Text } from "./text.tsx";

export function Why({ run, record }: { run: string; record: number }) {
  const { data, error } = usePolled(`why-${run}-${record}`, 0, (client, signal) => client.timeout(run, record, { signal }));
  if (error.value) return <Problem message={error.value} />;
  if (!data.value) return <p class="muted">Loading …</p>;
  const why = whyOf(data.value);
  return why ? <Explanation run={run} why={why} /> : <p class="muted">This server does not say why.</p>;
}

function Explanation({ run, why }: { run: string; why: TimeoutWhy }) {
  const { limit, used, change } = why;
  const tried = lengthToTry(why);
  const sentences = [limit?.reason ?? "", outerSentence(why), progressSentence(why), usualSentence(why)].filter((sentence) => sentence !== "");
  return (
    <div class="why stack">
      <p>
        <strong>
          <Text value={limitSentence(why)} />
        </strong>{" "}
        {limit?.document?.id && (
          <span class="muted">
            In the {limit.document.kind === "tasks" ? "task" : "action"} <Text value={limit.document.id} max={80} />{" "}
          </span>
        )}
        {limit?.pointer && <span class="mono muted">{limit.pointer}</span>}
      </p>
      <Used parts={usedParts(why)} />
      {sentences.length > 0 && (
        <ul class="cuts">
          {sentences.map((sentence) => (
            <li key={sentence}>
              <Text value={sentence} max={600} />
            </li>
          ))}
        </ul>
      )}
      <Attempts run={run} attempts={list(used?.attempts)} leftOut={used?.attempts_left_out ?? 0} />
      <Calls calls={list(used?.calls)} />
      <Missing run={run} used={used} />
      {smallestSentence(why) && (
        <p class="note-box">
          <Text value={smallestSentence(why)} max={600} />
        </p>
      )}
      {change && change.length > 0 && (
        <details>
          <summary class="small">The change of the document</summary>
          <Json value={change} label="The change of the document" />
        </details>
      )}
      {canReplay.value && tried !== undefined && (
        <a class="small" href={`${runPath(run)}?view=what_if&limits=${encodeURIComponent(tried)}`}>
          Replay the run with this limit
        </a>
      )}
    </div>
  );
}

/** One bar, in the colours of the timeline. */
function Used({ parts }: { parts: UsedPart[] }) {
  const total = parts.reduce((sum, { ms }) => sum + ms, 0);
  if (total === 0) return null;
  return (
    <div class="bars" aria-label="What used the time" role="group">
      {parts.slice(0, 20).map(({ name, ms, className }) => (
        <>
          <span class="small">
            <Text value={name} max={60} />
          </span>
          <svg aria-hidden="true">
            <rect class={className} x="0.5" y="1" height="10" rx="2" width={`${Math.max((ms / total) * 99, 0.5)}%`} />
          </svg>
          <span class="number small">{duration(ms)}</span>
        </>
      ))}
    </div>
  );
}

function Attempts({ run, attempts, leftOut }: { run: string; attempts: NonNullable<NonNullable<TimeoutWhy["used"]>["attempts"]>; leftOut: number }) {
  if (attempts.length === 0) return null;
  return (
    <div class="table-scroll">
      <table>
        <thead>
          <tr>
            <th class="right">Attempt</th>
            <th class="right">Queued</th>
            <th class="right">Took</th>
            <th>Ended</th>
          </tr>
        </thead>
        <tbody>
          {attempts.map(({ epoch, queued_ms, duration_ms, ended, child_run_id }, index) => (
            <tr key={index}>
              <td class="right number">{epoch ?? ""}</td>
              <td class="right number nowrap">{typeof queued_ms === "number" ? duration(queued_ms) : ""}</td>
              <td class="right number nowrap">{typeof duration_ms === "number" ? duration(duration_ms) : "unknown"}</td>
              <td>
                {ended && <Status status={ended} />} {child_run_id && child_run_id !== run && <a href={`/runs/${encodeURIComponent(child_run_id)}`}>its sub-workflow</a>}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {leftOut > 0 && <p class="muted small">{leftOut} earlier attempts are not shown.</p>}
    </div>
  );
}

function Calls({ calls }: { calls: NonNullable<NonNullable<TimeoutWhy["used"]>["calls"]> }) {
  if (calls.length === 0) return null;
  return (
    <ul class="cuts" aria-label="Calls of the last attempt">
      {calls.map(({ step_ref, status, calls, duration_ms, backoff_ms }, index) => (
        <li key={index}>
          step <Text value={step_ref ?? ""} max={60} /> {status && <Status status={status} />} {calls !== undefined && count(calls, "call")} {duration_ms !== undefined && duration(duration_ms)}
          {backoff_ms !== undefined && backoff_ms > 0 && <span class="muted">, {duration(backoff_ms)} of it between calls</span>}
        </li>
      ))}
    </ul>
  );
}

function Missing({ run, used }: { run: string; used: TimeoutWhy["used"] }) {
  const missing = list(used?.missing);
  if (missing.length === 0) return null;
  return (
    <ul class="cuts" aria-label="Branches that were missing">
      {missing.slice(0, 20).map(({ index, token_id, node_id, came_at }) => (
        <li key={index}>
          branch #{index}
          {node_id && (
            <>
              {" at "}
              <Text value={node_id} max={60} />
            </>
          )}{" "}
          {token_id && (
            <a class="mono" href={tokenPath(run, token_id)}>
              {token_id}
            </a>
          )}{" "}
          <span class="muted">{typeof came_at === "number" ? `${words("came_at")} ${moment(came_at)}` : "never came"}</span>
        </li>
      ))}
      {missing.length + (used?.missing_left_out ?? 0) > 20 && <li>and {missing.length - 20 + (used?.missing_left_out ?? 0)} more</li>}
    </ul>
  );
}
