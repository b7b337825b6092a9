/** The blocks of the report's sections, which know no section: what stands in them is the server's, and is text. */
import * as format from "../format";
import type { Bar, Facts, Paragraph, ReportSection, Table } from "../generated/api";
import { FindingCard } from "./finding";

type Block = ReportSection["blocks"][number];
type Text = Paragraph["text"];

interface Of {
  session: string;
  query: URLSearchParams;
}

/** Longer tables are folded. */
const ROWS = 12;

export function Section({ section: { key, title, blocks }, ...of }: { section: ReportSection } & Of) {
  return (
    <section aria-labelledby={`${key}-title`}>
      <h2 id={`${key}-title`}>{title}</h2>
      {blocks.map((block, at) => (
        <Shown key={at} block={block} {...of} />
      ))}
    </section>
  );
}

function Shown({ block, ...of }: { block: Block } & Of) {
  const { session } = of;
  switch (block.type) {
    case "paragraph":
      return (
        <p class={block.css}>
          <Words text={block.text} session={session} />
        </p>
      );
    case "heading":
      return <h3>{block.text}</h3>;
    case "listed":
      return (
        <ul>
          {block.items.map((item, at) => (
            <li key={at}>
              <Words text={item} session={session} />
            </li>
          ))}
        </ul>
      );
    case "facts":
      return <Pairs rows={block.rows} session={session} />;
    case "fence":
      return (
        <pre class="source" tabIndex={0}>
          {block.text}
        </pre>
      );
    case "table":
      return <Rows table={block} session={session} />;
    case "bar":
      return <Parts bar={block} />;
    case "found":
      return <FindingCard finding={block.finding} index={block.number - 1} {...of} />;
  }
}

/** Names and texts; of several with one name the first has it. */
export function Pairs({ rows, session }: { rows: Facts["rows"]; session: string }) {
  if (!rows.length) return null;
  return (
    <dl class="pairs">
      {rows.map(([name, text], at) => (
        <>
          <dt>{rows[at - 1]?.[0] === name ? "" : name}</dt>
          <dd>
            <Words text={text} session={session} />
          </dd>
        </>
      ))}
    </dl>
  );
}

function Rows({ table: { columns, rows }, session }: { table: Table; session: string }) {
  const css = columns.map((column) => (column.numeric ? "number" : ""));
  const table = (
    <div class="table">
      <table>
        <thead>
          <tr>
            {columns.map((column, at) => (
              <th key={at} scope="col" class={css[at]}>
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, at) => (
            <tr key={at}>
              {row.map((text, column) => (
                <td key={column} class={css[column]}>
                  <Words text={text} session={session} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
  if (rows.length <= ROWS) return table;
  return (
    <details class="more">
      <summary>{format.plural(rows.length, "row")}</summary>
      {table}
    </details>
  );
}

function Parts({ bar: { title, parts, per } }: { bar: Bar }) {
  const share = (one: Bar["parts"][number]) => `${one.label} ${format.percent(one.ratio)}`;
  return (
    <div class="bar" role="img" aria-label={`${title}: ${parts.map(share).join(", ")}`}>
      {parts.map((one, at) => (
        <i key={at} class={`part ${one.css}`} style={{ flexGrow: String(one.ratio) }} title={`${share(one)}, ${format.lasting(one.ns)}${per}`} />
      ))}
    </div>
  );
}

function Words({ text, session }: { text: Text; session: string }) {
  const spans = Array.isArray(text) ? text : [text];
  return (
    <>
      {spans.map((span, at) => (
        <>
          {at > 0 && " "}
          <Span key={at} span={span} session={session} />
        </>
      ))}
    </>
  );
}

function Span({ span, session }: { span: Exclude<Text, unknown[]>; session: string }) {
  if (typeof span === "string") return <>{span}</>;
  switch (span.type) {
    case "code":
      return <code>{span.text}</code>;
    case "at":
      return span.place && (
        <small>
          <a href={`/sessions/${session}/code?${new URLSearchParams({ file: span.place.file, line: String(span.place.line) })}`}>
            {span.place.file}:{span.place.line}
          </a>{" "}
          {span.place.function}
        </small>
      );
    case "key":
      return (
        <span class="short">
          <i class={`swatch ${span.css}`} /> {span.label}
        </span>
      );
    case "outcome":
      return <span class="short">{span.text}</span>;
    case "share":
      return (
        <div class="bar">
          <i class="part c-call" style={{ flexGrow: String(span.ratio) }} />
          <i style={{ flexGrow: String(1 - span.ratio) }} />
        </div>
      );
    case "stacked":
      return (
        <>
          {span.texts.map((line, at) => (
            <div key={at}>{line}</div>
          ))}
        </>
      );
  }
}
