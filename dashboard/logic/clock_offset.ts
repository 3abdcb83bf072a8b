// How far the clock of this machine is from the server's. Times left are of no use by a clock that is wrong.

/** Less is not corrected: the header has whole seconds, and an answer is under way for a while. */
const TOLERATED_MS = 2_000;

/** What has to be added to the own time. `date` is the header of an answer, the other times are those of the own clock around it. */
export function clockOffset(date: string | null, askedAt: number, answeredAt: number): number | undefined {
  const second = date === null ? NaN : Date.parse(date);
  if (!Number.isFinite(second)) return undefined;
  // The server's time was within that second at a moment between the question and the answer.
  const least = second - answeredAt;
  const most = second + 999 - askedAt;
  return least <= TOLERATED_MS && most >= -TOLERATED_MS ? 0 : Math.round((least + most) / 2);
}
