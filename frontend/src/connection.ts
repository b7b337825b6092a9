/** Whether the server answers. What a page shows is as old as the last answer, and it says so once none comes. */
import { useEffect, useState } from "preact/hooks";

/** A server that says nothing for so long is asked; it sends something over a stream at least as often. */
const SILENT_MS = 20_000;
const LOOK_MS = 5_000;
/** While it does not answer it is asked so often. */
const AGAIN_MS = 2_000;
const PATIENCE_MS = 10_000;

export interface Connection {
  /** When it answered last, in ms since 1970; null while it answers. */
  lost: number | null;
  /** How many times it has come back. */
  returned: number;
}

let state: Connection = { lost: null, returned: 0 };
let last = Date.now();
let asking = false;
const listeners = new Set<(state: Connection) => void>();

function become(next: Connection): void {
  state = next;
  listeners.forEach((listener) => listener(state));
}

/** It has answered, or told something. */
export function answered(): void {
  last = Date.now();
  if (state.lost !== null) become({ lost: null, returned: state.returned + 1 });
}

/** It may be gone: ask, and go on asking until it is back. */
export async function doubt(): Promise<void> {
  if (asking) return;
  asking = true;
  try {
    await fetch("/assets/icon.svg", { cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS) });
    answered();
  } catch {
    if (state.lost === null) become({ ...state, lost: last });
    setTimeout(doubt, AGAIN_MS);
  } finally {
    asking = false;
  }
}

/** Asks from time to time whether the server is there, while something on the page is live. */
export function useWatch(live: boolean): void {
  useEffect(() => {
    if (!live) return;
    const timer = setInterval(() => {
      if (!document.hidden && state.lost === null && Date.now() - last > SILENT_MS) void doubt();
    }, LOOK_MS);
    return () => clearInterval(timer);
  }, [live]);
}

export function useConnection(): Connection {
  const [found, set] = useState(state);
  useEffect(() => {
    set(state);
    listeners.add(set);
    return () => void listeners.delete(set);
  }, []);
  return found;
}
