/** Slow steps: one of them compared with the median step, to say why it was slow. State: ?step= its number, or "slowest". */
import { useLoaded } from "../data";
import * as format from "../format";
import type { Series, StepDetails } from "../generated/api";
import { change } from "../router";
import { Pairs } from "./blocks";
import { Failed, Waiting } from "./common";

const SHOWN = 12;

export interface Outlier {
  at: number;
  ms: number;
  number: number;
}

/** The slowest steps of a session, slowest first. */
export function outliers(columns: Series["columns"]): Outlier[] {
  const numbers = columns.outlier_step ?? [];
  const times = columns.outlier_t ?? [];
  const found = (columns.outlier_ms ?? []).flatMap((ms, i) => {
    const number = numbers[i];
    return number === undefined ? [] : [{ ms, number, at: times[i] ?? 0 }];
  });
  return found.sort((one, other) => other.ms - one.ms);
}

export function SlowSteps({ columns, session, query, stamp }: { columns: Series["columns"]; session: string; query: URLSearchParams; stamp: string }) {
  const slow = outliers(columns).slice(0, SHOWN);
  const asked = query.get("step") ?? "";
  if (!slow.length && !asked) return null;
  return (
    <section aria-labelledby="slow-title">
      <h2 id="slow-title">Slow steps</h2>
      <p class="quiet">Why was this one slow? Choose a step here, or its dot in the chart of step times.</p>
      <div class="controls" role="group" aria-label="Slow steps">
        {slow.map(({ number, ms }) => (
          <button key={number} aria-pressed={asked === `${number}`} onClick={() => change({ step: asked === `${number}` ? null : `${number}` })}>
            step {format.count(number)}: {format.ns(ms * 1e6)}
          </button>
        ))}
      </div>
      {asked && <Compared session={session} which={asked} stamp={stamp} />}
    </section>
  );
}

function Compared({ session, which, stamp }: { session: string; which: string; stamp: string }) {
  const loaded = useLoaded<StepDetails>(`/sessions/${session}/step?which=${encodeURIComponent(which)}`, { stamp });
  if (loaded.problem) return <Failed problem={loaded.problem} again={loaded.again} />;
  if (!loaded.value) return <Waiting what="Comparing the step" />;
  return (
    <>
      {loaded.value.in_words.map((step) => (
        <article key={step.number} class="slow-step">
          <h3>{step.headline}</h3>
          <div class="table">
            <table>
              <thead>
                <tr>
                  <th scope="col">Component</th>
                  <th scope="col" class="number">
                    This step
                  </th>
                  <th scope="col" class="number">
                    Median step
                  </th>
                </tr>
              </thead>
              <tbody>
                {step.parts.map((part) => (
                  <tr key={part.component}>
                    <th scope="row">{format.component(part.component)}</th>
                    <td class="number">{format.ns(part.ns)}</td>
                    <td class="number">{format.ns(part.median_ns)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          <Pairs rows={step.said.map(({ label, lines }) => [label, { type: "stacked", texts: lines }])} session={session} />
        </article>
      ))}
    </>
  );
}
