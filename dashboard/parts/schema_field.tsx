// One field of a form, with those inside of it.
import { boundsOf, keysAt, placeIn, placeOfVariant, withItem, withoutItem, type Field, type Texts } from "../logic/schema_form.ts";
import { short, visible } from "../logic/safe_text.ts";

interface SchemaFieldProps {
  field: Field;
  place: string;
  texts: Texts;
  onTexts: (change: (texts: Texts) => Texts) => void;
}

const TITLE_CHARACTERS = 200;

export function SchemaField({ field, place, texts, onTexts }: SchemaFieldProps) {
  const text = texts[place] ?? "";
  const set = (text: string): void => onTexts((before) => ({ ...before, [place]: text }));
  const name = visible(short(field.title, TITLE_CHARACTERS));
  const title = (
    <span class="label">
      {name}
      {field.required && place !== "" && <span class="muted"> (required)</span>}
    </span>
  );
  const bounds = boundsOf(field);
  const hints = field.hint && bounds ? `${field.hint} (${bounds})` : field.hint || bounds;
  const hint = hints !== "" && <span class="hint">{visible(short(hints, 300))}</span>;
  const inner = (field: Field, place: string) => <SchemaField key={place} field={field} place={place} texts={texts} onTexts={onTexts} />;

  switch (field.kind) {
    case "object": {
      const fields = field.fields.map((child) => inner(child, placeIn(place, child.name)));
      // The whole form has no frame, and an item of a list has that of its row.
      if (field.name === "") return <div class="stack">{fields}</div>;
      return (
        <fieldset class="form-group stack">
          <legend>{title}</legend>
          {hint}
          {fields}
        </fieldset>
      );
    }
    case "list":
      return (
        <fieldset class="form-group stack">
          <legend>{title}</legend>
          {hint}
          {keysAt(place, texts).map((key, index) => (
            <div key={key} class="form-item">
              <div class="grow">{inner({ ...field.item!, title: field.item!.title || `${field.title} ${index + 1}` }, placeIn(place, key))}</div>
              <button type="button" class="button small" aria-label={`Remove ${name} ${index + 1}`} onClick={() => onTexts((before) => withoutItem(place, before, key))}>
                Remove
              </button>
            </div>
          ))}
          <div>
            <button type="button" class="button small" aria-label={`Add to ${name}`} onClick={() => onTexts((before) => withItem(place, before, field.item!))}>
              Add
            </button>
          </div>
        </fieldset>
      );
    case "variant": {
      const chosen = field.fields[text === "" ? -1 : Number(text)];
      return (
        <div class="stack">
          <label class="field">
            {title}
            <select class="input" value={text} onChange={(event) => set(event.currentTarget.value)}>
              <option value="">…</option>
              {field.options.map(({ value, title }) => (
                <option key={String(value)} value={String(value)}>
                  {visible(short(title))}
                </option>
              ))}
            </select>
            {hint}
          </label>
          {chosen && inner({ ...chosen, title: chosen.title || (field.options[Number(text)]?.title ?? "") }, placeOfVariant(place, text))}
        </div>
      );
    }
    case "choices": {
      const chosen: unknown[] = text === "" ? [] : JSON.parse(text);
      const keys = new Set(chosen.map((value) => JSON.stringify(value)));
      return (
        <fieldset class="form-group row">
          <legend>{title}</legend>
          {field.options.map(({ value, title }) => {
            const key = JSON.stringify(value);
            const toggle = (): void => {
              const next = field.options.map(({ value }) => value).filter((other) => (JSON.stringify(other) === key ? !keys.has(key) : keys.has(JSON.stringify(other))));
              set(next.length === 0 && !field.required ? "" : JSON.stringify(next));
            };
            return (
              <label key={key} class="row tight">
                <input type="checkbox" checked={keys.has(key)} onChange={toggle} /> {visible(short(title))}
              </label>
            );
          })}
          {hint}
        </fieldset>
      );
    }
    case "boolean":
      return (
        <label class="row">
          <input type="checkbox" checked={text === "true"} onChange={(event) => set(String(event.currentTarget.checked))} />
          {title} {hint}
        </label>
      );
    case "choice":
      return (
        <label class="field">
          {title}
          <select class="input" value={text} onChange={(event) => set(event.currentTarget.value)}>
            <option value="">…</option>
            {field.options.map(({ value, title }) => (
              <option key={JSON.stringify(value)} value={JSON.stringify(value)}>
                {visible(short(title))}
              </option>
            ))}
          </select>
          {hint}
        </label>
      );
    case "long_text":
    case "json":
      return (
        <label class="field">
          {title}
          <textarea class={`input ${field.kind === "json" ? "mono" : ""}`} value={text} placeholder={field.kind === "json" ? "JSON" : ""} onInput={(event) => set(event.currentTarget.value)} />
          {hint}
        </label>
      );
    case "date":
    case "moment":
      return (
        <label class="field">
          {title}
          <input class="input" type={field.kind === "date" ? "date" : "datetime-local"} step={field.kind === "moment" ? 1 : undefined} value={text} onInput={(event) => set(event.currentTarget.value)} />
          {hint}
        </label>
      );
    case "text":
    case "number":
    case "integer":
      return (
        <label class="field">
          {title}
          <input class="input" inputMode={field.kind === "text" ? "text" : "decimal"} value={text} onInput={(event) => set(event.currentTarget.value)} />
          {hint}
        </label>
      );
  }
}
