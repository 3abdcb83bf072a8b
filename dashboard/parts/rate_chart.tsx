// Runs a second over time, by uPlot.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { moment } from "../logic/words.ts";
import { colours } from "../state/theme.ts";

export interface Point {
  /** Seconds. */
  at: number;
  started: number;
  ended: number;
  timedOut: number;
}

const HEIGHT = 190;
const LEAST_SECONDS = 60;

const latest = (seconds: number | undefined): string => (seconds === undefined ? "" : clock(seconds));
const clock = (seconds: number): string => moment(seconds * 1_000).slice(11, 19);

/** Differences of totals as rates. A total that fell belongs to another deployment. */
function ratesOf(points: Point[]): uPlot.AlignedData {
  const rate = (name: "started" | "ended" | "timedOut") => points.slice(1).map((point, index) => Math.max(point[name] - points[index]![name], 0) / Math.max(point.at - points[index]!.at, 0.001));
  return [points.slice(1).map(({ at }) => at), rate("started"), rate("ended"), rate("timedOut")];
}

/** A minute at least. What uPlot proposes is not taken: of one point alone it makes years. */
function rangeOf(times: ArrayLike<number>): [number, number] {
  const most = times[times.length - 1] ?? Date.now() / 1_000;
  return [Math.min(times[0] ?? most, most - LEAST_SECONDS), most];
}

export function RateChart({ points }: { points: Point[] }) {
  const element = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | undefined>(undefined);
  useEffect(() => {
    const parent = element.current!;
    const style = getComputedStyle(parent);
    // A canvas knows no variables, and `light-dark()` is resolved only as the colour of an element.
    const resolved = (name: string): string => {
      parent.style.color = `var(${name})`;
      const colour = getComputedStyle(parent).color;
      parent.style.color = "";
      return colour;
    };
    const axis = { stroke: resolved("--muted"), grid: { stroke: resolved("--line"), width: 1 }, ticks: { stroke: resolved("--line") }, font: `11px ${style.fontFamily}` };
    // The newest one while nothing is pointed at.
    const rate = (value: number | null | undefined): string => (value === null || value === undefined ? "" : `${value.toFixed(2)} /s`);
    const series = (label: string, name: string) => ({ label, stroke: resolved(name), width: 2, value: (chart: uPlot, value: number | null, index: number) => rate(value ?? chart.data[index]?.at(-1)) });
    const made = new uPlot(
      {
        width: Math.max(parent.clientWidth, 200),
        height: HEIGHT,
        axes: [{ ...axis, space: 70, values: (_, times) => times.map(clock) }, { ...axis, size: 46 }],
        series: [{ label: "at", value: (chart, value) => latest(value ?? chart.data[0].at(-1)) }, series("started", "--active"), series("ended", "--good"), series("timed out", "--late")],
        scales: { x: { range: ({ data: [times] }) => rangeOf(times) }, y: { range: (_, __, most) => [0, Math.max(most ?? 0, 1) * 1.1] } },
        cursor: { drag: { x: false, y: false } },
      },
      ratesOf(points),
      parent,
    );
    chart.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: Math.max(parent.clientWidth, 200), height: HEIGHT }));
    observer.observe(parent);
    return () => {
      observer.disconnect();
      made.destroy();
    };
  }, [colours.value]);
  useEffect(() => chart.current?.setData(ratesOf(points)), [points]);
  return <div ref={element} role="img" aria-label="Runs started, ended and timed out a second" />;
}
