/** Small parts that several pages share. */
import type { ComponentChildren } from "preact";
import type { Problem } from "../api";
import { useConnection } from "../connection";
import * as format from "../format";
import type { LiveFinding, Status } from "../generated/api";

/** States that go on changing. */
const LIVE = new Set(["starting", "running", "ending"]);

export function Frame({ title, nav, children }: { title?: string; nav?: ComponentChildren; children: ComponentChildren }) {
  const { lost } = useConnection();
  document.title = title ? `${title} - stepscope` : "stepscope";
  return (
    <>
      <a class="skip" href="#content">
        Skip to content
      </a>
      <header>
        <a class="home" href="/">
          <img src="/assets/icon.svg" alt="" width="18" height="18" /> stepscope
        </a>
        {nav}
        {lost !== null && (
          <p class="lost" role="status">
            No connection since {format.clock(lost)}; the numbers are from that time. Has <code>stepscope view</code> ended? This page continues
            when it answers again.
          </p>
        )}
      </header>
      <main id="content" tabIndex={-1} class={lost !== null ? "stale" : ""}>
        {children}
      </main>
    </>
  );
}

export function State({ state }: { state: string }) {
  const { lost } = useConnection();
  const then = lost !== null && LIVE.has(state);
  return <span class={`state state-${then ? "stale" : state}`}>{then ? `${state} at ${format.clock(lost)}` : state}</span>;
}

/** What a running job does, and how far its fit is. */
export function Phase({ status }: { status: Pick<Status, "phase" | "progress"> }) {
  const { progress, phase } = status;
  if (!phase) return null;
  const left = progress?.left_s != null ? `, ${format.lasting(progress.left_s * 1e9)} left` : "";
  return (
    <span class="phase">
      {phase}
      {progress && (
        <>
          , epoch {progress.epoch} of {progress.epochs} <progress value={progress.ratio} max={1} aria-label="Progress of the fit" />{" "}
          {format.percent(progress.ratio)}
          {left}
        </>
      )}
    </span>
  );
}

export function SeverityChip({ severity }: { severity: string }) {
  return <span class={`severity severity-${severity}`}>{severity}</span>;
}

export function Top({ top, findings, steps }: { top: LiveFinding | null; findings: number | null; steps: number }) {
  if (!top) {
    const looked = steps ? "nothing significant found" : "no steps were seen, so there are no findings about them";
    return <span class="quiet">{findings === null ? "not analysed yet" : looked}</span>;
  }
  return (
    <span class="top">
      <SeverityChip severity={top.severity} /> <b>{top.code}</b> {top.title}
      {findings !== null && findings > 1 && <span class="quiet"> and {findings - 1} more</span>}
    </span>
  );
}

export function Failed({ problem, again }: { problem: Problem; again: () => void }) {
  return (
    <div class="failed" role="alert">
      <p>{problem.message}</p>
      <button onClick={again}>Try again</button>
    </div>
  );
}

export function Waiting({ what }: { what: string }) {
  return (
    <p class="waiting" role="status">
      {what}
    </p>
  );
}

/** The split of the step: parts of a bar, and the same in words. */
export function Anatomy({ parts, words = true, running = false }: { parts: Part[]; words?: boolean; running?: boolean }) {
  if (!parts.length) return <p class="quiet">{running ? "No steps yet." : "No steps: no repeating work was seen."}</p>;
  const text = parts.map((p) => `${format.component(p.component)} ${format.percent(p.ratio)}`).join(", ");
  return (
    <div class="anatomy">
      <div class="bar" role="img" aria-label={`The step: ${text}`}>
        {parts.map((p) => (
          <i key={p.component} class={`part c-${p.component}`} style={{ flexGrow: String(p.ratio) }} title={text} />
        ))}
      </div>
      {words && (
        <ul class="legend">
          {parts.map((p) => (
            <li key={p.component}>
              <i class={`c-${p.component}`} /> {format.component(p.component)} <b>{format.percent(p.ratio)}</b>
              {p.name && <span class="quiet"> {p.name}</span>}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

interface Part {
  component: string;
  ratio: number;
  name?: string;
}

/** Label and value, side by side. */
export function Facts({ facts }: { facts: [string, ComponentChildren][] }) {
  return (
    <dl class="facts">
      {facts.map(([label, value]) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
