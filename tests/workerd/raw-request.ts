// Requests with headers that `fetch` does not let a program set or leave out, such as Host and Origin.
import { request as httpRequest } from "node:http";
import type { ApiResponse } from "./harness.ts";

/** Sends exactly these headers; Host is that of the URL unless given. A body has the length that it has. */
export function rawRequest(url: string, method: string, headers: Record<string, string> = {}, body = ""): Promise<ApiResponse> {
  return new Promise((resolve, reject) => {
    const length = body === "" ? {} : { "content-length": String(Buffer.byteLength(body)) };
    const request = httpRequest(url, { method, headers: { ...length, ...headers }, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () => {
        const text = Buffer.concat(chunks).toString("utf8");
        const fields = Object.entries(response.headers).map(([name, value]): [string, string] => [name, String(value)]);
        resolve({ status: response.statusCode ?? 0, headers: new Headers(fields), text, json: parsed(text) });
      });
    });
    request.on("error", reject);
    request.end(body);
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
