/** Captures: those that the session holds, and those that the running job was asked for, as they stand. */
import * as format from "../format";
import type { CaptureInfo, LiveCapture } from "../generated/api";
import { type CaptureKind, NAMES } from "./capture_form";

/** Who asked, by the words that sessions keep; any other is the code of a detector. */
const ASKERS: Record<string, string> = {
  user: "a user",
  schedule: "the schedule",
  compute: "stepscope: the steps compute",
  stacks: "stepscope: the stacks are hidden",
  "first-look": "stepscope's first look",
};
const asker = (by: string): string => `asked by ${ASKERS[by] ?? by}`;

const kindOf = (capture: { kind: string }): string => NAMES[capture.kind as CaptureKind] ?? capture.kind;

interface Captures {
  stored: CaptureInfo[];
  live: LiveCapture[];
  /** Ids of requests that this page has made. */
  asked: string[];
  running: boolean;
}

export function CapturePanel({ stored, live, asked, running }: Captures) {
  const known = new Set(live.map((capture) => capture.request));
  const sent = asked.filter((request) => !known.has(request));
  const earlier = stored.filter((capture) => !known.has(capture.request));
  const none = !live.length && !sent.length && !earlier.length;
  return (
    <section aria-labelledby="captures-title">
      <h2 id="captures-title">Captures</h2>
      {none && (
        <p class="quiet">{running ? "None yet. Press Trace at a task to record some of its steps." : "The session has none."}</p>
      )}
      <ul class="captures" aria-live="polite">
        {sent.map((request) => (
          <li key={request} class="capture">
            <b>requested</b> <span class="quiet">begins within a second or two</span>
          </li>
        ))}
        {[...live].reverse().map((capture) => (
          <li key={`${capture.request} ${capture.number}`} class={`capture capture-${capture.state}`}>
            <b>{capture.state}</b> {capture.title} {capture.steps > 0 && format.plural(capture.steps, "step")}{" "}
            {capture.state === "done" && (
              <span>
                {format.bytes(capture.bytes)}, cost {format.ns(capture.cost_ns)}
                {capture.ratio !== null && `, traced steps ${format.signed(capture.ratio)}`}
              </span>
            )}{" "}
            <span class="quiet">
              {capture.when && `waits for ${capture.when}: `}{capture.text} {asker(capture.asked_by)}
            </span>
          </li>
        ))}
        {earlier.map((capture) => (
          <li key={capture.id} class={`capture capture-${capture.outcome}`}>
            <b title={capture.id}>{kindOf(capture)}</b> {capture.title} {capture.steps > 0 && format.plural(capture.steps, "step")} at {format.lasting(capture.at_ns)},{" "}
            {format.bytes(capture.bytes)}, cost {format.ns(capture.cost_ns)}{" "}
            <span class="quiet">
              {capture.outcome}, {capture.when && `waited for ${capture.when}, `}
              {capture.text && `${capture.text}, `}
              {asker(capture.asked_by)}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
