// Chance with a seed: the same seed makes the same plan (what is started, how slow the peer is, when the process is killed).
// What the machine makes of it is its own affair, so a seed repeats the plan, not every interleaving.

/** A number in [0, 1) that depends on nothing but the seed and the name. */
export function chance(seed: number, name: string): number {
  // FNV-1a, then the finish of MurmurHash3, because names that differ in one letter must be far apart.
  let hash = 0x811c9dc5 ^ seed;
  for (const unit of name) hash = Math.imul(hash ^ unit.codePointAt(0)!, 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}

/** A whole number from `low` to `high`, both included. */
export const between = (seed: number, name: string, low: number, high: number): number =>
  low + Math.floor(chance(seed, name) * (high - low + 1));
