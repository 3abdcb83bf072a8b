// Here, because openapi-typescript needs a compiler with a JavaScript API: TypeScript 5, which this workspace of npm has for itself.
// Everything else is checked by TypeScript 7.
import generate, { astToString } from "openapi-typescript";

/**
 * The types of an OpenAPI document.
 * @param {string} document JSON
 * @param {boolean} [immutable] with lists that are only read, so that a constant fits
 */
export const typesOf = async (document, immutable = false) =>
  // A field with a default may be left out.
  astToString(await generate(document, { silent: true, emptyObjectsUnknown: true, defaultNonNullable: false, immutable }));
