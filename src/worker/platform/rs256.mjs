// @ts-check
// Signatures of JWTs with RSASSA-PKCS1-v1_5 and SHA-256.

const ALGORITHM = { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" };

/** More than a team has at a time; older ones are imported again. */
const KEYS_MAX = 20;

/** Imported keys by their JWK. @type {Map<string, CryptoKey>} */
const keys = new Map();

/**
 * Rejects if the key is invalid.
 * @param {string} jwk JSON
 * @param {string} signed
 * @param {Uint8Array} signature a view of the wasm's memory
 * @returns {Promise<boolean>}
 */
export async function verifyRs256(jwk, signed, signature) {
  // The memory may move while this waits.
  const copy = signature.slice();
  const key = keys.get(jwk) ?? (await importKey(jwk));
  return crypto.subtle.verify(ALGORITHM.name, key, copy, new TextEncoder().encode(signed));
}

/** @param {string} jwk */
async function importKey(jwk) {
  const key = await crypto.subtle.importKey("jwk", JSON.parse(jwk), ALGORITHM, false, ["verify"]);
  if (keys.size >= KEYS_MAX) keys.clear();
  keys.set(jwk, key);
  return key;
}
