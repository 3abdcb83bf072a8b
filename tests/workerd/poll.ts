// Polling in tests: for a condition, with a deadline.

/** Polls until `look` returns something other than undefined, null or false. The error at the deadline says what was awaited. */
export async function until<T>(
  what: string,
  look: () => T | Promise<T>,
  deadlineMs = 15_000,
  everyMs = 15,
): Promise<NonNullable<Exclude<T, false>>> {
  const givenUpAt = Date.now() + deadlineMs;
  for (;;) {
    const seen = await look();
    if (seen !== undefined && seen !== null && seen !== false) return seen as NonNullable<Exclude<T, false>>;
    if (Date.now() > givenUpAt) throw new Error(`waited ${deadlineMs} ms in vain for ${what}; last seen: ${JSON.stringify(seen)}`);
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}
