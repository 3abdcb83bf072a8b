// Lists are read again while the page is visible, and at once when it becomes visible or the server answers again.
import { effect, signal, type Signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { client, connections, messageOf, signInReason } from "./session.ts";
import type { Client } from "../../client/index.ts";

export interface Polled<T> {
  data: Signal<T | undefined>;
  error: Signal<string | undefined>;
  refresh: () => void;
}

/** `key` names what is read: another key begins anew. */
export function usePolled<T>(key: string, everyMs: number, read: (client: Client, signal: AbortSignal) => Promise<T>): Polled<T> {
  const polled = useMemo(() => {
    const data = signal<T | undefined>(undefined);
    const error = signal<string | undefined>(undefined);
    const trigger = signal(0);
    return { data, error, trigger, refresh: () => void (trigger.value += 1) };
  }, [key]);

  useEffect(() => {
    const stop = effect(() => {
      polled.trigger.value;
      connections.value;
      const current = client.value;
      if (signInReason.value !== undefined) return;
      const controller = new AbortController();
      let timer: ReturnType<typeof setTimeout> | undefined;
      const pass = async (): Promise<void> => {
        clearTimeout(timer);
        if (!document.hidden) {
          try {
            polled.data.value = await read(current, controller.signal);
            polled.error.value = undefined;
          } catch (error) {
            if (controller.signal.aborted) return;
            polled.error.value = messageOf(error);
          }
        }
        if (!controller.signal.aborted && everyMs > 0) timer = setTimeout(pass, everyMs);
      };
      const shown = () => {
        if (!document.hidden) void pass();
      };
      document.addEventListener("visibilitychange", shown);
      void pass();
      return () => {
        controller.abort();
        clearTimeout(timer);
        document.removeEventListener("visibilitychange", shown);
      };
    });
    return stop;
  }, [polled]);
  return polled;
}
