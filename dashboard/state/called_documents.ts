// The documents that a workflow refers to, read from the catalogue with those that they refer to.
import { NotFoundError, type Client } from "../../client/index.ts";
import { referencesOf, type Reference } from "../logic/scenario.ts";

/** The engine takes so many. */
const DOCUMENTS_MAX = 100;

export type Documents = Record<Reference["kind"], Record<string, unknown>[]>;

/** What does not exist is left out: the engine says that it is missing. */
export async function calledDocuments(client: Client, document: unknown, signal: AbortSignal): Promise<Documents> {
  const found: Documents = { workflows: [], tasks: [], actions: [] };
  const seen = new Set<string>();
  let wanted = referencesOf(document);
  while (wanted.length > 0) {
    const unread = wanted.filter(({ kind, id, version }) => {
      const key = `${kind}/${id}/${version ?? ""}`;
      return seen.size < DOCUMENTS_MAX && !seen.has(key) && seen.add(key);
    });
    const read = await Promise.all(
      unread.map(async ({ kind, id, version }) => {
        try {
          const stored = await client.read(kind, id, { version, signal });
          const content = stored.document as Record<string, unknown>;
          found[kind].push(version === undefined ? content : { ...content, version });
          return content;
        } catch (error) {
          if (error instanceof NotFoundError) return undefined;
          throw error;
        }
      }),
    );
    wanted = read.flatMap((content) => referencesOf(content));
  }
  return found;
}
