/** What is loaded, and what is live: hooks that keep an answer fresh without blinking. */
import { useCallback, useEffect, useLayoutEffect, useState } from "preact/hooks";
import { get, Problem } from "./api";
import { answered, doubt, useConnection, useWatch } from "./connection";
import type { Job } from "./generated/api";

export interface Loaded<T> {
  value: T | null;
  problem: Problem | null;
  again: () => void;
}

/** Charts and drawings are made anew for a new value; one that says the same leaves them. */
const same = (one: unknown, other: unknown) => one !== null && JSON.stringify(one) === JSON.stringify(other);

/** The answer at a path; asked again when `stamp` changes, every `every` ms while the page is seen, and when a server that was
gone is back. Until then what it answered last stands, and the page says of when that is. */
export function useLoaded<T>(path: string | null, { stamp = "", every = 0 } = {}): Loaded<T> {
  const [value, setValue] = useState<T | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [asked, ask] = useState(0);
  const again = useCallback(() => ask((n) => n + 1), []);
  const resource = path?.split("?")[0];
  const { returned } = useConnection();
  useWatch(every > 0);
  useLayoutEffect(() => setValue(null), [resource]); // another page of the same list replaces the last one when it is there
  useLayoutEffect(() => {
    if (path === null) return; // asked at once: other effects wait for a frame
    const abort = new AbortController();
    get<T>(path, abort.signal).then(
      (answer) => {
        setValue((held) => (same(held, answer) ? held : answer));
        setProblem(null);
      },
      (error: unknown) => {
        if (!abort.signal.aborted) setProblem(error instanceof Problem ? error : new Problem(0, String(error)));
      },
    );
    return () => abort.abort();
  }, [path, stamp, asked, returned]);
  useEffect(() => {
    if (!every) return;
    const timer = setInterval(() => document.hidden || again(), every);
    return () => clearInterval(timer);
  }, [every, again]);
  return { value, problem: value !== null && problem?.status === 0 ? null : problem, again };
}

/** A running job as its sidecar tells it; null before, and `ended` when it runs no more. */
export function useJob(pid: number | null): { job: Job | null; ended: boolean } {
  const [job, setJob] = useState<Job | null>(null);
  const [ended, setEnded] = useState(false);
  const { returned } = useConnection();
  useWatch(pid !== null && !ended);
  useEffect(() => {
    setJob(null);
    setEnded(false);
  }, [pid]);
  useEffect(() => {
    if (pid === null) return;
    let source: EventSource | null = null;
    const close = () => {
      source?.close();
      source = null;
    };
    const open = () => {
      close();
      if (document.hidden) return; // a browser has six connections to a server: hidden pages leave theirs to others
      source = new EventSource(`/api/v1/jobs/${pid}/events`);
      source.addEventListener("job", (event) => {
        answered();
        setJob(JSON.parse(event.data as string) as Job);
      });
      source.addEventListener("error", () => void doubt());
      source.addEventListener("ended", () => {
        close();
        setEnded(true);
      });
    };
    open();
    document.addEventListener("visibilitychange", open);
    return () => {
      document.removeEventListener("visibilitychange", open);
      close();
    };
  }, [pid, returned]);
  return { job, ended };
}
