/** Code: the user's files with what their lines cost and the findings on them. State: ?file=, ?line=. */
import { useEffect, useRef } from "preact/hooks";
import { useLoaded } from "../data";
import * as format from "../format";
import type { CodeFile, CodeFileList, CodeLine, Finding, FindingList, Source } from "../generated/api";
import { Failed, SeverityChip, Waiting } from "../parts/common";
import { go } from "../router";
import type { View } from "./view";

const PAGE = 1_000;

export function CodePage({ brief, stamp, query }: View) {
  const path = `/sessions/${brief.key}`;
  const files = useLoaded<CodeFileList>(`${path}/files`, { stamp });
  const findings = useLoaded<FindingList>(`${path}/findings`, { stamp });
  if (files.problem) return <Failed problem={files.problem} again={files.again} />;
  if (!files.value) return <Waiting what="Reading sources" />;
  const items = files.value.items;
  if (!items.length)
    return (
      <p class="quiet">
        {brief.pid
          ? "No line of a file was named yet: copies of the sources are made soon after the first record that names one."
          : "The session has no sources: none was seen running, or it was recorded with --no-sources."}
      </p>
    );
  const asked = query.get("file") ?? "";
  const file = items.find((one) => one.file === asked) ?? items.find((one) => asked.endsWith(`/${one.file}`)) ?? items[0];
  return (
    <>
      <section aria-labelledby="files-title">
        <h1 id="files-title">Code</h1>
        <Files files={items} shown={file} here={path} />
      </section>
      {file && <Lines key={file.file} file={file} path={path} query={query} findings={findings.value?.items ?? []} />}
    </>
  );
}

