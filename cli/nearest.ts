// The known name that was most likely meant.

/** Undefined if none is similar enough. The first of equally similar names wins. */
export function nearest(known: readonly string[], name: string): string | undefined {
  if (name.length > 40) return undefined;
  let best: string | undefined;
  let bestDistance = Infinity;
  for (const candidate of known) {
    const distance = name.length >= 2 && candidate.startsWith(name) ? 0 : editDistance(candidate, name);
    const allowed = Math.max(candidate.length, name.length) <= 3 ? 1 : Math.max(candidate.length, name.length) <= 8 ? 2 : 3;
    if (distance <= allowed && distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

function editDistance(left: string, right: string): number {
  let previous = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let row = 1; row <= left.length; row++) {
    const current = [row];
    for (let column = 1; column <= right.length; column++) {
      const replaced = previous[column - 1]! + (left[row - 1] === right[column - 1] ? 0 : 1);
      current.push(Math.min(replaced, previous[column]! + 1, current[column - 1]! + 1));
    }
    previous = current;
  }
  return previous[right.length]!;
}
