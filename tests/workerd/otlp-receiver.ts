// A receiver of OTLP/HTTP JSON on loopback. It refuses what is not the JSON of an ExportTraceServiceRequest, and can be made to fail.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export interface Span {
  traceId: string;
  spanId: string;
  parentSpanId: string | undefined;
  name: string;
  kind: "internal" | "client";
  start: bigint;
  end: bigint;
  attributes: Record<string, string | number>;
  events: { name: string; at: bigint; attributes: Record<string, string | number> }[];
  status: "unset" | "ok" | "error";
  message: string | undefined;
  links: string[];
}

export interface ExportRequest {
  path: string;
  headers: Record<string, string | string[] | undefined>;
  body: string;
  spans: Span[];
  resource: Record<string, string | number>;
}

export interface OtlpReceiver {
  url: string;
  requests: ExportRequest[];
  /** Answers the next requests with this status, or never; `undefined`: accepts them. */
  failWith(status: number | "hang" | undefined, headers?: Record<string, string>): void;
  /** Requests that were refused or not answered. */
  failed: number;
  /** The accepted spans of a run, a repeated one once. */
  spansOf(runId: string): Span[];
  close(): Promise<void>;
}

export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  let failure: { status: number | "hang"; headers: Record<string, string> } | undefined;
  const receiver: OtlpReceiver = {
    url: "",
    requests: [],
    failed: 0,
    failWith: (status, headers = {}) => {
      failure = status === undefined ? undefined : { status, headers };
    },
    spansOf: (runId) => {
      const spans = receiver.requests.flatMap((request) => request.spans);
      const ofRun = spans.filter((span) => span.attributes["curfew.run.id"] === runId);
      return [...new Map(ofRun.map((span) => [span.spanId, span])).values()];
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    if (failure) {
      receiver.failed += 1;
      if (failure.status !== "hang") response.writeHead(failure.status, failure.headers).end();
      return;
    }
    try {
      assert.equal(request.method, "POST");
      assert.equal(request.headers["content-type"], "application/json");
      const body = Buffer.concat(chunks).toString("utf8");
      receiver.requests.push({ path: request.url ?? "", headers: request.headers, body, ...decode(JSON.parse(body)) });
      response.writeHead(200, { "content-type": "application/json" }).end("{}");
    } catch (error) {
      receiver.failed += 1;
      response.writeHead(400).end(String(error));
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  receiver.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return receiver;
}

function decode(body: any): { spans: Span[]; resource: Record<string, string | number> } {
  onlyFields(body, ["resourceSpans"]);
  assert.equal(body.resourceSpans.length, 1);
  const [{ resource, scopeSpans }] = body.resourceSpans;
  assert.equal(scopeSpans.length, 1);
  onlyFields(scopeSpans[0], ["scope", "spans"]);
  assert.equal(scopeSpans[0].scope.name, "curfew");
  return { spans: scopeSpans[0].spans.map(decodeSpan), resource: attributesOf(resource.attributes) };
}

const SPAN_FIELDS = ["traceId", "spanId", "parentSpanId", "flags", "name", "kind", "startTimeUnixNano", "endTimeUnixNano", "attributes", "events", "droppedEventsCount", "links", "status"];

function decodeSpan(span: any): Span {
  onlyFields(span, SPAN_FIELDS);
  assert.match(span.traceId, /^[0-9a-f]{32}$/);
  assert.match(span.spanId, /^[0-9a-f]{16}$/);
  if (span.parentSpanId !== undefined) assert.match(span.parentSpanId, /^[0-9a-f]{16}$/);
  const kind = ({ 1: "internal", 3: "client" } as const)[span.kind as 1 | 3];
  assert.ok(kind, `kind ${span.kind}`);
  const status = (["unset", "ok", "error"] as const)[span.status?.code ?? 0];
  assert.ok(status, `status ${JSON.stringify(span.status)}`);
  return {
    traceId: span.traceId,
    spanId: span.spanId,
    parentSpanId: span.parentSpanId,
    name: span.name,
    kind,
    start: nanos(span.startTimeUnixNano),
    end: nanos(span.endTimeUnixNano),
    attributes: attributesOf(span.attributes),
    events: (span.events ?? []).map((event: any) => {
      onlyFields(event, ["timeUnixNano", "name", "attributes"]);
      return { name: event.name, at: nanos(event.timeUnixNano), attributes: attributesOf(event.attributes) };
    }),
    status,
    message: span.status?.message,
    links: (span.links ?? []).map((link: any) => link.spanId),
  };
}

/** 64-bit numbers are strings in the JSON of protobuf. */
function nanos(value: unknown): bigint {
  assert.match(value as string, /^[0-9]{19}$/, "nanoseconds of this century, as a string");
  return BigInt(value as string);
}

function attributesOf(list: any[]): Record<string, string | number> {
  const pairs = list.map(({ key, value, ...rest }: any) => {
    assert.deepEqual(rest, {});
    const [[kind, content], ...more] = Object.entries(value) as [[string, string]];
    assert.equal(more.length, 0);
    assert.ok(kind === "stringValue" || kind === "intValue", kind);
    assert.equal(typeof content, "string");
    return [key, kind === "intValue" ? Number(content) : content];
  });
  const attributes = Object.fromEntries(pairs);
  assert.equal(Object.keys(attributes).length, list.length, "every attribute once");
  return attributes;
}

function onlyFields(value: object, known: string[]): void {
  const unknown = Object.keys(value).filter((field) => !known.includes(field));
  assert.deepEqual(unknown, [], "fields that the message does not have");
}
