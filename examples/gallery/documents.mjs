// The workflow documents of an example, as they are stored.
import { readFileSync } from "node:fs";

/** @param {string | URL} path relative to `base` @param {string | URL} [base] @returns {any} */
export const readDocument = (path, base) => JSON.parse(readFileSync(new URL(path, base), "utf8"));

/**
 * A copy of a document for a demonstration that takes seconds, under an id of its own: `values` replaces what is at these JSON
 * pointers. A pointer must lead to a value of the document, so that a changed document does not go unnoticed.
 * @param {any} document
 * @param {Record<string, unknown>} values
 */
export function quick(document, values) {
  const copy = structuredClone(document);
  for (const [pointer, value] of Object.entries(values)) {
    const names = pointer.split("/").slice(1);
    const last = /** @type {string} */ (names.pop());
    const parent = names.reduce((at, name) => at?.[name], copy);
    if (parent?.[last] === undefined) throw new Error(`${document.id} has no ${pointer}`);
    parent[last] = value;
  }
  return { ...copy, id: `${document.id}-quick` };
}
