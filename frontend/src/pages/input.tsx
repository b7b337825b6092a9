/** Input: the tf.data pipeline as it ran, which stage to mend, and the edit: the report's own parts. State: ?finding=. */
import { useLoaded } from "../data";
import * as format from "../format";
import type { InputBound, InputFunction, InputShown, InputTree, Place, TreeStage } from "../generated/api";
import { Failed, Waiting } from "../parts/common";
import { FindingCard } from "../parts/finding";
import type { View } from "./view";
import "./input.css";

export function InputPage({ brief, stamp, query }: View) {
  const path = `/sessions/${brief.key}`;
  const input = useLoaded<InputShown>(`${path}/input`, { stamp });
  if (input.problem) return <Failed problem={input.problem} again={input.again} />;
  if (!input.value) return <Waiting what="Reading the input pipeline" />;
  const { tree, bound, shares, findings } = input.value;
  return (
    <section aria-labelledby="input-title">
      <h1 id="input-title">Input</h1>
      <p class="answer">{tree ? sentence(tree.text) : "No input pipeline was seen: the steps get their data in another way."}</p>
      <ul class="quiet shares">
        {shares.map((share) => (
          <li key={share.stage}>
            {share.stage.replace("-", " ")}: {share.ratio === null ? "" : `${format.percent(share.ratio)} of the step; `}
            {share.basis}
          </li>
        ))}
      </ul>
      {tree && tree.stages.length > 0 && <Tree tree={tree} bound={bound} here={path} />}
      {tree && tree.functions.length > 0 && <Functions rows={tree.functions} here={path} />}
      {bound && <Bound bound={bound} here={path} />}
      {findings.length > 0 && (
        <>
          <h2>Findings about the input</h2>
          {findings.map((one) => (
            <FindingCard key={one.number} finding={one.finding} index={one.number - 1} session={brief.key} query={query} />
          ))}
        </>
      )}
    </section>
  );
}

const sentence = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;

const WAITS = { input: "for its input", consumer: "for its consumer", other: "CPU, lock or Python", "": "" };

