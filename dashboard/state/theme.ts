// Light or dark: that of the system, unless one was chosen here.
import { effect, signal } from "@preact/signals";

const STORED_THEME = "curfew-theme";
export type Theme = "system" | "light" | "dark";
const THEMES: Theme[] = ["system", "light", "dark"];

const stored = localStorage.getItem(STORED_THEME);
export const theme = signal<Theme>(THEMES.find((name) => name === stored) ?? "system");

const systemDark = matchMedia("(prefers-color-scheme: dark)");
/** Changes with each change of colours, also with one of the system: a canvas has to be drawn again. */
export const colours = signal(0);
systemDark.addEventListener("change", () => (colours.value += 1));

effect(() => {
  document.documentElement.dataset["theme"] = theme.value;
});

export function nextTheme(): void {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length]!;
  localStorage.setItem(STORED_THEME, theme.value);
  colours.value += 1;
}
