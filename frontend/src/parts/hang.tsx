/** A running job that hangs, or computes without a step: what it waits for, and where its threads are. */
import * as format from "../format";
import type { HangFrame, HangThread, Status } from "../generated/api";

/** Frames of a stack that are shown at once. */
const SHOWN = 12;

export function Hang({ status }: { status: Pick<Status, "hang" | "hang_since_unix_s" | "updated_unix_s"> }) {
  const { hang } = status;
  if (!hang) return null;
  const lasts = Math.max(0, status.updated_unix_s - status.hang_since_unix_s);
  return (
    <span class="hang" role="status">
      <b>
        {hang.state === "hang" ? "hangs for" : "no step for"} {format.lasting(lasts * 1e9)}
      </b>
      : {hang.text}
      {hang.file && (
        <>
          , {base(hang.file)}:{hang.line} {hang.function}
        </>
      )}
    </span>
  );
}

export function HangDetails({ status }: { status: Status }) {
  const { hang } = status;
  if (!hang) return null;
  return (
    <section aria-labelledby="hang-title">
      <h2 id="hang-title">{hang.state === "hang" ? "The job hangs" : "No step ends"}</h2>
      <p>
        <Hang status={status} />
        {hang.main && <> The main thread is in {place(hang.main)}.</>}
        {hang.problem && <> No Python functions: {hang.problem}.</>}
      </p>
      {hang.threads
        .filter((thread) => thread.frames.length)
        .map((thread) => (
          <Thread key={`${thread.pid} ${thread.tid}`} thread={thread} />
        ))}
      <p class="quiet">
        Without Python:{" "}
        {hang.threads
          .filter((thread) => !thread.frames.length)
          .map((thread) => `${thread.alike} ${thread.name}`)
          .join(", ") || "none"}
      </p>
    </section>
  );
}

function Thread({ thread }: { thread: HangThread }) {
  const own = thread.frames.find((frame) => frame.own) ?? thread.frames[0];
  return (
    <details>
      <summary>
        {thread.name} {thread.pid}/{thread.tid}
        {thread.call && ` in ${thread.call}`} {thread.on}: {own && place(own)}
      </summary>
      <ol>
        {thread.frames.slice(0, SHOWN).map((frame, index) => (
          <li key={index} class={frame.own ? "" : "quiet"}>
            {place(frame)}
          </li>
        ))}
      </ol>
    </details>
  );
}

function place(frame: HangFrame): string {
  return `${frame.function} (${base(frame.file)}:${frame.line})`;
}

function base(file: string): string {
  return file.slice(file.lastIndexOf("/") + 1);
}
