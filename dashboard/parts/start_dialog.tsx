// Starts a run from a form that is made of the workflow's input_schema.
import { useEffect, useState } from "preact/hooks";
import { runPath } from "../logic/routes.ts";
import { parseDuration } from "../logic/words.ts";
import { navigate } from "../state/location.ts";
import { usePolled } from "../state/poll.ts";
import { client, messageOf } from "../state/session.ts";
import { Dialog } from "./dialog.tsx";
import { SchemaForm, type FormState } from "./schema_form.tsx";
import { Problem } from "./text.tsx";

export function StartDialog({ workflow, version, onClose }: { workflow: string; version?: number; onClose: () => void }) {
  const [chosen, setChosen] = useState(workflow);
  const [runId, setRunId] = useState("");
  const [limit, setLimit] = useState("");
  const [form, setForm] = useState<FormState>({ value: {}, problems: [] });
  const [problem, setProblem] = useState<string | undefined>(undefined);
  const [isSending, setSending] = useState(false);
  const { data: workflows } = usePolled("start-workflows", 0, (client, signal) => client.list("workflows", { limit: 1_000, signal }));
  const { data: stored } = usePolled(`start-${chosen}-${version}`, 0, async (client, signal) =>
    chosen === "" ? undefined : client.read("workflows", chosen, { version, signal }),
  );
  useEffect(() => {
    const first = workflows.value?.items[0]?.id;
    // Not by `chosen`: it may have been chosen since this was rendered.
    if (first !== undefined) setChosen((before) => before || first);
  }, [workflows.value]);

  const limitMs = limit.trim() === "" ? undefined : parseDuration(limit);
  const isValid = chosen !== "" && form.problems.length === 0 && (limit.trim() === "" || limitMs !== undefined);
  const submit = async () => {
    if (!isValid || isSending) return;
    setSending(true);
    try {
      const run = await client.value.start(chosen, { input: form.value, ...(runId && { run_id: runId }), ...(limitMs !== undefined && { timeout_ms: limitMs }), ...(version !== undefined && { version }) });
      onClose();
      navigate(runPath(run.id));
    } catch (error) {
      const details = (error as { details?: { pointer?: string; message?: string }[] }).details;
      const lines = Array.isArray(details) ? details.map(({ pointer, message }) => `${pointer || "the input"}: ${message}`) : [];
      const message = messageOf(error);
      setProblem([message, ...lines.filter((line) => !message.includes(line))].join("\n"));
    } finally {
      setSending(false);
    }
  };

  return (
    <Dialog
      title="Start a run"
      onClose={onClose}
      onSubmit={submit}
      footer={
        <>
          <button type="button" class="button" onClick={onClose}>
            Back
          </button>
          <button class="button primary" disabled={!isValid || isSending}>
            Start
          </button>
        </>
      }
    >
      <label class="field">
        <span class="label">Workflow</span>
        <select class="input" autofocus value={chosen} onChange={(event) => setChosen(event.currentTarget.value)}>
          {chosen !== "" && !workflows.value?.items.some(({ id }) => id === chosen) && <option value={chosen}>{chosen}</option>}
          {workflows.value?.items.map(({ id }) => (
            <option key={id} value={id}>
              {id}
            </option>
          ))}
        </select>
      </label>
      {workflows.value?.items.length === 0 && <p class="note-box">No workflow is stored yet. Store one with `npx curfew put` or PUT /v1/workflows/&#123;id&#125;.</p>}
      {stored.value && <SchemaForm key={`${stored.value.id}-${stored.value.version}`} schema={(stored.value.document as { input_schema?: unknown }).input_schema} label="Input" onChange={setForm} />}
      <details>
        <summary class="small">Id and limit</summary>
        <div class="stack">
          <label class="field">
            <span class="label">Run id</span>
            <input class="input mono" value={runId} placeholder="a random one" onInput={(event) => setRunId(event.currentTarget.value.trim())} />
          </label>
          <label class="field">
            <span class="label">Limit of the run</span>
            <input class="input" value={limit} placeholder="that of the workflow" aria-invalid={limit.trim() !== "" && limitMs === undefined} onInput={(event) => setLimit(event.currentTarget.value)} />
            <span class="hint">For example 30s, 10m or 1h30m.</span>
          </label>
        </div>
      </details>
      {problem && <Problem message={problem} />}
    </Dialog>
  );
}
