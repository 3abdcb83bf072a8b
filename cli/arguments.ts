// Reads a command line by the description of its command. Everything that is wrong with it is a `UsageError`, before anything is sent.
import { GLOBAL_FLAGS, type Command, type Flag } from "./command.ts";
import { formatDuration, parseDuration, parseMoment } from "./durations.ts";
import { nearest } from "./nearest.ts";

/** The command line is wrong. `command` has the usage to show. */
export class UsageError extends Error {
  readonly command: Command | undefined;

  constructor(message: string, command?: Command) {
    super(message);
    this.command = command;
  }
}

/** The values of the flags of a command line. Commands ask for them by name and type. */
export class Flags {
  readonly #values: ReadonlyMap<string, string[]>;
  readonly #command: Command | undefined;

  constructor(values: ReadonlyMap<string, string[]>, command?: Command) {
    this.#values = values;
    this.#command = command;
  }

  has(name: string): boolean {
    return this.#values.has(name);
  }

  text(name: string): string | undefined {
    return this.#values.get(name)?.[0];
  }

  /** Of a flag that may be repeated. Undefined if it is not there. */
  list(name: string): string[] | undefined {
    const values = this.#values.get(name);
    if (values === undefined) return undefined;
    const split = values.flatMap((value) => value.split(",")).map((value) => value.trim());
    if (split.includes("")) throw this.#wrong(name, "has an empty value");
    return split;
  }

  whole(name: string, least: number, most: number): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const value = /^\d{1,16}$/.test(text) ? Number(text) : NaN;
    if (!(value >= least && value <= most)) throw this.#wrong(name, `must be a whole number from ${least} to ${most}, not "${text.slice(0, 40)}"`);
    return value;
  }

  choice(name: string, known: readonly string[]): string | undefined {
    const text = this.text(name);
    if (text === undefined || known.includes(text)) return text;
    throw this.#wrong(name, `is one of ${known.join(", ")}, not "${text.slice(0, 40)}"${suggestion(nearest(known, text))}`);
  }

  /** A duration as the API takes it. */
  duration(name: string): string | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const millis = parseDuration(text);
    if (typeof millis === "string") throw this.#wrong(name, `: ${millis}`);
    if (millis === 0) throw this.#wrong(name, "must be longer than 0s");
    // The API knows no days.
    return text.includes("d") ? formatDuration(millis) : text;
  }

  moment(name: string, now: number): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const at = parseMoment(text, now);
    if (typeof at === "string") throw this.#wrong(name, `: ${at}`);
    return at;
  }

  #wrong(name: string, what: string): UsageError {
    return new UsageError(`--${name}${what.startsWith(":") ? "" : " "}${what}`, this.#command);
  }
}

export interface ParsedLine {
  command: Command;
  words: string[];
  flags: Flags;
}

const suggestion = (name: string | undefined): string => (name === undefined ? "" : `; did you mean "${name}"?`);

/** `line` is the command line behind `curfew`. Without a command it is `help`. */
export function parseLine(line: readonly string[], commands: readonly Command[]): ParsedLine {
  const { name, rest } = verbOf(line);
  const wanted = name ?? (rest.includes("--version") ? "version" : "help");
  const command = commands.find((one) => one.name === wanted);
  if (command === undefined) {
    const listed = commands.filter(({ isHidden }) => !isHidden).map((one) => one.name);
    const near = nearest(listed, wanted);
    const meant = commands.find((one) => one.name === near);
    throw new UsageError(`"${wanted.slice(0, 40)}" is no command of curfew${suggestion(near)}${meant ? "" : "\nrun `curfew help` for the list"}`, meant);
  }
  // `curfew --help` is the list, not the usage of `help`.
  const bare = name === undefined ? rest.filter((word) => !["--version", "--help", "-h"].includes(word)) : rest;
  return parseWords(bare, command);
}

/** The first word that is neither a flag nor the value of one: global flags may come before the verb. */
function verbOf(line: readonly string[]): { name: string | undefined; rest: string[] } {
  for (let index = 0; index < line.length; index++) {
    const word = line[index]!;
    if (!word.startsWith("-") || word === "-") return { name: word, rest: [...line.slice(0, index), ...line.slice(index + 1)] };
    const isValueNext = GLOBAL_FLAGS.some((flag) => flag.value !== undefined && word === `--${flag.name}`);
    if (isValueNext) index++;
  }
  return { name: undefined, rest: [...line] };
}

function parseWords(line: readonly string[], command: Command): ParsedLine {
  const known = [...command.flags, ...GLOBAL_FLAGS];
  const words: string[] = [];
  const values = new Map<string, string[]>();
  for (let index = 0; index < line.length; index++) {
    const word = line[index]!;
    if (word === "--") {
      words.push(...line.slice(index + 1));
      break;
    }
    if (!word.startsWith("-") || word === "-" || /^-\d/.test(word)) {
      words.push(word);
      continue;
    }
    const [name, attached] = splitFlag(word === "-h" ? "--help" : word);
    const flag = flagNamed(name, word, known, command);
    if (flag.value === undefined) {
      if (attached !== undefined) throw new UsageError(`--${flag.name} takes no value`, command);
      values.set(flag.name, []);
      continue;
    }
    const value = attached ?? line[index + 1];
    if (attached === undefined) index++;
    if (value === undefined || (attached === undefined && value.startsWith("--"))) {
      throw new UsageError(`--${flag.name} needs a value: --${flag.name} <${flag.value}>`, command);
    }
    if (value === "") throw new UsageError(`--${flag.name} has an empty value`, command);
    const before = values.get(flag.name);
    if (before !== undefined && !flag.isRepeated) throw new UsageError(`--${flag.name} is given twice`, command);
    values.set(flag.name, [...(before ?? []), value]);
  }
  if (!values.has("help")) checkWords(words, command);
  return { command, words, flags: new Flags(values, command) };
}

function splitFlag(word: string): [name: string, attached: string | undefined] {
  const at = word.indexOf("=");
  const bare = at < 0 ? word : word.slice(0, at);
  return [bare.replace(/^--?/, ""), at < 0 ? undefined : word.slice(at + 1)];
}

function flagNamed(name: string, word: string, known: readonly Flag[], command: Command): Flag {
  const flag = word.startsWith("--") || word === "-h" ? known.find((one) => one.name === name) : undefined;
  if (flag !== undefined) return flag;
  const near = nearest(known.map((one) => one.name), name);
  throw new UsageError(`${word.split("=")[0]!.slice(0, 40)} is no flag of "curfew ${command.name}"${suggestion(near === undefined ? undefined : `--${near}`)}`, command);
}

function checkWords(words: readonly string[], command: Command): void {
  const { positionals } = command;
  const missing = positionals.find(({ isOptional }, index) => !isOptional && words[index] === undefined);
  if (missing !== undefined) throw new UsageError(`<${missing.name}> is missing`, command);
  const tooMany = !positionals.some(({ isRepeated }) => isRepeated) && words.length > positionals.length;
  if (tooMany) throw new UsageError(`"${words[positionals.length]!.slice(0, 40)}" is one word too many`, command);
  // Completions have an empty word where nothing is written yet.
  const empty = command.isHidden ? -1 : words.findIndex((word) => word === "");
  if (empty >= 0) throw new UsageError(`<${positionals[Math.min(empty, positionals.length - 1)]?.name}> is empty`, command);
}
