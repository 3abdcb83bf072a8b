// The timeline of a run: time to the right, one lane for each token, the attempt inside its deadline inside the budget of the run.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { instancesAround, rowsOf, visibleRows } from "../logic/lanes.ts";
import { budgetEnd } from "../logic/limits.ts";
import { isEnded } from "../logic/statuses.ts";
import { domainOf, eventsByToken, gateStopsOf, laneOf, pausesOf, shifted, ticksOf, withBackoffs, zoomed, type Domain, type Lane, type Stop } from "../logic/timeline.ts";
import { duration } from "../logic/words.ts";
import { currentTime, prefersLessMotion } from "../state/clock.ts";
import type { RunStore } from "../state/run_store.ts";
import { BudgetLane } from "./budget_lane.tsx";
import { Icon } from "./icon.tsx";
import { Hatch, Legend, RowLane, type Scale } from "./timeline_rows.tsx";
import { LaneTip, type TipState } from "./timeline_tip.tsx";

/** From one label of the scale to the next. The last one stands before its line, so that there have to be two beside each other. */
const LABEL_PX = 110;
const MOST_FRAMES_MS = 50;

/** What is drawn: a run that is followed, or one that was simulated. */
export interface TimelineSource extends Pick<RunStore, "run" | "tokens" | "events" | "document"> {
  /** A run that was simulated stands still at this moment, and its tokens have no pages. */
  stillAt?: number;
}

interface TimelineProps {
  store: TimelineSource;
  title?: string;
  /** The token of the address. */
  chosen: string | undefined;
  /** The end of the run's budget was dragged by so much. */
  onExtend: ((byMs: number) => void) | undefined;
  /** The way back that is offered beside the budget. */
  retry?: { title: string; take: () => void } | undefined;
}