function Tree({ tree, bound, here }: { tree: InputTree; bound: InputBound | null; here: string }) {
  const most = Math.max(tree.wall_ns, ...tree.stages.map((stage) => stage.batch_ns));
  const modelled = bound?.stages.length === tree.stages.length ? bound.stages : null;
  return (
    <>
      <h2>Stages, from the step to the sources</h2>
      <p class="quiet">
        Times for one batch{tree.wall_ns > 0 && `; a batch is taken every ${format.ns(tree.wall_ns)}`}.{" "}
        {tree.source === "trace" ? "From an op trace" : "From tf.data's own counters"}, after its rewriting.
      </p>
      <ul class="legend less">
        <li>
          <i class="in-own" /> own time, by its parallelism
        </li>
        <li>
          <i class="in-slow" /> the same, of the stages that set the pace
        </li>
        <li>
          <i class="in-wait" /> waits
        </li>
      </ul>
      <div class="table">
        <table class="tree">
          <thead>
            <tr>
              <th>Stage</th>
              <th class="bars less">A batch</th>
              <th class="number">Own time</th>
              <th class="number">Waits</th>
              <th class="number">Parallelism</th>
              <th class="number">Elements</th>
              <th class="number">Ready</th>
              {modelled && <th class="number">CPU</th>}
              {modelled && <th class="number">Memory</th>}
            </tr>
          </thead>
          <tbody>
            {tree.stages.map((stage, at) => (
              <tr key={at} class={stage.mend ? "mend" : ""}>
                <td>
                  <div class="node" style={{ paddingLeft: `${Math.min(stage.depth, 12) * 14}px` }}>
                    <b>{stage.name}</b> {stage.function && <span class="quiet function">{stage.function}</span>}{" "}
                    {stage.mend && <span class="badge">mend this first</span>}
                    <At place={stage.place} here={here} />
                  </div>
                </td>
                <td class="bars less">
                  <Bar stage={stage} most={most} />
                </td>
                <td class="number">{format.ns(stage.batch_ns)}</td>
                <td class="number">
                  {stage.wait_ns > 0 && format.ns(stage.wait_ns)}
                  {stage.wait_ns > 0 && <small>{WAITS[stage.waits_for]}</small>}
                </td>
                <td class="number">
                  {format.rate(stage.parallelism)}
                  {stage.asked_parallel !== 0 && (
                    <small>{stage.asked_parallel < 0 ? "AUTOTUNE" : `${stage.asked_parallel} asked`}</small>
                  )}
                </td>
                <td class="number">{format.rate(stage.elements)}</td>
                <td class="number">{stage.buffered > 0 && format.rate(stage.buffered)}</td>
                {modelled && <td class="number">{format.ns(modelled[at]?.cpu_ns ?? 0)}</td>}
                {modelled && <td class="number">{stage.bytes > 0 && format.bytes(stage.bytes)}</td>}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function Bar({ stage, most }: { stage: TreeStage; most: number }) {
  const width = (ns: number) => ({ width: `${(100 * ns) / (most || 1)}%` });
  return (
    <div class="in-bar" aria-hidden="true">
      <i class={stage.limits ? "in-slow" : "in-own"} style={width(stage.batch_ns)} />
      <i class="in-wait" style={width(Math.min(stage.wait_ns, most - stage.batch_ns))} />
    </div>
  );
}

function At({ place, here }: { place: Pick<Place, "file" | "line"> | null; here: string }) {
  if (!place?.file) return null;
  return (
    <small>
      <a href={`${here}/code?${new URLSearchParams({ file: place.file, line: String(place.line) })}`}>
        {place.file}:{place.line}
      </a>
    </small>
  );
}

function Functions({ rows, here }: { rows: InputFunction[]; here: string }) {
  return (
    <>
      <h2>User Python in the pipeline</h2>
      <div class="table">
        <table>
          <thead>
            <tr>
              <th>Function</th>
              <th>Called as</th>
              <th class="number">Calls</th>
              <th class="number">Per step</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row, at) => (
              <tr key={at}>
                <td>
                  <b>{row.name}</b>
                  <At place={row.place} here={here} />
                </td>
                <td>{row.role}</td>
                <td class="number">{format.count(row.calls)}</td>
                <td class="number">{format.ns(row.ns_per_step)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function Bound({ bound, here }: { bound: InputBound; here: string }) {
  return (
    <>
      <h2>What it could reach</h2>
      <p>{sentence(bound.text)}</p>
      {bound.edits.length > 0 && (
        <div class="table">
          <table>
            <thead>
              <tr>
                <th>Edit</th>
                <th class="number">Predicted</th>
                <th>If</th>
                <th>Try it</th>
              </tr>
            </thead>
            <tbody>
              {bound.edits.map((edit, at) => (
                <tr key={at}>
                  <td>
                    {edit.text}
                    <At place={edit} here={here} />
                  </td>
                  <td class="number">
                    {format.rate(edit.per_s)} {bound.unit}/s
                  </td>
                  <td>
                    {[edit.note.replace(/^if /, ""), edit.bytes > 0 ? `${format.bytes(edit.bytes)} of memory` : ""].filter(Boolean).join("; ")}
                  </td>
                  <td>{edit.what_if && <code>{edit.what_if}</code>}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {bound.diff && <Diff text={bound.diff} />}
      {bound.what_if && bound.edits.length > 1 && (
        <p>
          Prove it: <code>{bound.what_if}</code>
        </p>
      )}
      {bound.no_diff && <p class="quiet">Not in a diff: {bound.no_diff}.</p>}
    </>
  );
}

function Diff({ text }: { text: string }) {
  const kind = (line: string) =>
    /^(---|\+\+\+) /.test(line) ? "d-file" : line.startsWith("+") ? "d-new" : line.startsWith("-") ? "d-old" : line.startsWith("@@") ? "d-at" : "";
  return (
    <pre class="source diff" tabIndex={0} aria-label="The edits as a diff">
      {text
        .replace(/\n$/, "")
        .split("\n")
        .map((line, at) => (
          <span key={at} class={`line ${kind(line)}`}>
            {line}
            {"\n"}
          </span>
        ))}
    </pre>
  );
}
