// The first lane: the budget of the run, what is used of it, and the handle at its end that extends it.
import { useRef, useState } from "preact/hooks";
import { budgetEnd } from "../logic/limits.ts";
import { isEnded } from "../logic/statuses.ts";
import type { Stop } from "../logic/timeline.ts";
import { duration } from "../logic/words.ts";
import type { TimelineSource } from "./timeline.tsx";
import { Icon } from "./icon.tsx";
import { Bar, Grid, Stops, type Scale } from "./timeline_rows.tsx";
import type { TipState } from "./timeline_tip.tsx";

interface BudgetLaneProps {
  store: TimelineSource;
  scale: Scale;
  stops: Stop[];
  now: number;
  ticks: number[];
  onExtend: ((byMs: number) => void) | undefined;
  retry: { title: string; take: () => void } | undefined;
  onTip: (tip: TipState | undefined) => void;
}

/** What an arrow key adds, by the length of what is shown. */
const stepOf = (scale: Scale): number => Math.max((scale.domain.to - scale.domain.from) / 20, 1_000);

export function BudgetLane({ store, scale, stops, now, ticks, onExtend, retry, onTip }: BudgetLaneProps) {
  const run = store.run.value!;
  const end = budgetEnd(run, stops, now);
  const isLive = !isEnded(run.status);
  const isStopped = stops.some(({ to }) => to === undefined);
  const used = run.ended_at ?? now;
  const [extra, setExtra] = useState(0);
  const drag = useRef<{ x: number; scale: Scale } | undefined>(undefined);
  const canExtend = isLive && onExtend !== undefined && end !== undefined;
  const finish = (ms: number) => {
    setExtra(0);
    drag.current = undefined;
    if (ms >= 1) onExtend?.(Math.round(ms));
  };
  const shownEnd = end === undefined ? undefined : end + extra;

  return (
    <div class="lane budget" onMouseMove={(event) => onTip({ row: undefined, x: event.clientX, y: event.clientY })}>
      <div class="name">
        <strong>Run</strong>
        <span class="grow" />
        {extra > 0 && <span class="tag">+{duration(extra)}</span>}
        {retry && (
          <button type="button" class="button small" title={retry.title} onClick={retry.take}>
            <Icon name="undo" size={11} /> Retry
          </button>
        )}
      </div>
      <div class="plot">
        <svg role="group" aria-label="The budget of the run">
          <Grid ticks={ticks} scale={scale} />
          {end !== undefined && <Bar scale={scale} from={run.started_at} to={end} y={7} height={20} className="budget-box" />}
          <Bar scale={scale} from={run.started_at} to={used} y={8} height={18} className="budget-used" />
          {end !== undefined && used > end && !isStopped && <Bar scale={scale} from={end} to={used} y={8} height={18} className="span-late" />}
          <Stops stops={stops} scale={scale} now={now} height={34} />
          {end !== undefined && scale.x(end) > scale.width && (
            <text class="tick-text" x={scale.width - (canExtend ? 16 : 4)} y={21} text-anchor="end">
              limit at {duration(end - run.started_at)} →
            </text>
          )}
          {canExtend && shownEnd !== undefined && (
            <g
              class="handle"
              role="slider"
              tabindex={0}
              aria-label="The end of the run's budget. Arrow keys extend it, Enter confirms."
              aria-valuemin={0}
              aria-valuemax={2_592_000}
              aria-valuenow={Math.round(extra / 1_000)}
              aria-valuetext={extra > 0 ? `${duration(extra)} more` : "not extended"}
              onPointerDown={(event) => {
                event.preventDefault();
                event.currentTarget.setPointerCapture(event.pointerId);
                drag.current = { x: event.clientX, scale };
              }}
              onPointerMove={(event) => {
                if (!drag.current) return;
                const { x, scale } = drag.current;
                setExtra(Math.max(scale.at(event.clientX - x) - scale.at(0), 0));
              }}
              onPointerUp={() => drag.current && finish(extra)}
              onPointerCancel={() => finish(0)}
              onKeyDown={(event) => {
                if (event.key === "ArrowRight" || event.key === "ArrowUp") setExtra(extra + stepOf(scale));
                else if (event.key === "ArrowLeft" || event.key === "ArrowDown") setExtra(Math.max(extra - stepOf(scale), 0));
                else if (event.key === "Enter" || event.key === " ") finish(extra || stepOf(scale));
                else if (event.key === "Escape") setExtra(0);
                else return;
                event.preventDefault();
                event.stopPropagation();
              }}
            >
              {extra > 0 && <rect class="ghost" x={scale.x(end!)} y={7} width={Math.max(scale.x(shownEnd) - scale.x(end!), 0)} height={20} />}
              <rect x={handleX(scale, shownEnd) - 9} y={0} width={18} height={34} fill="transparent" />
              <rect class="grip" x={handleX(scale, shownEnd) - 3} y={4} width={6} height={26} rx={3} />
            </g>
          )}
        </svg>
      </div>
    </div>
  );
}

/** An end that is not seen has its handle at the border. */
const handleX = (scale: Scale, end: number): number => Math.min(Math.max(scale.x(end), 6), scale.width - 6);