export function Timeline({ store, title = "Timeline", chosen, onExtend, retry }: TimelineProps) {
  const run = store.run.value!;
  const tokens = store.tokens.value;
  const events = store.events.value;
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set());
  const [wanted, setWanted] = useState<"auto" | "limit" | "work">("auto");
  const [zoom, setZoom] = useState<Domain | undefined>(undefined);
  const [tip, setTip] = useState<TipState | undefined>(undefined);
  const [width, setWidth] = useState(600);
  const [scroll, setScroll] = useState({ top: 0, height: 500 });
  const plot = useRef<HTMLDivElement>(null);
  const rowsElement = useRef<HTMLDivElement>(null);
  const nowLine = useRef<HTMLDivElement>(null);
  const shown = useRef<Domain | undefined>(undefined);
  const frame = useSignal(currentTime());

  const isLive = store.stillAt === undefined && !isEnded(run.status);
  const now = store.stillAt ?? (isLive ? Math.max(frame.value, run.started_at) : (run.ended_at ?? run.started_at + run.duration_ms));
  const ofToken = useMemo(() => eventsByToken(events), [events]);
  const lanes = useMemo(() => {
    const cache = new Map<string, Lane>();
    const byId = new Map(tokens.map((token) => [token.id, token]));
    return (id: string): Lane => {
      const found = cache.get(id);
      if (found) return found;
      const token = byId.get(id)!;
      const lane = withBackoffs(laneOf(token, ofToken.get(id)), token);
      cache.set(id, lane);
      return lane;
    };
  }, [tokens, ofToken]);
  const stops = useMemo<Stop[]>(() => {
    const runsOn = (store.document.value as { clock?: unknown } | undefined)?.clock === "runs";
    return [...pausesOf(events), ...(runsOn ? [] : gateStopsOf(tokens, events))];
  }, [tokens, events, store.document.value]);
  const rows = useMemo(() => rowsOf(tokens, open), [tokens, open]);

  const domain = zoom ?? followed(shown, domainOf({ ...run, timeout_at: budgetEnd(run, stops, now) ?? run.timeout_at }, [], now, wanted), now, isLive);
  shown.current = domain;
  const scale: Scale = { x: (at) => ((at - domain.from) / (domain.to - domain.from)) * width, at: (x) => domain.from + (x / width) * (domain.to - domain.from), width, domain, start: run.started_at };
  const rowHeight = rowHeightOf(plot.current);

  useLayoutEffect(() => {
    const element = plot.current;
    if (!element) return;
    const measure = (): void => {
      setWidth(Math.max(element.clientWidth, 50));
      setScroll((before) => ({ ...before, height: rowsElement.current?.clientHeight ?? before.height }));
    };
    // Also before the observer reports: the first frame would be drawn for another width.
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    if (rowsElement.current) observer.observe(rowsElement.current);
    return () => observer.disconnect();
  }, []);

  // The line moves with each frame by itself; the lanes are drawn again only when a bar has grown by a pixel.
  const line = useRef(scale);
  line.current = scale;
  useEffect(() => {
    if (!isLive) return;
    let request = 0;
    const step = (): void => {
      const at = currentTime();
      const { x, width, domain } = line.current;
      if (nowLine.current) nowLine.current.style.transform = `translateX(${Math.min(Math.max(x(at), -2), width + 2)}px)`;
      const pixel = (domain.to - domain.from) / width;
      const every = prefersLessMotion() ? 1_000 : Math.min(Math.max(pixel, MOST_FRAMES_MS), 1_000);
      if (at - frame.peek() >= every) frame.value = at;
      request = requestAnimationFrame(step);
    };
    request = requestAnimationFrame(step);
    return () => cancelAnimationFrame(request);
  }, [isLive]);

  // The token of the address gets a row and is scrolled to.
  const isKnown = chosen !== undefined && tokens.some(({ id }) => id === chosen);
  useEffect(() => {
    if (isKnown) setOpen((before) => new Set([...before, ...instancesAround(tokens, chosen)]));
  }, [chosen, isKnown]);
  useEffect(() => {
    const index = rows.findIndex(({ key }) => key === chosen);
    const element = rowsElement.current;
    if (index < 0 || !element) return;
    const top = index * rowHeight;
    if (top < element.scrollTop || top > element.scrollTop + element.clientHeight - rowHeight) element.scrollTop = Math.max(top - element.clientHeight / 2, 0);
  }, [chosen, isKnown, open]);

  const zoomBy = (factor: number, around = (domain.from + domain.to) / 2) => setZoom(zoomed(domain, factor, around));
  const onWheel = (event: WheelEvent): void => {
    if (!event.ctrlKey && !event.metaKey && !event.shiftKey) return;
    event.preventDefault();
    const box = plot.current!.getBoundingClientRect();
    if (event.shiftKey) setZoom(shifted(domain, (event.deltaY || event.deltaX) / 1_000));
    else zoomBy(event.deltaY > 0 ? 1.2 : 1 / 1.2, scale.at(event.clientX - box.left));
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if ((event.target as Element).closest("input, [role=slider]")) return;
    const action = { "+": () => zoomBy(0.7), "=": () => zoomBy(0.7), "-": () => zoomBy(1.4), ArrowLeft: () => setZoom(shifted(domain, -0.15)), ArrowRight: () => setZoom(shifted(domain, 0.15)), "0": () => (setZoom(undefined), setWanted("auto")) }[event.key];
    if (action) action();
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") moveFocus(event.currentTarget as HTMLElement, event.key === "ArrowDown" ? 1 : -1);
    else return;
    event.preventDefault();
  };
  const toggle = (instance: number) => {
    const next = new Set(open);
    if (!next.delete(instance)) next.add(instance);
    setOpen(next);
  };
  const { first, last } = visibleRows(scroll.top, scroll.height, rowHeight, rows.length);
  const ticks = ticksOf(domain, run.started_at, Math.max(Math.floor(width / LABEL_PX), 2));

  return (
    <section class="card" aria-label={title}>
      <header>
        <h2 class="grow">{title}</h2>
        <Legend />
        <div class="row tight" role="group" aria-label="Zoom">
          <button type="button" class="button small" aria-pressed={zoom === undefined && wanted === "work"} onClick={() => (setZoom(undefined), setWanted("work"))}>
            Fit the work
          </button>
          <button type="button" class="button small" aria-pressed={zoom === undefined && wanted === "limit"} onClick={() => (setZoom(undefined), setWanted("limit"))}>
            Fit the limit
          </button>
          <button type="button" class="button small" aria-label="Zoom out" onClick={() => zoomBy(1.5)}>
            <Icon name="minus" size={12} />
          </button>
          <button type="button" class="button small" aria-label="Zoom in" onClick={() => zoomBy(1 / 1.5)}>
            <Icon name="plus" size={12} />
          </button>
        </div>
      </header>
      <div class="timeline" onKeyDown={onKeyDown} onWheel={onWheel} onMouseLeave={() => setTip(undefined)}>
        {isLive && <div class="now" ref={nowLine} />}
        <div class="head">
          <div class="name">since the start</div>
          <div class="plot" ref={plot}>
            <svg aria-hidden="true">
              <Hatch />
              {ticks.map((at) => (
                <g key={at}>
                  <line class="grid" x1={scale.x(at)} x2={scale.x(at)} y1={18} y2={40} />
                  {/* The last one would be cut off. */}
                  <text class="tick-text" x={scale.x(at) + (scale.x(at) > width - 44 ? -3 : 3)} y={17} text-anchor={scale.x(at) > width - 44 ? "end" : "start"}>
                    {at === run.started_at ? "0" : duration(at - run.started_at)}
                  </text>
                </g>
              ))}
            </svg>
          </div>
        </div>
        <BudgetLane store={store} scale={scale} stops={stops} now={now} ticks={ticks} onExtend={onExtend} retry={retry} onTip={setTip} />
        <div class="rows" ref={rowsElement} onScroll={(event) => setScroll({ top: event.currentTarget.scrollTop, height: event.currentTarget.clientHeight })}>
          <Spacer height={rows.length * rowHeight}>
            <Window top={first * rowHeight}>
              {rows.slice(first, last).map((row) => (
                <RowLane key={row.key} row={row} run={run} lane={lanes} scale={scale} now={now} stops={stops} ticks={ticks} isChosen={row.key === chosen} isLinked={store.stillAt === undefined} onToggle={toggle} onTip={setTip} />
              ))}
            </Window>
          </Spacer>
        </div>
      </div>
      {tip && <LaneTip tip={tip} run={run} lane={lanes} document={store.document.value} now={now} />}
    </section>
  );
}

