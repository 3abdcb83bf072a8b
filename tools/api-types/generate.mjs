// Here, because openapi-typescript needs a compiler with a JavaScript API: TypeScript 5, which this workspace of npm has for itself.
// Everything else is checked by TypeScript 7.
import generate, { astToString } from "openapi-typescript";

/**
 * The types of an OpenAPI document.
 * @param {string} document JSON
 */
export const typesOf = async (document) => astToString(await generate(document, { silent: true, emptyObjectsUnknown: true }));
