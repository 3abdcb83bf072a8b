// The controls of a run. Those that its status or the role of the caller does not allow are not shown.
import { useState } from "preact/hooks";
import type { Run } from "../../client/index.ts";
import { isEnded } from "../logic/statuses.ts";
import { attempt } from "../state/notices.ts";
import type { RunStore } from "../state/run_store.ts";
import { client, may } from "../state/session.ts";
import { Dialog } from "./dialog.tsx";
import { parsedJson } from "../logic/schema_form.ts";
import { useNewerVersion } from "./ways_back.tsx";

type Asked = "cancel" | "restart" | "signal";

export function RunControls({ store, onExtend }: { store: RunStore; onExtend: (() => void) | undefined }) {
  const run = store.run.value!;
  const [asked, setAsked] = useState<Asked | undefined>(undefined);
  const ended = isEnded(run.status);
  // From then on the API refuses every control but a cancel, which changes nothing.
  const isOpen = !ended && run.status !== "compensating";
  const act = async (action: () => Promise<Run>, done: string) => {
    const next = await attempt(action, done);
    if (next) store.changed(next);
  };
  const isPausedByPerson = run.paused_by?.includes("person") ?? false;
  return (
    <div class="row tight" role="group" aria-label="Controls">
      {may("operate") && isOpen && (
        <>
          {onExtend && (
            <button type="button" class="button" onClick={onExtend}>
              Extend …
            </button>
          )}
          {isPausedByPerson ? (
            <button type="button" class="button primary" onClick={() => act(() => client.value.resume(run.id), "The clocks run again.")}>
              Resume
            </button>
          ) : (
            run.status !== "paused" && (
              <button type="button" class="button" onClick={() => act(() => client.value.pause(run.id), "All clocks of the run are stopped.")}>
                Pause
              </button>
            )
          )}
        </>
      )}
      {may("start") && isOpen && hasSignals(store.document.value) && (
        <button type="button" class="button" onClick={() => setAsked("signal")}>
          Signal …
        </button>
      )}
      {may("operate") && ended && (
        <button type="button" class="button" onClick={() => setAsked("restart")}>
          Restart …
        </button>
      )}
      {may("operate") && isOpen && (
        <button type="button" class="button danger" onClick={() => setAsked("cancel")}>
          Cancel …
        </button>
      )}
      {asked === "cancel" && <CancelDialog onClose={() => setAsked(undefined)} onSend={(reason) => act(() => client.value.cancel(run.id, reason ? { reason } : {}), "The run is cancelled.")} />}
      {asked === "restart" && <RestartDialog store={store} onClose={() => setAsked(undefined)} onSend={(body) => act(() => client.value.restart(run.id, body), "The run begins again.")} />}
      {asked === "signal" && <SignalDialog store={store} onClose={() => setAsked(undefined)} />}
    </div>
  );
}

interface Node {
  id?: unknown;
  wait?: { signal?: unknown };
}
const nodesOf = (document: unknown): Node[] => {
  const nodes = (document as { nodes?: unknown } | undefined)?.nodes;
  return Array.isArray(nodes) ? nodes : [];
};
const signalsOf = (document: unknown): string[] => [...new Set(nodesOf(document).flatMap(({ wait }) => (typeof wait?.signal === "string" ? [wait.signal] : [])))];
const hasSignals = (document: unknown): boolean => signalsOf(document).length > 0;

function CancelDialog({ onClose, onSend }: { onClose: () => void; onSend: (reason: string) => void }) {
  const [reason, setReason] = useState("");
  return (
    <Dialog
      title="Cancel the run"
      onClose={onClose}
      onSubmit={() => (onClose(), onSend(reason.trim()))}
      footer={
        <>
          <button type="button" class="button" onClick={onClose}>
            Back
          </button>
          <button class="button danger">Cancel the run</button>
        </>
      }
    >
      <p>Calls in flight are aborted and sub-workflows are cancelled. Completed work with a compensation is undone. A cancelled run cannot be retried; it can be restarted.</p>
      <label class="field">
        <span class="label">Reason</span>
        <input class="input" value={reason} autofocus maxLength={4_000} onInput={(event) => setReason(event.currentTarget.value)} />
      </label>
    </Dialog>
  );
}

function RestartDialog({ store, onClose, onSend }: { store: RunStore; onClose: () => void; onSend: (body: { from_node_id?: string; version?: number }) => void }) {
  const [node, setNode] = useState("");
  const [isNewer, setNewer] = useState(false);
  const newer = useNewerVersion(store, true);
  // End handlers are no nodes, and what undid a node is no visit of it.
  const visited = [...new Set(store.tokens.value.filter(({ on_end, compensation }) => !on_end && !compensation).map(({ node_id }) => node_id))];
  return (
    <Dialog
      title="Restart the run"
      onClose={onClose}
      onSubmit={() => (onClose(), onSend({ ...(node !== "" && { from_node_id: node }), ...(isNewer && newer !== undefined && { version: newer }) }))}
      footer={
        <>
          <button type="button" class="button" onClick={onClose}>
            Back
          </button>
          <button class="button primary">Restart</button>
        </>
      }
    >
      <label class="field">
        <span class="label">From</span>
        <select class="input" autofocus value={node} onChange={(event) => setNode(event.currentTarget.value)}>
          <option value="">the start</option>
          {visited.map((id) => (
            <option key={id} value={id}>
              {id}, with the state as it was then
            </option>
          ))}
        </select>
      </label>
      {newer !== undefined && (
        <label class="row">
          <input type="checkbox" checked={isNewer} onChange={(event) => setNewer(event.currentTarget.checked)} />
          On version {newer}, the newest, instead of {store.run.value!.version}
        </label>
      )}
    </Dialog>
  );
}

function SignalDialog({ store, onClose }: { store: RunStore; onClose: () => void }) {
  const names = signalsOf(store.document.value);
  const [name, setName] = useState(names[0] ?? "");
  const [payload, setPayload] = useState("{}");
  const read = parsedJson(payload, "The payload");
  const submit = async () => {
    if ("message" in read) return;
    onClose();
    const next = await attempt(() => client.value.signal(store.id, name, read.value), `The signal ${name} was sent.`);
    if (next) store.changed();
  };
  return (
    <Dialog
      title="Send a signal"
      onClose={onClose}
      onSubmit={submit}
      footer={
        <>
          <button type="button" class="button" onClick={onClose}>
            Back
          </button>
          <button class="button primary" disabled={"message" in read}>
            Send
          </button>
        </>
      }
    >
      <label class="field">
        <span class="label">Signal</span>
        <select class="input" autofocus value={name} onChange={(event) => setName(event.currentTarget.value)}>
          {names.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <label class="field">
        <span class="label">Payload</span>
        <textarea class="input mono" spellcheck={false} value={payload} onInput={(event) => setPayload(event.currentTarget.value)} />
        {"message" in read && <span class="problem">{read.message}</span>}
      </label>
    </Dialog>
  );
}
