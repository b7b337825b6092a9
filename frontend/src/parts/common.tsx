/** Small parts that several pages share. */
import type { ComponentChildren } from "preact";
import type { Problem } from "../api";
import * as format from "../format";
import type { Severity, TopFinding } from "../types";

export function Frame({ title, nav, children }: { title?: string; nav?: ComponentChildren; children: ComponentChildren }) {
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
      </header>
      <main id="content" tabIndex={-1}>
        {children}
      </main>
    </>
  );
}

export function State({ state }: { state: string }) {
  return <span class={`state state-${state}`}>{state}</span>;
}

export function SeverityChip({ severity }: { severity: Severity }) {
  return <span class={`severity severity-${severity}`}>{severity}</span>;
}

export function Top({ top, findings }: { top: TopFinding | null; findings: number | null }) {
  if (!top) return <span class="quiet">{findings === null ? "not analysed yet" : "nothing significant found"}</span>;
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
export function Anatomy({ parts, words = true }: { parts: { component: string; ratio: number; name?: string }[]; words?: boolean }) {
  if (!parts.length) return <p class="quiet">No steps were seen: nothing repeats.</p>;
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