/** The domain stays while time moves inside of it: a scale that moves with each frame cannot be read. */
function followed(shown: { current: Domain | undefined }, fresh: Domain, now: number, isLive: boolean): Domain {
  const before = shown.current;
  if (!isLive || !before) return fresh;
  const length = before.to - before.from;
  const fits = fresh.to <= before.to && now < before.to - length * 0.06 && fresh.to - fresh.from > length * 0.5;
  return fits ? before : { from: fresh.from, to: fresh.to + (fresh.to - fresh.from) * 0.15 };
}

function rowHeightOf(element: HTMLElement | null): number {
  if (!element) return 26;
  return Number.parseFloat(getComputedStyle(element).getPropertyValue("--row")) || 26;
}

/** Positions are set through the style object: the policy refuses style attributes. */
function Spacer({ height, children }: { height: number; children: ComponentChildren }) {
  return <div style={{ height: `${height}px`, position: "relative" }}>{children}</div>;
}
function Window({ top, children }: { top: number; children: ComponentChildren }) {
  return (
    <div class="window" style={{ transform: `translateY(${top}px)` }}>
      {children}
    </div>
  );
}

function moveFocus(timeline: HTMLElement, by: number): void {
  const items = [...timeline.querySelectorAll<HTMLElement>(".name a, .name .fold, .name .unlinked")];
  const index = items.indexOf(document.activeElement as HTMLElement);
  items[Math.min(Math.max(index + by, 0), items.length - 1)]?.focus();
}