function Files({ files, shown, here }: { files: CodeFile[]; shown: CodeFile | undefined; here: string }) {
  const ops = files.some((file) => file.op_ratio > 0);
  return (
    <div class="table">
      <table>
        <thead>
          <tr>
            <th>File</th>
            <th class="number">Lines</th>
            <th class="number">Time of its lines in the step</th>
            {ops && <th class="number">Op time that its lines make</th>}
            <th class="number">Findings</th>
          </tr>
        </thead>
        <tbody>
          {files.map((file) => (
            <tr key={file.file}>
              <td>
                <a
                  href={`${here}/code?${new URLSearchParams({ file: file.file })}`}
                  {...(file === shown ? { "aria-current": "true" } : {})}
                >
                  {file.file}
                </a>
              </td>
              <td class="number">{file.lines ? format.count(file.lines) : "no copy"}</td>
              <td class="number">{file.ratio ? format.percent(file.ratio) : ""}</td>
              {ops && <td class="number">{file.op_ratio ? format.percent(file.op_ratio) : ""}</td>}
              <td class="number">{new Set(file.known.flatMap((line) => line.findings)).size || ""}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface Shown {
  file: CodeFile;
  path: string;
  query: URLSearchParams;
  findings: Finding[];
}

function Lines({ file, path, query, findings }: Shown) {
  const wanted = Number.parseInt(query.get("line") ?? "", 10) || 0;
  const hottest = [...file.known].sort((one, other) => weight(other) - weight(one))[0];
  const line = Math.min(Math.max(1, wanted || hottest?.line || 1), Math.max(1, file.lines));
  const first = Math.floor((line - 1) / PAGE) * PAGE + 1;
  const asked = new URLSearchParams({ file: file.file, first: String(first), limit: String(PAGE) });
  const source = useLoaded<Source>(file.lines ? `${path}/source?${asked}` : null);
  if (!file.lines) return <Known file={file} path={path} findings={findings} />;
  if (source.problem) return <Failed problem={source.problem} again={source.again} />;
  if (!source.value) return <Waiting what="Reading the file" />;
  const turn = (to: number) => go(`${path}/code?${new URLSearchParams({ file: file.file, line: String(to) })}`);
  const last = first + source.value.lines.length - 1;
  return (
    <section aria-labelledby="file-title">
      <h2 id="file-title">{file.file}</h2>
      <p class="quiet">
        Next to a line: its known share of the steps' time (from 0.5 %){file.op_ratio > 0 && ", and in brackets the share of captured op time in ops that it makes"}. Lines without a number have no known cost:
        work inside compiled calls belongs to no line, and that of other threads (functions of the input) stands in the findings.
      </p>
      <Text source={source.value} known={file.known} line={line} chosen={wanted} path={path} findings={findings} />
      {source.value.total > PAGE && (
        <p class="pager">
          <button disabled={first === 1} onClick={() => turn(first - PAGE)}>
            Earlier lines
          </button>
          {format.count(first)} to {format.count(last)} of {format.count(source.value.total)}
          <button disabled={last >= source.value.total} onClick={() => turn(first + PAGE)}>
            Later lines
          </button>
        </p>
      )}
    </section>
  );
}

const weight = (line: CodeLine) => Math.max(line.ratio, line.op_ratio, line.findings.length ? 1e-9 : 0);

interface TextProps {
  source: Source;
  known: CodeLine[];
  /** Is brought into view. */
  line: number;
  /** Is marked as the one that was asked for. */
  chosen: number;
  path: string;
  findings: Finding[];
}

function Text({ source, known, line, chosen, path, findings }: TextProps) {
  const place = useRef<HTMLDivElement>(null);
  const by = new Map(known.map((one) => [one.line, one]));
  const begins = beginnings(known);
  useEffect(() => {
    const shown = place.current?.querySelector<HTMLElement>(`#line-${line}`);
    if (shown && place.current) place.current.scrollTop = shown.offsetTop - place.current.clientHeight / 3;
  }, [line, source]);
  return (
    <div ref={place} class="source code" tabIndex={0} role="region" aria-label={`Lines of ${source.file}`}>
      {source.lines.map((text, at) => {
        const number = source.first + at;
        const about = by.get(number);
        const css = ["line", about?.findings.length ? "hot" : "", number === chosen ? "chosen" : ""].filter(Boolean).join(" ");
        return (
          <div key={number} id={`line-${number}`} class={css}>
            <span class="cost">
              {about && about.ratio > 0 && <i class="heat" style={{ width: `${Math.round(100 * Math.min(1, about.ratio))}%` }} />}
              <b>{about && cost(about)}</b>
            </span>
            <i class="at">{number}</i>
            <code>{text || " "}</code>
            {(begins.get(number) ?? []).map((finding) => (
              <Mark key={finding} number={finding} finding={findings[finding - 1]} path={path} />
            ))}
          </div>
        );
      })}
    </div>
  );
}

function cost(line: CodeLine): string {
  const own = line.ratio > 0 ? format.percent(line.ratio) : "";
  return line.op_ratio > 0 ? `${own} (${format.percent(line.op_ratio)})`.trim() : own;
}

/** Of each line the findings that begin there: a place of many lines is told once. */
function beginnings(known: CodeLine[]): Map<number, number[]> {
  const found = new Map<number, number[]>();
  let above: CodeLine | undefined;
  for (const line of known) {
    const before = above?.line === line.line - 1 ? above.findings : [];
    const begin = line.findings.filter((finding) => !before.includes(finding));
    if (begin.length) found.set(line.line, begin);
    above = line;
  }
  return found;
}

function Mark({ number, finding, path }: { number: number; finding: Finding | undefined; path: string }) {
  return (
    <a class="mark" href={`${path}?finding=${number}`} title={finding?.title ?? ""}>
      {finding ? (
        <>
          <SeverityChip severity={finding.severity} /> {finding.code}
        </>
      ) : (
        `finding ${number}`
      )}
    </a>
  );
}

/** Of a file without a copy: its numbers alone. */
function Known({ file, path, findings }: { file: CodeFile; path: string; findings: Finding[] }) {
  return (
    <section aria-labelledby="file-title">
      <h2 id="file-title">{file.file}</h2>
      <p class="quiet">The session has no copy of this file: it is not the user's own, or was recorded with --no-sources.</p>
      <ul>
        {file.known.map((line) => (
          <li key={line.line}>
            line {line.line} {cost(line)}{" "}
            {line.findings.map((finding) => (
              <Mark key={finding} number={finding} finding={findings[finding - 1]} path={path} />
            ))}
          </li>
        ))}
      </ul>
    </section>
  );
}
