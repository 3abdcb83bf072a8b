// A form from a JSON Schema, or JSON where there is none. It reports its value and its problems with each change.
import { useEffect, useState } from "preact/hooks";
import { fieldsOf, parsedJson, textOf, valueOf, type Field } from "../logic/schema_form.ts";
import { pretty, short, visible } from "../logic/safe_text.ts";

export interface FormState {
  value: unknown;
  problems: string[];
}

interface SchemaFormProps {
  schema: unknown;
  /** What the JSON is called. */
  label: string;
  onChange: (state: FormState) => void;
}

export function SchemaForm({ schema, label, onChange }: SchemaFormProps) {
  const fields = fieldsOf(schema);
  const [texts, setTexts] = useState<Record<string, string>>({});
  const [json, setJson] = useState<string | undefined>(fields ? undefined : "{}");

  const read = (): FormState => {
    if (json !== undefined || !fields) {
      const read = parsedJson(json ?? "{}", label);
      return "message" in read ? { value: undefined, problems: [read.message] } : { value: read.value, problems: [] };
    }
    const { value, problems } = valueOf(fields, texts);
    return { value, problems: problems.map(({ message }) => message) };
  };
  const state = read();
  const shown = JSON.stringify([state.value, state.problems]);
  useEffect(() => onChange(state), [shown]);

  return (
    <div class="stack">
      {json === undefined && fields ? (
        fields.map((field) => <SchemaField key={field.name} field={field} text={texts[field.name] ?? field.initial} onInput={(text) => setTexts((before) => ({ ...before, [field.name]: text }))} />)
      ) : (
        <label class="field">
          <span class="label">{label}</span>
          <textarea class="input mono" rows={6} spellcheck={false} value={json} aria-invalid={state.problems.length > 0} onInput={(event) => setJson(event.currentTarget.value)} />
        </label>
      )}
      {fields && (
        <div>
          <button type="button" class="link-button small" onClick={() => setJson(json === undefined ? pretty(state.value ?? {}) : undefined)}>
            {json === undefined ? "Write it as JSON" : "Fill in the form"}
          </button>
        </div>
      )}
      {state.problems.length > 0 && (
        <div role="status">
          <ul class="small">
            {state.problems.map((problem) => (
              <li key={problem} class="muted">
                {visible(problem)}
              </li>
            ))}
          </ul>
        </div>
      )}
    </div>
  );
}

function SchemaField({ field, text, onInput }: { field: Field; text: string; onInput: (text: string) => void }) {
  const title = (
    <span class="label">
      {visible(short(field.title, 200))}
      {field.required && <span class="muted"> (required)</span>}
    </span>
  );
  const hint = field.hint && <span class="hint">{visible(short(field.hint, 300))}</span>;
  if (field.kind === "boolean") {
    return (
      <label class="row">
        <input type="checkbox" checked={text === "true"} onChange={(event) => onInput(String(event.currentTarget.checked))} />
        {title} {hint}
      </label>
    );
  }
  return (
    <label class="field">
      {title}
      {field.kind === "choice" ? (
        <select class="input" value={text} onChange={(event) => onInput(event.currentTarget.value)}>
          <option value="">…</option>
          {field.options.map((option) => (
            <option key={textOf("choice", option)} value={textOf("choice", option)}>
              {visible(short(option))}
            </option>
          ))}
        </select>
      ) : field.kind === "long_text" || field.kind === "json" ? (
        <textarea class={`input ${field.kind === "json" ? "mono" : ""}`} value={text} placeholder={field.kind === "json" ? "JSON" : ""} onInput={(event) => onInput(event.currentTarget.value)} />
      ) : (
        <input class="input" inputMode={field.kind === "text" ? "text" : "decimal"} value={text} onInput={(event) => onInput(event.currentTarget.value)} />
      )}
      {hint}
    </label>
  );
}
