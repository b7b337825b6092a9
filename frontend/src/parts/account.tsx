/** What the report says besides its findings: where the job's time went, its other lines, stages and detectors. */
import { useLoaded } from "../data";
import * as format from "../format";
import type { Account, DetectorSaid, Ledger, StageSaid } from "../generated/api";

export function useAccount(session: string, stamp: string): Account | null {
  return useLoaded<Account>(`/sessions/${session}/account`, { stamp }).value;
}

/** The job from start to end: a bar of its parts, a table of what and where, and lines as in the terminal. */
export function WholeJob({ account, session, running }: { account: Account; session: string; running: boolean }) {
  const { ledgers, lines } = account;
  if (!ledgers.length && !lines.length) return null;
  return (
    <section aria-labelledby="job-title">
      <h2 id="job-title">The job</h2>
      {ledgers.map((ledger, at) => (
        <Parts key={at} ledger={ledger} session={session} named={at > 0} until={running ? "so far" : "from start to end"} />
      ))}
      <dl class="recorded said">
        {lines.map(({ label, text }, at) => (
          <div key={at}>
            <dt>{lines[at - 1]?.label === label ? "" : label}</dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function Parts({ ledger, session, named, until }: { ledger: Ledger; session: string; named: boolean; until: string }) {
  const { rows, title } = ledger;
  const settled = rows.some((row) => row.settled);
  const text = rows.map((row) => `${row.label} ${format.lasting(row.ns)}`).join(", ");
  return (
    <div class="anatomy">
      {named && <h3>{title}</h3>}
      <div class="bar" role="img" aria-label={`${title}: ${text}`}>
        {rows.map((row, at) => (
          <i key={at} class={`part c-${row.component}`} style={{ flexGrow: String(row.ratio) }} title={`${row.label} ${format.lasting(row.ns)}`} />
        ))}
      </div>
      <details class="more">
        <summary>
          {format.lasting(ledger.ns)} {until}:{" "}
          {[...rows].sort((one, other) => other.ns - one.ns).slice(0, 3).map((row) => `${row.label} ${format.percent(row.ratio)}`).join(", ")}
        </summary>
        <div class="table">
          <table>
            <thead>
              <tr>
                <th>Part</th>
                <th class="number">Share</th>
                <th class="number">Time</th>
                {settled && <th>Settled by</th>}
                <th>What and where</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row, at) => (
                <tr key={at}>
                  <td class="short">
                    <i class={`swatch c-${row.component}`} /> {row.label}
                  </td>
                  <td class="number">{format.percent(row.ratio)}</td>
                  <td class="number">{format.lasting(row.ns)}</td>
                  {settled && <td>{row.settled}</td>}
                  <td>
                    {row.text}
                    {row.where.map((place) => (
                      <small key={`${place.file}:${place.line}`}>
                        <a href={`/sessions/${session}/code?file=${encodeURIComponent(place.file)}&line=${place.line}`}>
                          {place.file}:{place.line}
                        </a>{" "}
                        {place.function}
                      </small>
                    ))}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </div>
  );
}

/** The stages of the pipeline, and for those without a figure why there is none. */
export function Stages({ stages }: { stages: StageSaid[] }) {
  if (!stages.length) return null;
  return (
    <details class="more">
      <summary>Stages of the pipeline</summary>
      <div class="table">
        <table>
          <thead>
            <tr>
              <th>Stage</th>
              <th class="number">Share</th>
              <th>Basis, or why there is none</th>
            </tr>
          </thead>
          <tbody>
            {stages.map((one) => (
              <tr key={one.stage}>
                <td class="short">{one.stage}</td>
                <td class="number">{one.ratio === null ? "no figure" : format.percent(one.ratio)}</td>
                <td>{one.basis}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

/** Every detector: what it looks for, what became of it, and why it could not decide. */
export function Detectors({ said, detectors }: { said: string[]; detectors: DetectorSaid[] }) {
  const summary = `Detectors: ${said.join(" · ")}`;
  if (!detectors.length) return <p class="quiet">{summary}</p>;
  return (
    <details class="more">
      <summary>{summary}</summary>
      <div class="table">
        <table>
          <thead>
            <tr>
              <th>Detector</th>
              <th>Looks for</th>
              <th>Outcome</th>
              <th>Why it could not decide</th>
            </tr>
          </thead>
          <tbody>
            {detectors.map((one) => (
              <tr key={one.code}>
                <td>{one.code}</td>
                <td>{one.name}</td>
                <td class="short">{one.outcome}</td>
                <td>{one.why_not}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}
