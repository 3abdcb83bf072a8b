// A form from a JSON Schema, or JSON where there is none. It reports its value and its problems with each change.
import { useLayoutEffect, useMemo, useState } from "preact/hooks";
import { formOf, parsedJson, shows, textsOf, valueOf, type Texts } from "../logic/schema_form.ts";
import { pretty, visible } from "../logic/safe_text.ts";
import { SchemaField } from "./schema_field.tsx";

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
  const form = useMemo(() => formOf(schema), [JSON.stringify(schema)]);
  const [texts, setTexts] = useState<Texts>(() => (form ? textsOf(form) : {}));
  const [json, setJson] = useState<string | undefined>(form ? undefined : "{}");

  const read = (): FormState => {
    if (json !== undefined || !form) {
      const read = parsedJson(json ?? "{}", label);
      return "message" in read ? { value: undefined, problems: [read.message] } : { value: read.value, problems: [] };
    }
    const { value, problems } = valueOf(form, texts);
    return { value, problems: problems.map(({ message }) => message) };
  };
  const state = read();
  const shown = JSON.stringify([state.value, state.problems]);
  // At once: what is sent a moment after the last letter has it.
  useLayoutEffect(() => onChange(state), [shown]);

  // What the form has no place for would be lost.
  const fits = json === undefined || (form !== undefined && state.problems.length === 0 && shows(form, state.value));
  const toggle = (): void => {
    if (json === undefined) setJson(pretty(state.value ?? {}));
    else {
      setTexts(textsOf(form!, { value: state.value }));
      setJson(undefined);
    }
  };
  return (
    <div class="stack">
      {json === undefined && form ? (
        <SchemaField field={{ ...form, title: form.title || label }} place="" texts={texts} onTexts={setTexts} />
      ) : (
        <label class="field">
          <span class="label">{label}</span>
          <textarea class="input mono" rows={6} spellcheck={false} value={json} aria-invalid={state.problems.length > 0} onInput={(event) => setJson(event.currentTarget.value)} />
        </label>
      )}
      {form && (
        <div class="row small">
          <button type="button" class="link-button small" disabled={!fits} onClick={toggle}>
            {json === undefined ? "Write it as JSON" : "Fill in the form"}
          </button>
          {!fits && <span class="muted">The form has no fields for all of it.</span>}
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
