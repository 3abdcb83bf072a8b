// The views of a run below its timeline. The chosen one is in the address.
import type { FunctionComponent } from "preact";
import { useState } from "preact/hooks";
import type { RunEvent } from "../../client/index.ts";
import { factsOf } from "../logic/event_facts.ts";
import { runPath, tokenPath } from "../logic/routes.ts";
import { visible } from "../logic/safe_text.ts";
import { isEnded } from "../logic/statuses.ts";
import { duration, moment, words, zone } from "../logic/words.ts";
import { Guard } from "./guard.tsx";
import { Later } from "./later.tsx";
import { query, setQuery } from "../state/location.ts";
import { usePolled } from "../state/poll.ts";
import { canReplay } from "../state/replay.ts";
import type { RunStore } from "../state/run_store.ts";
import { Tabs } from "./tabs.tsx";
import { Json, Problem, Status, Text, When } from "./text.tsx";
import { TimeoutRecords } from "./timeout_records.tsx";

const VIEWS = ["graph", "events", "tokens", "context", "children", "timeouts", "what_if", "price", "notifications", "raw"] as const;
type View = (typeof VIEWS)[number];

export function RunTabs({ store }: { store: RunStore }) {
  const wanted = query.value.get("view");
  const offered = VIEWS.filter((name) => name !== "what_if" || canReplay.value);
  const view: View = offered.find((name) => name === wanted) ?? "graph";
  const Content = CONTENTS[view];
  const counts: Partial<Record<View, number>> = { events: store.events.value.length, tokens: store.tokens.value.length };
  return (
    <section class="card" aria-label="Details">
      <Tabs names={offered} chosen={view} counts={counts} onChoose={(name) => setQuery({ view: name === "graph" ? undefined : name, limits: undefined, durations: undefined })} />
      <div role="tabpanel" aria-label={view}>
        <Guard key={view} what="This view">
          <Content store={store} />
        </Guard>
      </div>
    </section>
  );
}

type ViewProps = { store: RunStore };

const CONTENTS: Record<View, FunctionComponent<ViewProps>> = {
  graph: ({ store }) => <Later key={`graph-${store.id}`} load={() => import("./run_graph.tsx").then(({ RunGraph }) => () => <RunGraph store={store} />)} />,
  events: EventsView,
  tokens: TokensView,
  context: ContextView,
  children: ChildrenView,
  timeouts: TimeoutRecords,
  what_if: ({ store }) => <Later key={`what-if-${store.id}`} load={() => import("./what_if.tsx").then(({ WhatIfView }) => () => <WhatIfView store={store} />)} />,
  price: ({ store }) => <Later key={`price-${store.id}`} load={() => import("./run_price.tsx").then(({ RunPrice }) => () => <RunPrice store={store} />)} />,
  notifications: NotificationsView,
  raw: RawView,
};

const SHOWN_EVENTS = 200;

function EventsView({ store }: ViewProps) {
  const [text, setText] = useState("");
  const [shown, setShown] = useState(SHOWN_EVENTS);
  const wanted = text.trim().toLowerCase();
  const all = store.events.value;
  const matching = wanted === "" ? all : all.filter((event) => JSON.stringify(event).toLowerCase().includes(wanted));
  // The newest first: that is what a watcher looks for.
  const visibleEvents = matching.slice(-shown).reverse();
  return (
    <div>
      <div class="filters">
        <label class="field wide">
          <span class="label">Find</span>
          <input class="input" value={text} placeholder="a kind, a node, a token" onInput={(event) => setText(event.currentTarget.value)} />
        </label>
        <span class="muted small">
          {matching.length.toLocaleString("en")} of {all.length.toLocaleString("en")}, newest first
        </span>
      </div>
      <ol class="events">
        {visibleEvents.map((event) => (
          <EventLine key={event.seq} event={event} run={store.id} />
        ))}
      </ol>
      {matching.length > shown && (
        <div class="body">
          <button type="button" class="button" onClick={() => setShown(shown + 1_000)}>
            Show more
          </button>
        </div>
      )}
    </div>
  );
}

function EventLine({ event, run }: { event: RunEvent; run: string }) {
  return (
    <li class="event" data-kind={event.kind}>
      <span class="seq">{event.seq}</span>
      <time class="number muted" title={`${moment(event.at)} ${zone(event.at)}`}>
        {moment(event.at, Date.now())}
      </time>
      <span class="what">
        <strong>{words(String(event.kind))}</strong>{" "}
        {event.node_id && <Text value={event.node_id} max={80} />}{" "}
        {event.token_id && (
          <a href={tokenPath(run, event.token_id) + location.search} class="mono">
            {event.token_id}
          </a>
        )}{" "}
        {factsOf(event).map(([name, value]) => (
          <span key={name} class="fact small">
            <span class="muted">{visible(name)}</span> <Text value={value} />
          </span>
        ))}
      </span>
    </li>
  );
}

