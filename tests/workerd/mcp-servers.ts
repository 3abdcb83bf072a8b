// MCP servers for tests: real ones, of the SDK, and odd ones that say what a test tells them to.
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";

export interface Message {
  jsonrpc: string;
  id?: number | string;
  method?: string;
  params?: any;
  result?: any;
  error?: any;
}

export interface Heard {
  at: number;
  method: string;
  headers: IncomingMessage["headers"];
  /** The body, if there was one. */
  message?: Message;
  closedAt?: number;
}

interface Listening {
  url: string;
  heard: Heard[];
  close(): Promise<void>;
}

/** Listens, and writes down everything that comes in before `handle` sees it. */
async function listen(handle: (heard: Heard, request: IncomingMessage, response: ServerResponse) => Promise<void> | void): Promise<Listening> {
  const heard: Heard[] = [];
  const server: Server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const one: Heard = { at: Date.now(), method: request.method ?? "", headers: request.headers };
    if (text !== "") one.message = JSON.parse(text);
    heard.push(one);
    response.on("close", () => (one.closedAt = Date.now()));
    await handle(one, request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    heard,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

export interface SdkServer extends Listening {
  /** Requests of the tool `slow` whose signal was aborted. */
  aborted: (string | number)[];
  /** Ids of the sessions that are open. */
  sessions(): string[];
  /** Forgets every session, as a restart does, when the next message of this method comes in. */
  restartBefore(method: string): void;
}

/** A server of the SDK. `sessions: false` makes a new one for every request, as the SDK says to. */
export async function startSdkServer({ sessions: keeps }: { sessions: boolean }): Promise<SdkServer> {
  const open = new Map<string, StreamableHTTPServerTransport>();
  const aborted: (string | number)[] = [];
  let restart: string | undefined;
  const connect = async (): Promise<StreamableHTTPServerTransport> => {
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: keeps ? () => randomUUID() : undefined,
      onsessioninitialized: (id) => void open.set(id, transport),
      onsessionclosed: (id) => void open.delete(id),
    } as ConstructorParameters<typeof StreamableHTTPServerTransport>[0]);
    // The SDK's own types disagree about optional fields.
    await tools(aborted).connect(transport as Parameters<McpServer["connect"]>[0]);
    return transport;
  };
  const listening = await listen(async (heard, request, response) => {
    if (restart !== undefined && restart === heard.message?.method) {
      restart = undefined;
      open.clear();
    }
    const id = request.headers["mcp-session-id"];
    const known = typeof id === "string" ? open.get(id) : undefined;
    if (keeps && id !== undefined && known === undefined) {
      const error = { code: -32001, message: "Session not found" };
      response.writeHead(404, { "content-type": "application/json" }).end(JSON.stringify({ jsonrpc: "2.0", error, id: null }));
      return;
    }
    const transport = known ?? (await connect());
    await transport.handleRequest(request, response, heard.message);
  });
  return { ...listening, aborted, sessions: () => [...open.keys()], restartBefore: (method) => void (restart = method) };
}

function tools(aborted: (string | number)[]): McpServer {
  const server = new McpServer({ name: "tests", version: "1.0.0" }, { capabilities: { logging: {} } });
  server.registerTool("add", { inputSchema: { a: z.number(), b: z.number() } }, ({ a, b }) => ({
    content: [{ type: "text", text: `${a + b}` }],
  }));
  server.registerTool(
    "measure",
    { inputSchema: { text: z.string() }, outputSchema: { length: z.number(), words: z.array(z.string()) } },
    ({ text }) => {
      const structuredContent = { length: text.length, words: text.split(" ") };
      return { content: [{ type: "text", text: JSON.stringify(structuredContent) }], structuredContent };
    },
  );
  server.registerTool("fail", { inputSchema: { why: z.string() } }, ({ why }) => ({
    content: [{ type: "text", text: `it did not work: ${why}` }],
    isError: true,
  }));
  server.registerTool("slow", { inputSchema: { steps: z.number(), every_ms: z.number() } }, async ({ steps, every_ms }, extra) => {
    extra.signal.addEventListener("abort", () => aborted.push(extra.requestId));
    for (let step = 1; step <= steps && !extra.signal.aborted; step += 1) {
      await new Promise((resolve) => setTimeout(resolve, every_ms));
      const progressToken = extra._meta?.progressToken;
      if (progressToken === undefined) continue;
      const params = { progressToken, progress: step, total: steps, message: `step ${step} done` };
      await extra.sendNotification({ method: "notifications/progress", params });
    }
    return { content: [{ type: "text", text: "all done" }] };
  });
  return server;
}

/** What an odd server does with one message. */
export type Script = (message: Message, tell: Tell, heard: Heard) => Promise<void> | void;

export interface Tell {
  /** One JSON answer, then the end. */
  json(message: unknown, status?: number, headers?: Record<string, string>): void;
  /** Bytes of an event stream; the first of them opens it. */
  stream(text: string): void;
  end(): void;
  response: ServerResponse;
}

/** A server that leaves everything to the test but the beginning, which a script may take over too. */
export async function startOddServer(script: Script, welcome: Record<string, string> = {}): Promise<Listening> {
  return listen(async (heard, _, response) => {
    const tell: Tell = {
      json: (message, status = 200, headers = {}) =>
        void response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(message)),
      stream: (text) => {
        if (!response.headersSent) response.writeHead(200, { "content-type": "text/event-stream" });
        response.write(text);
      },
      end: () => void response.end(),
      response,
    };
    const { message } = heard;
    if (message === undefined) return void response.writeHead(405).end();
    await script(message, tell, heard);
    if (response.headersSent || response.writableEnded) return;
    if (message.method === "initialize") {
      const result = { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "odd", version: "1" } };
      tell.json({ jsonrpc: "2.0", id: message.id, result }, 200, welcome);
    } else if (message.method !== "tools/call") {
      response.writeHead(202).end();
    }
  });
}

export const answer = (id: unknown, text: string): Message => ({
  jsonrpc: "2.0",
  id: id as number,
  result: { content: [{ type: "text", text }] },
});

export const event = (message: unknown): string => `event: message\ndata: ${JSON.stringify(message)}\n\n`;
