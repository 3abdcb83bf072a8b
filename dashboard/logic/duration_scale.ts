// Sliders of durations: each part of the way multiplies, because a second and a day are both of interest.

export interface DurationScale {
  least: number;
  most: number;
}

/** The number of positions of a slider. */
export const POSITIONS = 400;

/** From so long on, so exact. */
const STEPS: [from: number, step: number][] = [
  [10 * 86_400_000, 86_400_000],
  [86_400_000, 3_600_000],
  [10 * 3_600_000, 1_800_000],
  [3_600_000, 300_000],
  [600_000, 60_000],
  [60_000, 5_000],
  [10_000, 1_000],
  [1_000, 100],
  [100, 10],
];

/** Documents have none that is longer, where no operator has changed that. */
const LIMIT_MOST_MS = 30 * 86_400_000;

/** Around a length that is there already. */
export const scaleAround = (ms: number): DurationScale => ({ least: Math.max(ms / 100, 1), most: Math.max(Math.min(ms * 100, LIMIT_MOST_MS), ms, 100) });

export function positionOf(ms: number, { least, most }: DurationScale): number {
  const share = Math.log(Math.max(ms, 1) / least) / Math.log(most / least);
  return Math.round(Math.min(Math.max(share, 0), 1) * POSITIONS);
}

export const msAt = (position: number, { least, most }: DurationScale): number => rounded(least * (most / least) ** (position / POSITIONS));

/** To a length that a person would write. */
export function rounded(ms: number): number {
  const [, step] = STEPS.find(([from]) => ms >= from) ?? [0, 1];
  return Math.max(Math.round(ms / step) * step, 1);
}
