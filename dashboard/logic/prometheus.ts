// Reads the text format of Prometheus, as far as Curfew writes it.

export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;

/** Lines that are no sample are left out. */
export function samplesOf(text: string): Sample[] {
  return text.split("\n").flatMap((line) => {
    const [, name, labels = "", value = ""] = LINE.exec(line) ?? [];
    return name === undefined ? [] : [{ name, labels: labelsOf(labels), value: value === "+Inf" ? Infinity : Number(value) }];
  });
}

function labelsOf(text: string): Record<string, string> {
  const entries = [...text.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, name, value]) => [name!, value!.replace(/\\(.)/g, (_, character) => (character === "n" ? "\n" : character))] as const);
  return Object.fromEntries(entries);
}

/** The sum of a metric, by one of its labels. */
export function totalsBy(samples: readonly Sample[], name: string, label: string): [string, number][] {
  const totals = new Map<string, number>();
  for (const sample of samples) if (sample.name === name) totals.set(sample.labels[label] ?? "", (totals.get(sample.labels[label] ?? "") ?? 0) + sample.value);
  return [...totals].sort((a, b) => b[1] - a[1]);
}

export const total = (samples: readonly Sample[], name: string): number => samples.reduce((sum, sample) => (sample.name === name ? sum + sample.value : sum), 0);

/** A quantile of a histogram over all its labels: the upper bound of its bucket. Undefined without samples. */
export function quantile(samples: readonly Sample[], name: string, share: number): number | undefined {
  const buckets = new Map<number, number>();
  for (const { name: other, labels, value } of samples) {
    if (other !== `${name}_bucket`) continue;
    const bound = labels["le"] === "+Inf" ? Infinity : Number(labels["le"]);
    buckets.set(bound, (buckets.get(bound) ?? 0) + value);
  }
  const ordered = [...buckets].sort((a, b) => a[0] - b[0]);
  const all = ordered.at(-1)?.[1] ?? 0;
  if (all === 0) return undefined;
  return ordered.find(([, count]) => count >= all * share)?.[0];
}

/** The counts of single buckets, not added up. */
export function histogram(samples: readonly Sample[], name: string): [bound: number, count: number][] {
  const buckets = new Map<number, number>();
  for (const { name: other, labels, value } of samples) {
    if (other !== `${name}_bucket`) continue;
    const bound = labels["le"] === "+Inf" ? Infinity : Number(labels["le"]);
    buckets.set(bound, (buckets.get(bound) ?? 0) + value);
  }
  let before = 0;
  return [...buckets].sort((a, b) => a[0] - b[0]).map(([bound, count]) => {
    const own = count - before;
    before = count;
    return [bound, own];
  });
}
