// Seeded random numbers: the same seed makes the same plan (which runs start, how slow the peer is, when the process is killed).
// Timing depends on the machine, so a seed repeats the plan, not every interleaving.

/** A number in [0, 1) that depends only on the seed and the name. */
export function chance(seed: number, name: string): number {
  // FNV-1a with the finalizer of MurmurHash3, because similar names must give independent numbers.
  let hash = 0x811c9dc5 ^ seed;
  for (const unit of name) hash = Math.imul(hash ^ unit.codePointAt(0)!, 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}

/** An integer from `low` to `high`, inclusive. */
export const between = (seed: number, name: string, low: number, high: number): number =>
  low + Math.floor(chance(seed, name) * (high - low + 1));
