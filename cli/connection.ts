// Where Curfew is, and with which token it is asked.
import { createClient, type Client } from "../client/index.ts";
import { UsageError, type Flags } from "./arguments.ts";

export const DEFAULT_URL = "http://localhost:8787";

type Environment = Record<string, string | undefined>;

/** Whether a deployment is named. */
export const hasAddress = (flags: Flags, environment: Environment): boolean => (flags.text("url") ?? environment["CURFEW_URL"] ?? "") !== "";

export const addressOf = (flags: Flags, environment: Environment): string => flags.text("url") ?? (environment["CURFEW_URL"] || DEFAULT_URL);

export function tokenOf(flags: Flags, environment: Environment): string | undefined {
  const token = flags.text("token") ?? (environment["CURFEW_TOKEN"] || undefined);
  if (token !== undefined && /[^\x21-\x7e]/.test(token)) {
    throw new UsageError(`${flags.has("token") ? "--token" : "CURFEW_TOKEN"} has a space, a line break or another character that no token has`);
  }
  return token;
}

export interface ConnectionOptions {
  retries?: number;
  timeout_ms?: number;
}

export function connect(flags: Flags, environment: Environment, options: ConnectionOptions = {}): Client {
  const url = addressOf(flags, environment);
  const source = flags.has("url") ? "--url" : "CURFEW_URL";
  if (!/^https?:\/\//.test(url) || !URL.canParse(url)) throw new UsageError(`${source} is "${url.slice(0, 80)}": it must begin with http:// or https://, as ${DEFAULT_URL} does`);
  const token = tokenOf(flags, environment);
  try {
    return createClient({ url, token, ...options });
  } catch (error) {
    // An address that no request can be sent to: with a password, or with a query.
    if (error instanceof TypeError) throw new UsageError(`${source}: ${error.message}`);
    throw error;
  }
}
