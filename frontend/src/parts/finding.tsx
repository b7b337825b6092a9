/** A finding as a card that opens what it rests on: numbers, lines of source, remedy. */
import { useLoaded } from "../data";
import * as format from "../format";
import type { Evidence, Finding, Place, Source } from "../generated/api";
import { change } from "../router";
import { Failed, SeverityChip } from "./common";

const AROUND = 4;
const MOST_LINES = 40;

interface Card {
  finding: Finding;
  index: number;
  session: string;
  query: URLSearchParams;
}

/** What it costs, in two or three words. That a saving is not known does not mean that nothing was lost. */
function costs(cost: Finding["cost"]): string {
  if (cost.ratio > 0) return `costs ${format.percent(cost.ratio)}`;
  return cost.basis === "unknown" ? "saving not known" : "no cost observed";
}

/** What removing it would save, as a sentence. */
function saving({ cost, pipeline_stage, exposed_stage }: Finding): string {
  const whole = pipeline_stage === "none" || exposed_stage === "initialization" ? "run" : "step";
  if (cost.basis === "unknown") {
    return `What removing it would save is not known: at most ${format.percent(cost.high)} of the ${whole}.`;
  }
  const ns = cost.ns_per_step > 0 ? `; ${format.ns(cost.ns_per_step)} a step` : "";
  const range = `${format.percent(cost.low)} to ${format.percent(cost.high)}, ${cost.basis}${ns}`;
  return `Removing it is predicted to save ${format.percent(cost.ratio)} of the ${whole} (${range}).`;
}

export function FindingCard({ finding, index, session, query }: Card) {
  const name = String(index + 1);
  const open = query.get("finding") === name;
  const place = finding.where[0];
  const { cost } = finding;
  const refs = finding.evidence.map(onTimeline);
  const referred = refs.some((ref) => ref !== null);
  return (
    <article class={`card severity-${finding.severity}`}>
      <h3>
        <button
          class="card-head"
          aria-expanded={open}
          aria-controls={`finding-${name}`}
          onClick={() => change({ finding: open ? null : name })}
        >
          <SeverityChip severity={finding.severity} />
          <span class="code">{finding.code}</span>
          <span class="title">{finding.title}</span>
          <span class="cost">{costs(cost)}</span>
        </button>
      </h3>
      {place && (
        <p class="place">
          <code>
            {place.file}:{place.line} {place.function}
          </code>
        </p>
      )}
      {open && (
        <div id={`finding-${name}`} class="opened">
          <p>
            {saving(finding)} Confidence {format.percent(finding.confidence)}.
          </p>
          <Remedies finding={finding} />
          {finding.explanation && (
            <>
              <h4>Why</h4>
              <p>{finding.explanation}</p>
            </>
          )}
          <h4>Evidence</h4>
          <table>
            <thead>
              <tr>
                <th>Measured</th>
                <th class="number">Value</th>
                <th class="number">Threshold</th>
                {referred && <th>See</th>}
              </tr>
            </thead>
            <tbody>
              {finding.evidence.map((row, at) => (
                <tr key={at}>
                  <td>{format.metric(row.metric)}</td>
                  <td class="number">{format.measured(row.value, row.unit)}</td>
                  <td class="number">{row.threshold === null ? "" : format.measured(row.threshold, row.unit)}</td>
                  {referred && (
                    <td>
                      <OnTimeline session={session} row={row} again={at > 0 && refs.indexOf(onTimeline(row)) < at} />
                    </td>
                  )}
                </tr>
              ))}
            </tbody>
          </table>
          {place && <Excerpt session={session} place={place} />}
          <p class="quiet">
            <code>stepscope rule {finding.code}</code> says how it is found and when it is not.
            {finding.origin === "joined" && (
              <>
                {" "}
                The same is seen in the source by {finding.related_codes.join(", ")} of <code>stepscope check</code>.
              </>
            )}{" "}
            Where to edit: {finding.introduced_stage}. Where time is lost: {finding.exposed_stage}.
          </p>
        </div>
      )}
    </article>
  );
}

/** What to change, first of all, and how to measure what it would save. */
function Remedies({ finding }: { finding: Finding }) {
  const { remedies, severity } = finding;
  if (!remedies.length) return null;
  return (
    <>
      <h4>What to change</h4>
      <ul>
        {remedies.map((remedy) => (
          <li key={remedy.id}>
            {remedy.text} {remedy.edit && <code>{remedy.edit}</code>}
            {remedy.what_if && (
              <p class="prove">
                {severity === "ask" ? "Find out" : "Prove it"}: <code>{remedy.what_if}</code>
              </p>
            )}
          </li>
        ))}
      </ul>
      {remedies.some((remedy) => remedy.what_if) && (
        <p class="quiet">
          <code>stepscope whatif</code> runs the job in turns as it is and with the change, in some minutes, and says how much time the change saves;
          your files stay as they are.
        </p>
      )}
    </>
  );
}

/** The first reference of a value that the timeline knows: a capture before all others. */
function onTimeline(row: Evidence): string | null {
  const known = row.refs.filter((ref) => /^(capture|name|trace|step|component):/.test(ref));
  return known.find((ref) => ref.startsWith("capture:")) ?? known[0] ?? null;
}

/** `again`: a row above leads to the same place. */
function OnTimeline({ session, row, again }: { session: string; row: Evidence; again: boolean }) {
  const ref = onTimeline(row);
  if (ref === null || again) return null;
  const words = ref.startsWith("capture:") ? "its capture" : "timeline";
  return (
    <a href={`/sessions/${session}/timeline?${new URLSearchParams({ show: ref })}`} aria-label={`${words}: ${format.metric(row.metric)}`}>
      {words}
    </a>
  );
}

export function Excerpt({ session, place }: { session: string; place: Pick<Place, "file" | "line" | "end_line"> }) {
  const first = Math.max(1, place.line - AROUND);
  const last = Math.min((place.end_line ?? place.line) + AROUND, first + MOST_LINES);
  const asked = new URLSearchParams({ file: place.file, first: String(first), limit: String(last - first + 1) });
  const source = useLoaded<Source>(`/sessions/${session}/source?${asked}`);
  if (source.problem?.status === 404) return null;
  if (source.problem) return <Failed problem={source.problem} again={source.again} />;
  if (!source.value?.total) return null; // recorded with --no-sources, or the job still runs
  const hot = (line: number) => line >= place.line && line <= (place.end_line ?? place.line);
  return (
    <>
      <h4>{place.file}</h4>
      <pre class="source" tabIndex={0} aria-label={`Lines ${first} to ${last} of ${place.file}`}>
        {source.value.lines.map((text, at) => (
          <span key={at} class={hot(first + at) ? "line hot" : "line"}>
            <i>{first + at}</i>
            {text}
            {"\n"}
          </span>
        ))}
      </pre>
    </>
  );
}
