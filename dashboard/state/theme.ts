// Light or dark: that of the system, unless one was chosen here.
import { effect, signal } from "@preact/signals";

const STORED_THEME = "curfew-theme";
export type Theme = "system" | "light" | "dark";
const THEMES: Theme[] = ["system", "light", "dark"];

const stored = localStorage.getItem(STORED_THEME);
export const theme = signal<Theme>(THEMES.find((name) => name === stored) ?? "system");

effect(() => {
  document.documentElement.dataset["theme"] = theme.value;
});

export function nextTheme(): void {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length]!;
  localStorage.setItem(STORED_THEME, theme.value);
}
