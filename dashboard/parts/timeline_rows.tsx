// The lanes of the timeline as SVG.
import type { Run, Token } from "../../client/index.ts";
import { groupName, type GroupRow, type Row } from "../logic/lanes.ts";
import { tokenPath } from "../logic/routes.ts";
import { visible, cut } from "../logic/safe_text.ts";
import { isEnded, lookOf } from "../logic/statuses.ts";
import { endOf, lateSince, type Domain, type Lane, type Span, type Stop } from "../logic/timeline.ts";
import { count, duration, words } from "../logic/words.ts";
import { Icon } from "./icon.tsx";
import type { TipState } from "./timeline_tip.tsx";

export interface Scale {
  x: (at: number) => number;
  at: (x: number) => number;
  width: number;
  domain: Domain;
  /** The start of the run. */
  start: number;
}

/** The pattern of stopped time. */
export const Hatch = () => (
  <defs>
    <pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
      <line class="hatch-line" x1="0" y1="0" x2="0" y2="6" />
    </pattern>
  </defs>
);

/** A rectangle between two moments, cut to what is seen. Nothing if it lies outside. */
export function Bar({ scale, from, to, y, height, className, least = 1.5 }: { scale: Scale; from: number; to: number; y: number; height: number; className: string; least?: number }) {
  const left = Math.max(scale.x(from), -4);
  const right = Math.min(scale.x(to), scale.width + 4);
  if (right < -3 || left > scale.width + 3) return null;
  return <rect class={className} x={left} y={y} width={Math.max(right - left, least)} height={height} rx={2} />;
}

export const Stops = ({ stops, scale, now, height }: { stops: Stop[]; scale: Scale; now: number; height: number }) => (
  <g class="hatch" fill="url(#hatch)">
    {stops.map(({ from, to }) => (
      <Bar key={from} scale={scale} from={from} to={to ?? now} y={0} height={height} className="" />
    ))}
  </g>
);

export const Grid = ({ ticks, scale }: { ticks: number[]; scale: Scale }) => (
  <>
    {ticks.map((at) => (
      <line key={at} class="grid" x1={scale.x(at)} x2={scale.x(at)} y1={0} y2={40} />
    ))}
  </>
);

interface RowProps {
  row: Row;
  run: Run;
  lane: (id: string) => Lane;
  scale: Scale;
  now: number;
  stops: Stop[];
  ticks: number[];
  isChosen: boolean;
  /** Tokens have pages. */
  isLinked: boolean;
  onToggle: (instance: number) => void;
  onTip: (tip: TipState | undefined) => void;
}

export function RowLane({ row, run, lane, scale, now, stops, ticks, isChosen, isLinked, onToggle, onTip }: RowProps) {
  const show = (event: { currentTarget: Element }, x?: number, y?: number): void => {
    const box = event.currentTarget.getBoundingClientRect();
    onTip({ row, x: x ?? box.left + 120, y: y ?? box.bottom });
  };
  return (
    <div
      class={`lane ${isChosen ? "chosen" : ""}`}
      onMouseMove={(event) => show(event, event.clientX, event.clientY)}
      onFocusCapture={(event) => (event.target as Element).matches(":focus-visible") && show(event)}
      onBlurCapture={() => onTip(undefined)}
    >
      <div class="name" style={{ paddingLeft: `${12 + Math.min(row.depth, 6) * 12}px` }}>
        {row.kind === "group" ? <GroupName row={row} onToggle={onToggle} /> : <TokenName run={run.id} token={row.token} isLinked={isLinked} />}
      </div>
      <div class="plot">
        <svg role="img" aria-label={row.kind === "group" ? groupWords(row) : tokenWords(row.token, lane(row.token.id), now)}>
          <Grid ticks={ticks} scale={scale} />
          {row.kind === "group" ? <GroupBars row={row} scale={scale} now={now} /> : <TokenBars token={row.token} lane={lane(row.token.id)} scale={scale} now={now} stops={stops} />}
          <Stops stops={stops} scale={scale} now={now} height={40} />
        </svg>
      </div>
    </div>
  );
}

function TokenName({ run, token, isLinked }: { run: string; token: Token; isLinked: boolean }) {
  const { tone, shape } = lookOf(token.status);
  const place = token.branch && token.branch.total > 1 ? `#${token.branch.index}` : token.epoch > 1 ? `×${token.epoch}` : "";
  const name = (
    <>
      {visible(cut(token.node_id || "(no node)", 80).shown)}
      <span class="for-readers">
        {" "}
        {token.id} {words(token.status)}
      </span>
    </>
  );
  return (
    <>
      <span class={`glyph tone-${tone}`}>
        <Icon name={shape} />
      </span>
      {isLinked ? (
        <a href={tokenPath(run, token.id) + location.search} title={token.node_id}>
          {name}
        </a>
      ) : (
        <span class="unlinked" tabIndex={0} title={token.node_id}>
          {name}
        </span>
      )}
      <span class="tag">{[place, token.compensation ? "undo" : ""].filter((part) => part !== "").join(" ")}</span>
      <span class="tag id">{token.id}</span>
    </>
  );
}

