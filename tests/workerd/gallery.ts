// Plays the scenarios of an example in examples/gallery against a Curfew of the tests.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Fetch } from "curfew/client";
import { callersOf, type Callers } from "../../examples/gallery/callers.mjs";
import { perform, type Example, type Played } from "../../examples/gallery/example.mjs";
import { checkAnswer } from "./contract.ts";
import type { Curfew } from "./harness.ts";
import { recordData } from "./log-check.ts";

/** Tokens for the callers of an example, and the setting that has them. */
export function tokensFor(callers: Record<string, { roles: string[] }>): { tokens: Record<string, string>; CURFEW_TOKENS: string } {
  const tokens = Object.fromEntries(Object.keys(callers).map((name) => [name, `token-of-${name}-0123456789`]));
  const setting = Object.entries(callers).map(([name, { roles }]) => [tokens[name], { name, roles }]);
  return { tokens, CURFEW_TOKENS: JSON.stringify(Object.fromEntries(setting)) };
}

/** The clients of the demonstrations. Every answer is compared with the OpenAPI document, and logs may hold nothing of the runs. */
export function clientOf(curfew: Curfew, tokens?: Record<string, string>): Callers {
  const checked: Fetch = async (url, init) => {
    const response = await fetch(url, init);
    const text = await response.clone().text();
    checkAnswer(init.method, url.slice(curfew.url.length), { status: response.status, headers: response.headers, text });
    recordData([JSON.parse(init.body ?? "{}").input, JSON.parse(text).output]);
    return response;
  };
  // A repetition would hide an answer that is not as the document says.
  return callersOf({ url: curfew.url, fetch: checked, retries: 0 }, tokens);
}

/** One test for each scenario: its outcome is the expected one. `more` checks what the demonstration does not show. */
export function testScenarios(
  name: string,
  example: Example<any>,
  client: () => Callers,
  more: (played: Played, index: number) => Promise<void> | void = () => {},
): void {
  for (const [index, scenario] of example.scenarios.entries()) {
    test(`${name}: ${scenario.title}`, async () => {
      const played = await perform(example, scenario, client());
      assert.deepEqual(played.seen, scenario.expected, JSON.stringify(played.run.error));
      await more(played, index);
    });
  }
}

/** Stores the documents of an example, none of which may have a warning. */
export async function storeDocuments(client: Callers, example: Example<any>): Promise<void> {
  for (const document of example.documents) assert.deepEqual((await client.put("workflows", document)).warnings, [], document.id);
}
