// Runs a second over time, by uPlot.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { theme } from "../state/theme.ts";

export interface Point {
  /** Seconds. */
  at: number;
  started: number;
  ended: number;
  timedOut: number;
}

const HEIGHT = 190;
const LEAST_SECONDS = 60;

/** Differences of totals as rates. A total that fell belongs to another deployment. */
function ratesOf(points: Point[]): uPlot.AlignedData {
  const rate = (name: "started" | "ended" | "timedOut") => points.slice(1).map((point, index) => Math.max(point[name] - points[index]![name], 0) / Math.max(point.at - points[index]!.at, 0.001));
  return [points.slice(1).map(({ at }) => at), rate("started"), rate("ended"), rate("timedOut")];
}

/** A minute at least. What uPlot proposes is not taken: of one point alone it makes years. */
function rangeOf(times: ArrayLike<number>): [number, number] {
  const most = times[times.length - 1] ?? 0;
  return [Math.min(times[0] ?? most, most - LEAST_SECONDS), most];
}

export function RateChart({ points }: { points: Point[] }) {
  const element = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | undefined>(undefined);
  const colours = theme.value;
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
    const series = (label: string, name: string) => ({ label, stroke: resolved(name), width: 2, value: (_: uPlot, value: number | null) => (value === null || value === undefined ? "" : `${value.toFixed(2)} /s`) });
    const made = new uPlot(
      {
        width: Math.max(parent.clientWidth, 200),
        height: HEIGHT,
        axes: [axis, { ...axis, size: 46 }],
        series: [{}, series("started", "--active"), series("ended", "--good"), series("timed out", "--late")],
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
  }, [colours]);
  useEffect(() => chart.current?.setData(ratesOf(points)), [points]);
  return <div ref={element} role="img" aria-label="Runs started, ended and timed out a second" />;
}
