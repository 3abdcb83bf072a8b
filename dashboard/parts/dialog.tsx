// A modal dialog with a form. The browser keeps the focus inside, and Escape closes it.
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { Icon } from "./icon.tsx";
import { useReturnFocus } from "./return_focus.ts";

interface DialogProps {
  title: string;
  onClose: () => void;
  /** The form was sent. */
  onSubmit?: () => void;
  children: ComponentChildren;
  footer?: ComponentChildren;
}

export function Dialog({ title, onClose, onSubmit, children, footer }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  useReturnFocus();
  // At once: what is typed next is for the dialog.
  useLayoutEffect(() => {
    element.current?.showModal();
  }, []);
  return (
    <dialog ref={element} aria-label={title} onClose={onClose}>
      <form
        method="dialog"
        onSubmit={(event) => {
          event.preventDefault();
          onSubmit?.();
        }}
      >
        <header>
          <h2>{title}</h2>
          <button type="button" class="button quiet small" aria-label="Close" onClick={onClose}>
            <Icon name="close" />
          </button>
        </header>
        <div class="body">{children}</div>
        <footer>{footer}</footer>
      </form>
    </dialog>
  );
}
