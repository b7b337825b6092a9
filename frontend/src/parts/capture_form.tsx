/** Asks a running job for a capture, where its result will stand, and shows what becomes of it. */
import { useState } from "preact/hooks";
import { post, type Problem } from "../api";
import * as format from "../format";
import type { Asked, Job, LiveCapture } from "../generated/api";
import { change } from "../router";

export type CaptureKind = "ops" | "native" | "python" | "memory";

export const NAMES: Record<CaptureKind, string> = {
  ops: "Ops",
  native: "Native stacks",
  python: "Python stacks",
  memory: "Memory by stack",
};
const KINDS: Record<CaptureKind, string> = { ...NAMES, ops: "Ops of some steps" };
/** Event of the flame graph that shows a kind's result. */
const EVENTS: Record<CaptureKind, string> = { ops: "", native: "cpu", python: "python-capture", memory: "memory-growth" };
const MAX_STEPS = 1000;
const MAX_SECONDS = 60;

interface Request {
  id: string;
  kind: CaptureKind;
}

/** Where the result of a kind stands. */
export function resultOf(session: string, kind: CaptureKind): string {
  return kind === "ops" ? `/sessions/${session}/ops` : `/sessions/${session}/flame?${new URLSearchParams({ event: EVENTS[kind] })}`;
}

interface Form {
  job: Job | null;
  session: string;
  /** What the page that asks shows; null: no captures. */
  kind: CaptureKind | null;
}

export function CaptureForm({ job, session, kind: shown }: Form) {
  const [kind, choose] = useState<CaptureKind>(shown ?? "ops");
  const [steps, setSteps] = useState("10");
  const [seconds, setSeconds] = useState("5");
  const [asked, setAsked] = useState<Request[]>([]);
  const [problem, setProblem] = useState("");
  if (!job || job.state === "ending") return null;
  const ops = kind === "ops";
  const amount = Number(ops ? steps : seconds);
  const wrong = !(amount >= (ops ? 1 : 0.5) && amount <= (ops ? MAX_STEPS : MAX_SECONDS)) || (ops && !Number.isInteger(amount));
  const ask = () => {
    setProblem("");
    post<Asked>(`/jobs/${job.pid}/captures`, ops ? { kind, steps: amount } : { kind, seconds: amount }).then(
      ({ request }) => setAsked((earlier) => [...earlier, { id: request, kind }]),
      (error: Problem) => setProblem(error.message),
    );
  };
  const known = new Map(job.status.captures.map((capture) => [capture.request, capture]));
  return (
    <div class="ask">
      <div class="controls">
        <label>
          Capture
          <select value={kind} onChange={(event) => choose(event.currentTarget.value as CaptureKind)}>
            {(Object.keys(KINDS) as CaptureKind[]).map((name) => (
              <option key={name} value={name}>
                {KINDS[name]}
              </option>
            ))}
          </select>
        </label>
        {ops ? (
          <label>
            Steps
            <input type="number" min="1" max={MAX_STEPS} value={steps} onInput={(event) => setSteps(event.currentTarget.value)} />
          </label>
        ) : (
          <label>
            Seconds
            <input type="number" min="1" max={MAX_SECONDS} value={seconds} onInput={(event) => setSeconds(event.currentTarget.value)} />
          </label>
        )}
        <button class="main" disabled={wrong} onClick={ask}>
          Capture now
        </button>
        {(shown === null || ops !== (shown === "ops")) && (
          <span class="quiet">its result stands on the {ops ? "Ops" : "Flame graph"} page</span>
        )}
      </div>
      {problem && (
        <p class="failed" role="alert">
          {problem}
        </p>
      )}
      <ul class="captures" aria-live="polite">
        {asked.map(({ id, kind: of }) => (
          <li key={id} class={`capture capture-${known.get(id)?.state ?? "waiting"}`}>
            <Said capture={known.get(id) ?? null} />{" "}
            {known.get(id)?.state === "done" && <Result session={session} of={of} shown={shown} />}
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Leads to the result, unless it stands on this page by itself. */
function Result({ session, of, shown }: { session: string; of: CaptureKind; shown: CaptureKind | null }) {
  if (of === "ops" && shown === "ops") return null;
  if (of === "ops" || shown === null || shown === "ops") return <a href={resultOf(session, of)}>Show</a>;
  return <button onClick={() => change({ event: EVENTS[of], at: null })}>Show</button>;
}

/** On the list: the ops of ten steps by one click, and what becomes of them. */
export function QuickCapture({ job }: { job: Job }) {
  const [asked, setAsked] = useState("");
  const [problem, setProblem] = useState("");
  if (!job.session || job.state === "ending") return null;
  const ask = () => {
    setProblem("");
    post<Asked>(`/jobs/${job.pid}/captures`, { kind: "ops", steps: 10 }).then(
      ({ request }) => setAsked(request),
      (error: Problem) => setProblem(error.message),
    );
  };
  const capture = job.status.captures.find((one) => one.request === asked);
  const done = capture?.state === "done";
  return (
    <span class="quick" aria-live="polite">
      <button aria-label={`Capture ops of ${job.name} ${job.pid}`} title="Record the ops of ten steps" onClick={ask}>
        Capture
      </button>
      {problem && <small role="alert">{problem}</small>}
      {asked && (
        <small title={capture?.text}>
          {done ? <a href={resultOf(job.session, "ops")}>its ops</a> : (capture?.state ?? "requested")}
        </small>
      )}
    </span>
  );
}

function Said({ capture }: { capture: LiveCapture | null }) {
  if (!capture)
    return (
      <>
        <b>requested</b> <span class="quiet">begins within a second or two</span>
      </>
    );
  const live = capture.state === "waiting" || capture.state === "tracing";
  return (
    <>
      {live && <progress aria-label={`Capture ${capture.state}`} />} <b>{capture.state}</b> {capture.title}{" "}
      {capture.steps > 0 && format.plural(capture.steps, "step")}{" "}
      {capture.state === "done" && `${format.bytes(capture.bytes)}, cost ${format.ns(capture.cost_ns)}`}{" "}
      <span class="quiet">{capture.text}</span>
    </>
  );
}
