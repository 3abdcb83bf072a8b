// Command lines that are read, and those that are refused before anything is sent.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseLine, UsageError } from "./arguments.ts";
import { runCommandLine } from "./cli.ts";
import { COMMANDS } from "./commands.ts";
import { parsedJson } from "./json_input.ts";
import { nearest } from "./nearest.ts";
import { testTerminal } from "./test_terminal.ts";

const parse = (...line: string[]) => parseLine(line, COMMANDS);
const refusal = (...line: string[]): string => {
  try {
    parse(...line);
  } catch (error) {
    assert.ok(error instanceof UsageError, String(error));
    return error.message;
  }
  throw new Error(`${line.join(" ")} was not refused`);
};

test("words and flags in any order; a value may be attached", () => {
  for (const line of [
    ["start", "hello", "--id", "r1", "--json"],
    ["--json", "start", "--id=r1", "hello"],
    ["--url", "http://x", "start", "hello", "--id", "r1", "--json"],
    ["start", "--id", "r1", "--json", "--", "hello"],
  ]) {
    const { command, words, flags } = parse(...line);
    assert.equal(command.name, "start");
    assert.deepEqual(words, ["hello"]);
    assert.equal(flags.text("id"), "r1");
    assert.equal(flags.has("json"), true);
  }
});

test("the value of a global flag before the verb is not the verb", () => {
  const { command, flags } = parse("--url", "start", "runs");
  assert.equal(command.name, "runs");
  assert.equal(flags.text("url"), "start");
});

test("a dash alone and a negative number are words; behind -- everything is", () => {
  assert.deepEqual(parse("signal", "r1", "paid", "-").words, ["r1", "paid", "-"]);
  assert.deepEqual(parse("signal", "r1", "paid", "-5").words, ["r1", "paid", "-5"]);
  assert.deepEqual(parse("signal", "--", "--r1", "paid").words, ["--r1", "paid"]);
  assert.equal(parse("start", "hello", "--input", "-").flags.text("input"), "-");
});

test("several values of a repeated flag, with commas or by repetition", () => {
  assert.deepEqual(parse("runs", "--status", "running,waiting", "--status", "paused").flags.list("status"), ["running", "waiting", "paused"]);
});

test("without a verb it is help; --version is the version", () => {
  assert.equal(parse().command.name, "help");
  assert.equal(parse("--version").command.name, "version");
  assert.equal(parse("start", "hello", "--version", "3").flags.whole("version", 1, 9), 3);
});

for (const [line, message] of [
  [["strat"], /"strat" is no command of curfew; did you mean "start"\?/],
  [["bogus-verb"], /is no command of curfew\nrun `curfew help`/],
  [["runs", "--statsu", "x"], /--statsu is no flag of "curfew runs"; did you mean "--status"\?/],
  [["runs", "-s"], /-s is no flag/],
  [["start"], /<workflow> is missing/],
  [["start", ""], /<workflow> is empty/],
  [["start", "hello", "world"], /"world" is one word too many/],
  [["start", "hello", "--id"], /--id needs a value: --id <run>/],
  [["start", "hello", "--id", "--json"], /--id needs a value/],
  [["start", "hello", "--id="], /--id has an empty value/],
  [["start", "hello", "--id", "a", "--id", "b"], /--id is given twice/],
  [["start", "hello", "--wait=yes"], /--wait takes no value/],
] as const) {
  test(`refused: curfew ${line.join(" ")}`, () => assert.match(refusal(...line), message));
}

test("numbers, durations, moments and choices are checked by name", () => {
  const flags = (...line: string[]) => parse(...line).flags;
  assert.throws(() => flags("runs", "--limit", "0").whole("limit", 1, 10), /--limit must be a whole number from 1 to 10, not "0"/);
  assert.throws(() => flags("runs", "--limit", "1e3").whole("limit", 1, 10_000), /--limit must be/);
  assert.throws(() => flags("extend", "r", "--by", "10").duration("by"), /--by: "10" has no unit; write 10s, 10m, 10h or 10d/);
  assert.throws(() => flags("extend", "r", "--by", "0s").duration("by"), /longer than 0s/);
  assert.throws(() => flags("runs", "--since", "yesterday").moment("since", 0), /is no moment/);
  assert.equal(flags("runs", "--since", "2h").moment("since", 10_000_000), 2_800_000);
  assert.equal(flags("runs", "--since", "2d").moment("since", 200_000_000), 27_200_000);
  assert.equal(flags("extend", "r", "--by", "1d12h").duration("by"), "36h0m0s");
  assert.equal(flags("extend", "r", "--by", "90m").duration("by"), "90m");
  assert.throws(() => flags("runs", "--sort", "startd").choice("sort", ["started", "remaining"]), /did you mean "started"\?/);
  assert.throws(() => flags("runs", "--status", "a,,b").list("status"), /empty value/);
});

test("the nearest name", () => {
  assert.equal(nearest(["start", "restart", "retry"], "strt"), "start");
  assert.equal(nearest(["start"], "x".repeat(1_000)), undefined);
  assert.equal(nearest(["start"], "zebra"), undefined);
});

