// MCP servers for tests: real ones of the SDK, and scripted ones.
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

export interface RecordedMessage {
  at: number;
  method: string;
  headers: IncomingMessage["headers"];
  /** The parsed body, if there was one. */
  message?: Message;
  closedAt?: number;
}

interface RecordingServer {
  url: string;
  recorded: RecordedMessage[];
  close(): Promise<void>;
}

/** Records every request before `handle` gets it. */
async function listen(handle: (recorded: RecordedMessage, request: IncomingMessage, response: ServerResponse) => Promise<void> | void): Promise<RecordingServer> {
  const recorded: RecordedMessage[] = [];
  const server: Server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const one: RecordedMessage = { at: Date.now(), method: request.method ?? "", headers: request.headers };
    if (text !== "") one.message = JSON.parse(text);
    recorded.push(one);
    response.on("close", () => (one.closedAt = Date.now()));
    await handle(one, request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    recorded,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

export interface SdkServer extends RecordingServer {
  /** Requests of the tool `slow` whose signal was aborted. */
  aborted: (string | number)[];
  /** Ids of the open sessions. */
  sessions(): string[];
  /** Deletes all sessions, as a restart does, when the next message with this method arrives. */
  restartBefore(method: string): void;
}

/** A server of the SDK. `sessions: false` creates a new transport for every request, as the SDK recommends. */
export async function startSdkServer({ sessions: keepsSessions }: { sessions: boolean }): Promise<SdkServer> {
  const open = new Map<string, StreamableHTTPServerTransport>();
  const aborted: (string | number)[] = [];
  let restart: string | undefined;
  const connect = async (): Promise<StreamableHTTPServerTransport> => {
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: keepsSessions ? () => randomUUID() : undefined,
      onsessioninitialized: (id) => void open.set(id, transport),
      onsessionclosed: (id) => void open.delete(id),
    } as ConstructorParameters<typeof StreamableHTTPServerTransport>[0]);
    // The types of the SDK disagree about optional fields.
    await tools(aborted).connect(transport as Parameters<McpServer["connect"]>[0]);
    return transport;
  };
  const listening = await listen(async (recorded, request, response) => {
    if (restart !== undefined && restart === recorded.message?.method) {
      restart = undefined;
      open.clear();
    }
    const id = request.headers["mcp-session-id"];
    const known = typeof id === "string" ? open.get(id) : undefined;
    if (keepsSessions && id !== undefined && known === undefined) {
      const error = { code: -32001, message: "Session not found" };
      response.writeHead(404, { "content-type": "application/json" }).end(JSON.stringify({ jsonrpc: "2.0", error, id: null }));
      return;
    }
    const transport = known ?? (await connect());
    await transport.handleRequest(request, response, recorded.message);
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

/** How a scripted server handles one message. */
export type Script = (message: Message, writer: ResponseWriter, recorded: RecordedMessage) => Promise<void> | void;

export interface ResponseWriter {
  /** Sends one JSON response and ends. */
  json(message: unknown, status?: number, headers?: Record<string, string>): void;
  /** Sends bytes of an event stream; the first call opens it. */
  stream(text: string): void;
  end(): void;
  response: ServerResponse;
}

/** A server that is controlled by the test. It handles `initialize` itself unless the script does. */
export async function startScriptedServer(script: Script, initializeHeaders: Record<string, string> = {}): Promise<RecordingServer> {
  return listen(async (recorded, _, response) => {
    const writer: ResponseWriter = {
      json: (message, status = 200, headers = {}) =>
        void response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(message)),
      stream: (text) => {
        if (!response.headersSent) response.writeHead(200, { "content-type": "text/event-stream" });
        response.write(text);
      },
      end: () => void response.end(),
      response,
    };
    const { message } = recorded;
    if (message === undefined) return void response.writeHead(405).end();
    await script(message, writer, recorded);
    if (response.headersSent || response.writableEnded) return;
    if (message.method === "initialize") {
      const result = { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "scripted", version: "1" } };
      writer.json({ jsonrpc: "2.0", id: message.id, result }, 200, initializeHeaders);
    } else if (message.method !== "tools/call") {
      response.writeHead(202).end();
    }
  });
}

export const toolResult = (id: unknown, text: string): Message => ({
  jsonrpc: "2.0",
  id: id as number,
  result: { content: [{ type: "text", text }] },
});

export const event = (message: unknown): string => `event: message\ndata: ${JSON.stringify(message)}\n\n`;
