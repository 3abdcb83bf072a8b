// A team of Cloudflare Access: a server of its keys on loopback, and assertions with real signatures.
import assert from "node:assert/strict";
import { createHmac, createSign, generateKeyPairSync, type KeyObject } from "node:crypto";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export const AUDIENCE = "f3b0c44298fc1c149afbf4c8996fb924";

export interface Key {
  id: string;
  publicKey: KeyObject;
  privateKey: KeyObject;
}

export const newKey = (id: string): Key => ({ id, ...generateKeyPairSync("rsa", { modulusLength: 2048 }) });

/** A team of Access: the server of its keys. */
export class Team {
  keys: Key[] = [newKey("k1")];
  /** Requests for the keys. */
  fetches = 0;
  respond = (response: ServerResponse): void => {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ keys: this.keys.map(({ id, publicKey }) => ({ kid: id, alg: "RS256", use: "sig", ...publicKey.export({ format: "jwk" }) })) }));
  };
  #server = createServer((request, response) => {
    assert.equal(request.url, "/cdn-cgi/access/certs");
    this.fetches += 1;
    this.respond(response);
  });
  url = "";

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    return this;
  }

  close(): Promise<unknown> {
    this.#server.closeAllConnections();
    return new Promise((resolve) => this.#server.close(resolve));
  }

  /** An assertion of this team, signed as its header says. */
  assertion(claims: Record<string, unknown> = {}, header: Record<string, unknown> = {}, key: Key = this.keys[0]!): string {
    const now = Math.floor(Date.now() / 1000);
    const all = { iss: this.url, aud: [AUDIENCE], iat: now, nbf: now, exp: now + 600, email: "ada@example.com", sub: "1", ...claims };
    const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
    const signed = `${encode({ alg: "RS256", typ: "JWT", kid: key.id, ...header })}.${encode(all)}`;
    return `${signed}.${signature(signed, String(header["alg"] ?? "RS256"), key)}`;
  }
}

function signature(signed: string, algorithm: string, key: Key): string {
  if (algorithm === "none") return "";
  // The public key as the secret: what a verifier would use that lets the token choose the algorithm.
  if (algorithm === "HS256") return createHmac("sha256", key.publicKey.export({ type: "spki", format: "pem" })).update(signed).digest("base64url");
  return createSign("RSA-SHA256").update(signed).sign(key.privateKey, "base64url");
}
