// docs/cli.md has every verb, flag and exit code of the code, and no others.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { flagText, GLOBAL_FLAGS, shortUsage } from "./command.ts";
import { COMMANDS } from "./commands.ts";
import { EXIT_MEANINGS } from "./exit_codes.ts";

const page = readFileSync(new URL("../docs/cli.md", import.meta.url), "utf8");
const listed = COMMANDS.filter(({ isHidden }) => !isHidden);

/** The rows of the first table below a heading, as texts of their cells. */
function rowsBelow(heading: string): string[][] {
  const section = page.split(/^## /m).find((part) => part.startsWith(`${heading}\n`));
  assert.ok(section, `the page has no heading ${heading}`);
  const rows = section.split("\n").filter((line) => line.startsWith("|"));
  return rows.slice(2).map((line) => line.split(/(?<!\\)\|/).slice(1, -1).map((cell) => cell.trim().replaceAll("\\|", "|")));
}

const code = (text: string) => `\`${text}\``;

test("the table of verbs", () => {
  assert.deepEqual(rowsBelow("Verbs"), listed.map((command) => [code(shortUsage(command).replace("curfew ", "")), command.summary]));
});

test("the table of flags", () => {
  const rows = listed.flatMap(({ name, flags }) => flags.map((flag) => [code(name), code(flagText(flag)), flag.summary]));
  assert.deepEqual(rowsBelow("Flags of verbs"), rows);
});

test("the table of flags of every verb", () => {
  assert.deepEqual(rowsBelow("Flags of every verb"), GLOBAL_FLAGS.map((flag) => [code(flagText(flag)), flag.summary]));
});

test("the table of exit codes", () => {
  assert.deepEqual(rowsBelow("Exit codes"), Object.entries(EXIT_MEANINGS).map(([exitCode, meaning]) => [exitCode, meaning]));
});
