// What a lane says when it is pointed at or focused: its times, its limit, and where the limit comes from.
import { useLayoutEffect, useRef } from "preact/hooks";
import type { Run } from "../../client/index.ts";
import { groupName, type Row } from "../logic/lanes.ts";
import { sourceOfLimit, sourceOfRunLimit } from "../logic/limits.ts";
import type { Lane, SpanKind } from "../logic/timeline.ts";
import { duration, moment, timeLeft, words } from "../logic/words.ts";
import { Status, Text } from "./text.tsx";

export interface TipState {
  /** Without a row it is about the run. */
  row: Row | undefined;
  x: number;
  y: number;
}

interface LaneTipProps {
  tip: TipState;
  run: Run;
  lane: (id: string) => Lane;
  document: unknown;
  now: number;
}

export function LaneTip({ tip, run, lane, document, now }: LaneTipProps) {
  const element = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const { current } = element;
    if (!current) return;
    const box = current.getBoundingClientRect();
    const left = Math.min(tip.x + 14, innerWidth - box.width - 12);
    const below = tip.y + 16;
    current.style.left = `${Math.max(left, 8)}px`;
    current.style.top = `${below + box.height > innerHeight - 8 ? Math.max(tip.y - box.height - 12, 8) : below}px`;
  });
  return (
    <div class="tip" role="tooltip" ref={element}>
      {tip.row === undefined ? <RunTip run={run} document={document} now={now} /> : <RowTip row={tip.row} run={run} lane={lane} document={document} now={now} />}
    </div>
  );
}

function RunTip({ run, document, now }: { run: Run; document: unknown; now: number }) {
  return (
    <>
      <strong>The budget of the run</strong>
      <dl class="facts">
        <dt>started</dt>
        <dd>{moment(run.started_at)}</dd>
        {run.timeout_at !== null && (
          <>
            <dt>limit</dt>
            <dd>
              {moment(run.timeout_at)} ({timeLeft(run.timeout_at, now)})
            </dd>
          </>
        )}
      </dl>
      <p>{sourceOfRunLimit(run, document)}</p>
    </>
  );
}

function RowTip({ row, run, lane, document, now }: { row: Row; run: Run; lane: (id: string) => Lane; document: unknown; now: number }) {
  if (row.kind === "group") {
    return (
      <>
        <strong>
          <Text value={groupName(row)} line /> ×{row.branches.toLocaleString("en")}
        </strong>
        <dl class="facts">
          {row.counts.map(([status, count]) => (
            <>
              <dt>{count.toLocaleString("en")}</dt>
              <dd>
                <Status status={status} />
              </dd>
            </>
          ))}
          <dt>took</dt>
          <dd>{duration((row.to ?? now) - row.from)}</dd>
        </dl>
      </>
    );
  }
  const { token } = row;
  const { spans } = lane(token.id);
  return (
    <>
      <div class="row">
        <strong>
          <Text value={token.node_id} line max={80} />
        </strong>
        <span class="muted">{token.id}</span>
        <Status status={token.status} />
      </div>
      <dl class="facts">
        {[...totals(spans, now)].map(([kind, ms]) => (
          <>
            <dt>{words(kind)}</dt>
            <dd class="number">{duration(ms)}</dd>
          </>
        ))}
        {token.timeout_at !== null && (
          <>
            <dt>deadline</dt>
            <dd class="number">
              {moment(token.timeout_at)}
              {token.ended_at === null && ` (${timeLeft(token.timeout_at, now)})`}
            </dd>
          </>
        )}
        {token.epoch > 1 && (
          <>
            <dt>attempts</dt>
            <dd>{token.epoch}</dd>
          </>
        )}
      </dl>
      <p>{sourceOfLimit(token, run, document)}</p>
      {token.error && <Text value={token.error.message} max={240} />}
    </>
  );
}

function totals(spans: Lane["spans"], now: number): Map<SpanKind, number> {
  const found = new Map<SpanKind, number>();
  for (const { kind, from, to } of spans) found.set(kind, (found.get(kind) ?? 0) + Math.max((to ?? now) - from, 0));
  return found;
}
