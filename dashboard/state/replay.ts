// Whether the server replays runs. One of an earlier build has no such route: the view is not offered any more after it said so.
import { signal } from "@preact/signals";

export const canReplay = signal(true);
