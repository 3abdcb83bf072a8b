// The only way to the outside: streams, keys, signals and the clock of the process. Tests put a terminal of their own in its place.
import { createInterface } from "node:readline/promises";

export interface Terminal {
  isOutputTerminal: boolean;
  isErrorTerminal: boolean;
  isInputTerminal: boolean;
  columns(): number;
  rows(): number;
  now(): number;
  write(text: string): void;
  writeError(text: string): void;
  /** Standard input, up to `bytesMax`; undefined if there is more. */
  readInput(bytesMax: number): Promise<string | undefined>;
  /** Undefined at the end of the input. */
  ask(question: string): Promise<string | undefined>;
  onResize(callback: () => void): () => void;
  /** Ctrl-C, or a request to end. */
  onInterrupt(callback: () => void): () => void;
  /** Ctrl-Z: `before` leaves the terminal in order, `after` follows when the process goes on. */
  onSuspend(before: () => void, after: () => void): () => void;
}

const DEFAULT_COLUMNS = 80;
const DEFAULT_ROWS = 24;

export function processTerminal(): Terminal {
  const { stdin, stdout, stderr } = process;
  const isUsable = process.env["TERM"] !== "dumb";
  // `curfew runs | head` closes the pipe early, which is no failure.
  for (const stream of [stdout, stderr]) stream.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1));
  return {
    isOutputTerminal: stdout.isTTY === true && isUsable,
    isErrorTerminal: stderr.isTTY === true && isUsable,
    isInputTerminal: stdin.isTTY === true,
    columns: () => stdout.columns || DEFAULT_COLUMNS,
    rows: () => stdout.rows || DEFAULT_ROWS,
    now: Date.now,
    write: (text) => void stdout.write(text),
    writeError: (text) => void stderr.write(text),
    readInput: async (bytesMax) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      for await (const chunk of stdin) {
        bytes += chunk.length;
        if (bytes > bytesMax) return undefined;
        chunks.push(chunk);
      }
      return Buffer.concat(chunks).toString("utf8");
    },
    ask,
    onResize: (callback) => listen(stdout, "resize", callback),
    onInterrupt: (callback) => {
      const ends = (["SIGINT", "SIGTERM", "SIGHUP"] as const).map((signal) => listen(process, signal, callback));
      return () => ends.forEach((end) => end());
    },
    onSuspend: (before, after) => {
      // Windows has no such signals.
      if (process.platform === "win32") return () => {};
      const stop = () => {
        before();
        process.kill(process.pid, "SIGSTOP");
      };
      const ends = [listen(process, "SIGTSTP", stop), listen(process, "SIGCONT", after)];
      return () => ends.forEach((end) => end());
    },
  };
}

function listen(emitter: NodeJS.EventEmitter, name: string, callback: () => void): () => void {
  emitter.on(name, callback);
  return () => void emitter.off(name, callback);
}

async function ask(question: string): Promise<string | undefined> {
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    // At the end of the input `question` never settles.
    return await Promise.race([lines.question(question), new Promise<undefined>((resolve) => lines.once("close", () => resolve(undefined)))]);
  } finally {
    lines.close();
  }
}