function TokensView({ store }: ViewProps) {
  const [shown, setShown] = useState(100);
  const tokens = store.tokens.value;
  return (
    <div class="table-scroll">
      <table>
        <thead>
          <tr>
            <th>Token</th>
            <th>Node</th>
            <th>Status</th>
            <th class="right">Attempt</th>
            <th>Branch</th>
            <th>Time</th>
            <th>Limit</th>
            <th>Reason</th>
          </tr>
        </thead>
        <tbody>
          {tokens.slice(0, shown).map((token) => (
            <tr key={token.id}>
              <td>
                <a class="mono" href={tokenPath(store.id, token.id) + location.search}>
                  {token.id}
                </a>
              </td>
              <td>
                <Text value={token.node_id} max={80} /> {token.compensation && <span class="muted small">undo</span>}
              </td>
              <td>
                <Status status={token.status} />
              </td>
              <td class="right number">{token.epoch}</td>
              <td class="number nowrap">{token.branch ? `#${token.branch.index} of ${token.branch.total}` : ""}</td>
              <td class="number nowrap">{token.ended_at === null ? <When at={token.created_at} /> : duration(token.ended_at - token.created_at)}</td>
              <td class="number nowrap">{token.timeout_ms === null ? "" : duration(token.timeout_ms)}</td>
              <td>
                {token.reason && <Text value={token.reason} max={200} />} {token.error && <Text value={token.error.message} max={200} />}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {tokens.length > shown && (
        <div class="body">
          <button type="button" class="button" onClick={() => setShown(shown + 500)}>
            Show more of {tokens.length.toLocaleString("en")}
          </button>
        </div>
      )}
    </div>
  );
}

function ContextView({ store }: ViewProps) {
  const run = store.run.value!;
  const parts: [string, unknown][] = [["Input", run.input], ["State", run.context.state], ["Output", isEnded(run.status) ? run.output : run.context.output]];
  return (
    <div class="body stack">
      {parts.map(([title, value]) => (
        <div key={title} class="stack">
          <h3>{title}</h3>
          <Json value={value} label={title} />
        </div>
      ))}
    </div>
  );
}

function ChildrenView({ store }: ViewProps) {
  const { data, error } = usePolled(`children-${store.id}`, 3_000, (client, signal) => client.runs({ parent: store.id, limit: 200, signal }));
  if (error.value) return <Problem message={error.value} />;
  const children = data.value?.items ?? [];
  if (children.length === 0) return <div class="empty">{data.value ? "This run has called no other workflow." : "Loading …"}</div>;
  return (
    <div class="table-scroll">
      <table>
        <thead>
          <tr>
            <th>Run</th>
            <th>Workflow</th>
            <th>Status</th>
            <th>Called by</th>
            <th>Started</th>
          </tr>
        </thead>
        <tbody>
          {children.map((child) => (
            <tr key={child.id}>
              <td>
                <a class="mono" href={runPath(child.id)}>
                  <Text value={child.id} max={140} />
                </a>
              </td>
              <td>
                <Text value={child.workflow_id} />
              </td>
              <td>
                <Status status={child.status} />
              </td>
              <td>
                {child.parent && (
                  <a class="mono" href={tokenPath(store.id, child.parent.token_id)}>
                    {child.parent.token_id}
                  </a>
                )}
              </td>
              <td>
                <When at={child.started_at} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {data.value?.next_cursor && <p class="body muted">Only the first {children.length} are shown; the list of runs has all of them.</p>}
    </div>
  );
}

function NotificationsView({ store }: ViewProps) {
  const { data, error } = usePolled(`notifications-${store.id}`, 3_000, (client, signal) => client.notifications(store.id, { limit: 200, signal }));
  if (error.value) return <Problem message={error.value} />;
  const items = data.value?.items ?? [];
  if (items.length === 0) return <div class="empty">{data.value ? "Nothing was to be sent about this run." : "Loading …"}</div>;
  return (
    <div class="table-scroll">
      <table>
        <thead>
          <tr>
            <th>Event</th>
            <th>Target</th>
            <th>Status</th>
            <th class="right">Attempts</th>
            <th>Last error</th>
          </tr>
        </thead>
        <tbody>
          {items.map((item) => (
            <tr key={item.id}>
              <td>
                {words(item.kind)} <span class="muted">{item.seq}</span>
              </td>
              <td>
                <Text value={item.target} max={120} />
              </td>
              <td>
                <Status status={item.status} />
              </td>
              <td class="right number">{item.attempts}</td>
              <td>{item.last_error && <Text value={item.last_error} max={200} />}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function RawView({ store }: ViewProps) {
  return (
    <div class="body">
      <Json value={store.run.value} label="The run as the API shows it" />
    </div>
  );
}
