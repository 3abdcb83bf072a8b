import { useLayoutEffect } from "preact/hooks";

/**
 * Gives the focus back to what had it before this part was shown; called before the part takes it. Otherwise readers who use the keyboard
 * would begin at the top of the page.
 */
export function useReturnFocus(): void {
  useLayoutEffect(() => {
    const before = document.activeElement;
    // With the part the focus has gone, too, or has moved on: then it stays there.
    return () =>
      queueMicrotask(() => {
        if (document.activeElement === document.body && before instanceof HTMLElement && before.isConnected) before.focus({ preventScroll: true });
      });
  }, []);
}
