// The connection to the API: the client, the credential, what the credential may do, and whether the server answers.
import { batch, computed, effect, signal } from "@preact/signals";
import { createClient, CurfewError, type Client, type Fetch, type Identity } from "../../client/index.ts";
import { noteServerDate } from "./clock.ts";

const STORED_TOKEN = "curfew-token";
/** How often a lost server is tried. */
const PROBE_MS = 1_000;

/** In session storage: it ends with the tab, and other tabs do not have it. */
const token = signal<string | undefined>(sessionStorage.getItem(STORED_TOKEN) ?? undefined);

/** Why a sign-in is needed; undefined while the credential works. */
export const signInReason = signal<string | undefined>(undefined);

/** Why a sign-in with Cloudflare Access is needed: its session has ended, or none was there. A token would not help. */
const NEEDS_ACCESS = /^(sign in with Cloudflare Access|the session of Cloudflare Access has ended)/;
export const needsAccess = computed(() => signInReason.value !== undefined && NEEDS_ACCESS.test(signInReason.value));

/** Whether the last request got no answer. */
export const isOffline = signal(false);

/** Grows when the server answers again after it was lost. Streams and lists begin again then. */
export const connections = signal(0);

/** Requests of a page that has been left, and of calls that were given up, say nothing about the server. */
const watched: Fetch = async (url, init) => {
  const askedAt = Date.now();
  try {
    const response = await fetch(url, init);
    noteServerDate(response.headers.get("date"), askedAt, Date.now());
    // The API never redirects: this is the way to the login page of Access, which a page has to go itself.
    if (response.type === "opaqueredirect") signInReason.value = "the session of Cloudflare Access has ended";
    if (response.status === 401) {
      const reason = await reasonOf(response.clone());
      // A late answer to an earlier token says nothing about this one, and one that was given up while it was read has no reason.
      if (!init.signal.aborted && init.headers["authorization"] === (token.peek() && `Bearer ${token.peek()}`)) signInReason.value = reason;
    }
    answered();
    return response;
  } catch (error) {
    if (!init.signal.aborted) lost();
    throw error;
  }
};

async function reasonOf(response: Response): Promise<string> {
  const body = await response.json().catch(() => undefined);
  return typeof body?.error?.message === "string" ? body.error.message : "the server asks for a token";
}

let probe: ReturnType<typeof setTimeout> | undefined;

export function lost(): void {
  isOffline.value = true;
  probe ??= setTimeout(async () => {
    probe = undefined;
    const response = await fetch("/healthz", { cache: "no-store", signal: AbortSignal.timeout(5_000) }).catch(() => undefined);
    if (response?.ok) answered();
    else lost();
  }, PROBE_MS);
}

function answered(): void {
  if (!isOffline.value) return;
  clearTimeout(probe);
  probe = undefined;
  isOffline.value = false;
  connections.value += 1;
}

export const client = computed<Client>(() => createClient({ url: location.origin, token: token.value, fetch: watched, retries: 1 }));

export const hasToken = computed(() => token.value !== undefined);

export function signIn(given: string): void {
  sessionStorage.setItem(STORED_TOKEN, given);
  // At once: nothing may be sent with the old token in between.
  batch(() => {
    token.value = given;
    signInReason.value = undefined;
  });
}

export function signOut(): void {
  sessionStorage.removeItem(STORED_TOKEN);
  batch(() => {
    token.value = undefined;
    identity.value = undefined;
    signInReason.value = "You have signed out.";
  });
}

/** Undefined until it is known. */
export const identity = signal<Identity | undefined>(undefined);

/** Called once. Reads what the credential may do, again with each new credential. */
export function followIdentity(): void {
  effect(() => {
    const current = client.value;
    connections.value;
    if (signInReason.value === undefined) void current.me().then((me) => (identity.value = me)).catch(() => {});
  });
}

type Role = Identity["roles"][number];

/** Whether a control is shown. The API decides: what is shown too much is refused there. */
export const may = (role: Role): boolean => identity.value === undefined || identity.value.roles.includes(role);

/** An error in one sentence, with its code and the place in what was sent, where it has them. */
export function messageOf(error: unknown): string {
  if (error instanceof CurfewError) {
    const { pointer = "", message, code } = error;
    // Refusals of several things begin with the place of the first one.
    return `${pointer === "" || message.includes(pointer) ? "" : `${pointer}: `}${message} (${code})`;
  }
  return error instanceof Error ? error.message : String(error);
}
