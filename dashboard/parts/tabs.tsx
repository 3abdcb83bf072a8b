// Tabs with the keys that readers expect: arrows move, Home and End jump.
import { useEffect, useRef } from "preact/hooks";
import { words } from "../logic/words.ts";

interface TabsProps<Name extends string> {
  names: readonly Name[];
  chosen: Name;
  counts?: Partial<Record<Name, number>>;
  onChoose: (name: Name) => void;
}

export function Tabs<Name extends string>({ names, chosen, counts = {}, onChoose }: TabsProps<Name>) {
  const list = useRef<HTMLDivElement>(null);
  // On a narrow screen the chosen one may lie beyond the border. The page itself is not scrolled.
  useEffect(() => {
    const tab = list.current?.querySelector<HTMLElement>('[aria-selected="true"]');
    if (tab && list.current) list.current.scrollLeft = tab.offsetLeft - (list.current.clientWidth - tab.offsetWidth) / 2;
  }, [chosen]);
  const move = (event: KeyboardEvent): void => {
    const index = names.indexOf(chosen);
    const next = { ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: names.length - 1 }[event.key];
    const name = next === undefined ? undefined : names[(next + names.length) % names.length];
    if (name === undefined) return;
    event.preventDefault();
    onChoose(name);
    const list = event.currentTarget as HTMLElement;
    requestAnimationFrame(() => list.querySelector<HTMLElement>('[aria-selected="true"]')?.focus());
  };
  return (
    <div class="tabs" role="tablist" ref={list} onKeyDown={move}>
      {names.map((name) => {
        const count = counts[name];
        return (
          <button key={name} type="button" role="tab" aria-selected={name === chosen} tabIndex={name === chosen ? 0 : -1} onClick={() => onChoose(name)}>
            {words(name).replace(/^./, (first) => first.toUpperCase())}
            {count !== undefined && <span class="muted small number">{count.toLocaleString("en")}</span>}
          </button>
        );
      })}
    </div>
  );
}
