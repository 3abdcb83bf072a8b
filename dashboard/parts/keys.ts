/** Whether a key is for the page: not for a field or a dialog, no shortcut of the browser, and not one that is held down. */
export const takesKeys = (event: KeyboardEvent): boolean =>
  !event.repeat && !event.ctrlKey && !event.metaKey && !event.altKey && !(event.target as Element).closest?.("input, textarea, select, dialog");
