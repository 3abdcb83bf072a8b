// Reads the text format of Prometheus.

export interface Exposition {
  /** Values by name and labels, written as in the text: `name{a="b"}`. */
  samples: Map<string, number>;
  /** Type and help of each metric. */
  types: Map<string, string>;
  helps: Map<string, string>;
}

export function parseExposition(text: string): Exposition {
  const samples = new Map<string, number>();
  const types = new Map<string, string>();
  const helps = new Map<string, string>();
  for (const line of text.split("\n").filter((line) => line !== "")) {
    const head = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line);
    if (head) {
      (head[1] === "TYPE" ? types : helps).set(head[2]!, head[3]!);
      continue;
    }
    const sample = /^([a-z_]+(?:\{(?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*\})?) (\S+)$/.exec(line);
    if (!sample) throw new Error(`not a line of the text format: ${line}`);
    if (samples.has(sample[1]!)) throw new Error(`twice: ${sample[1]}`);
    samples.set(sample[1]!, Number(sample[2]));
  }
  return { samples, types, helps };
}