/** Exit code and standard error of a line that sends nothing. */
async function refused(line: string[], environment: Record<string, string> = {}, input = ""): Promise<{ code: number; errors: string; out: string }> {
  const terminal = Object.assign(testTerminal(), { input });
  const code = await runCommandLine(line, { CURFEW_URL: "http://127.0.0.1:9", ...environment }, terminal);
  return { code, errors: terminal.errors, out: terminal.out };
}

test("a refused line has exit code 2, the nearest name and the usage of that verb", async () => {
  const { code, errors, out } = await refused(["strat", "hello"]);
  assert.equal(code, 2);
  assert.equal(out, "");
  assert.match(errors, /^curfew: "strat" is no command of curfew; did you mean "start"\?\nusage: curfew start <workflow> \[--input <json>\]/);
});

test("inputs that are no JSON, missing or too large are refused before they are sent", async () => {
  for (const [line, message, input] of [
    [["start", "w", "--input", "{name: 1}"], /--input: it is not JSON: .*; write it as '\{"name": "Ada"\}', as @file, or as -/],
    [["start", "w", "--input", "@/no/such/file"], /--input: there is no file \/no\/such\/file/],
    [["start", "w", "--input", "@"], /@ needs the name of a file/],
    [["start", "w", "--input", "@."], /is a directory/],
    [["start", "w", "--input", "-"], /standard input is empty/, "  "],
    [["start", "w", "--input", "-"], /standard input is larger than 1 MiB/, "x".repeat(1_048_577)],
    [["start", "w", "--input", `"${"x".repeat(1_048_576)}"`], /larger than 1 MiB/],
    [["start", "w", "--input", `${"[".repeat(100_000)}${"]".repeat(100_000)}`], /it is nested deeper than 1000 levels/],
    [["start", "w", "--input", '{"name": "9007199254740993", "order": -9007199254740993}'], /it has the number -9007199254740993, which cannot be sent exactly; write it as a string/],
    [["start", "w", "--input", "-"], /standard input has the number 12345678901234567890,/, "[12345678901234567890]"],
    [["start", "w", "--input", "[-1e400]"], /it has the number -1e400,/],
    [["start", "w", "--wait", "--watch"], /exclude each other/],
    [["extend", "r"], /either --by 10m or --until/],
    [["extend", "r", "--by", "1m", "--until", "2026-01-01T00:00:00Z"], /either --by/],
    [["extend", "r", "--until", "noon"], /"noon" is no moment/],
    [["decide", "r", "g1"], /<choice> is missing; only on a terminal/],
    [["decide", "r", "g1", "extend", "--by", "1m", "--input", "{}"], /exclude each other/],
    [["completions", "tcsh"], /one of bash, zsh, fish/],
    [["help", "strat"], /did you mean "start"\?/],
    [["put", "/no/such.json"], /there is no file/],
    [["put", "."], /is a directory; name its files/],
  ] as const) {
    const { code, errors } = await refused([...line], {}, input);
    assert.equal(code, 2, line.join(" ").slice(0, 80));
    assert.match(errors, message);
  }
});

test("a wrong address or token is refused; --json makes the error JSON", async () => {
  assert.match((await refused(["runs"], { CURFEW_URL: "localhost:8787" })).errors, /CURFEW_URL is "localhost:8787": it must begin with http/);
  assert.match((await refused(["runs", "--token", "a b"])).errors, /--token has a space/);
  for (const [address, problem] of [["http://ada:secret@localhost:8787", "has a user name or a password"], ["http://localhost:8787?x=1", "without a query"]] as const) {
    const { code, errors } = await refused(["runs"], { CURFEW_URL: address });
    assert.equal(code, 2, errors);
    assert.ok(errors.startsWith("curfew: CURFEW_URL: url ") && errors.includes(problem) && !errors.includes("secret"), errors);
  }
  const { errors } = await refused(["runs", "--limit", "x", "--json"]);
  assert.equal(JSON.parse(errors).error.code, "usage");
});

test("an id that would change the path is refused, in every place of a path", async () => {
  for (const line of [["run", ".."], ["watch", "."], ["workflow", ".."], ["signal", "r", ".."], ["publish", "."], ["breakers", "--reset", ".."]]) {
    const { code, errors } = await refused(line);
    assert.deepEqual([code, /^curfew: \w+ is "\.+": it must have a value that is no dot/.test(errors)], [1, true], errors);
  }
});

test("numbers that are sent as they are written", () => {
  for (const text of ["9007199254740992", "-9007199254740991", "100000000000000000000", "1.0000000000000000001", "1e300", '"9007199254740993 \\" 9007199254740993"', '["\\\\", 1]']) assert.doesNotThrow(() => parsedJson(text), text);
});

test("an address without Curfew has exit code 6 and says what to do", async () => {
  const { code, errors } = await refused(["runs"]);
  assert.equal(code, 6);
  assert.match(errors, /^curfew: Curfew does not answer at http:\/\/127\.0\.0\.1:9: /);
  assert.match(errors, /start it with `curfew dev`, or set CURFEW_URL/);
});