function GroupName({ row, onToggle }: { row: GroupRow; onToggle: (instance: number) => void }) {
  const name = groupName(row);
  return (
    <>
      <button type="button" class="fold" aria-expanded={row.isOpen} onClick={() => onToggle(row.instance)}>
        <Icon name="chevron" size={11} />
        <span class="data line">{visible(cut(name, 80).shown)}</span>
      </button>
      <span class="tag">×{row.branches.toLocaleString("en")}</span>
    </>
  );
}

const groupWords = (row: GroupRow): string => `${count(row.branches, "branch", "branches")}: ${row.counts.map(([status, count]) => `${count} ${words(status)}`).join(", ")}`;
const tokenWords = (token: Token, lane: Lane, now: number): string => `${words(token.status)}, ${duration((lane.end ?? now) - token.created_at)}`;

/** All branches in one bar, by the share of each status. */
function GroupBars({ row, scale, now }: { row: GroupRow; scale: Scale; now: number }) {
  const left = Math.max(scale.x(row.from), 0);
  const right = Math.max(Math.min(scale.x(row.to ?? now), scale.width), left + 3);
  const height = 14;
  let y = 6;
  return (
    <>
      {row.counts.map(([status, count]) => {
        const part = Math.max((count / row.tokens.length) * height, 1);
        const bar = <rect key={status} class={`group-bar tone-${lookOf(status).tone}`} x={left} y={y} width={right - left} height={part} />;
        y += part;
        return bar;
      })}
    </>
  );
}

const TOP = 7;
const HEIGHT = 12;

function TokenBars({ token, lane, scale, now, stops }: { token: Token; lane: Lane; scale: Scale; now: number; stops: Stop[] }) {
  const { tone } = lookOf(token.status);
  const look = isEnded(token.status) ? (tone === "good" ? "good" : tone === "bad" ? "bad" : tone === "late" ? "bad" : "neutral") : "";
  return (
    <>
      {lane.limits.map((limit) => (
        <g key={`l${limit.epoch}-${limit.from}`}>
          <Bar scale={scale} from={limit.from} to={limit.to} y={TOP - 3} height={HEIGHT + 6} className="limit-box" />
          {scale.x(limit.to) < scale.width && <line class="limit-end" x1={scale.x(limit.to)} x2={scale.x(limit.to)} y1={TOP - 4} y2={TOP + HEIGHT + 4} />}
        </g>
      ))}
      {lane.spans.map((span) => (
        <SpanBar key={`${span.kind}${span.from}`} span={span} isLast={span.epoch === endOf(lane.spans)?.epoch} look={look} late={lateSince(token.timeout_at, stops, now)} scale={scale} now={now} />
      ))}
    </>
  );
}

function SpanBar({ span, isLast, look, late, scale, now }: { span: Span; isLast: boolean; look: string; late: number | undefined; scale: Scale; now: number }) {
  const end = span.to ?? Math.max(now, span.from);
  if (span.kind === "queued") return <Bar scale={scale} from={span.from} to={end} y={TOP + 4} height={4} className="span-queued" least={0.5} />;
  if (span.kind === "backoff") return <Bar scale={scale} from={span.from} to={end} y={TOP + 3} height={6} className="span-backoff" />;
  // A failure belongs to the last attempt, which is in parts where its calls were repeated; those before it were given up.
  const className = span.kind === "attempt" ? `span-attempt ${isLast ? look : "neutral"}` : `span-${span.kind}`;
  const lateFrom = span.to === undefined && late !== undefined && late > span.from ? late : undefined;
  return (
    <>
      <Bar scale={scale} from={span.from} to={lateFrom ?? end} y={TOP} height={HEIGHT} className={className} />
      {lateFrom !== undefined && <Bar scale={scale} from={lateFrom} to={end} y={TOP} height={HEIGHT} className="span-late" />}
    </>
  );
}

const LEGEND: [title: string, className: string][] = [
  ["queued", "span-queued"],
  ["attempt", "span-attempt"],
  ["backoff", "span-backoff"],
  ["waiting", "span-waiting"],
  ["late", "span-late"],
  ["its deadline", "limit-box"],
];

export const Legend = () => (
  <div class="legend" aria-hidden="true">
    {LEGEND.map(([title, className]) => (
      <span key={title}>
        <svg>
          <rect class={className} x={1} y={className === "span-queued" ? 3 : 1} width={20} height={className === "span-queued" ? 4 : 8} rx={2} />
        </svg>
        {title}
      </span>
    ))}
    <span>
      <svg>
        <rect class="hatch" fill="url(#hatch)" x={0} y={0} width={22} height={10} />
      </svg>
      clocks stopped
    </span>
  </div>
);
