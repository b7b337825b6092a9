/** The list of sessions: search, sorting, labels, two ticked to compare. State: ?q=, ?state=, ?sort=, ?order=, ?offset=, ?pick=KEY,KEY. */
import { useRef, useState } from "preact/hooks";
import { remove, send, type Problem } from "../api";
import { useLoaded } from "../data";
import * as format from "../format";
import type { Deleted, SessionBrief, SessionLabel, SessionPage } from "../generated/api";
import { Failed, State, Top, Waiting } from "../parts/common";
import { change } from "../router";

const STATES = ["running", "finished", "recovered", "unfinished", "damaged"];
const PAGE = 50;
const FRESH_MS = 15_000;
const COLUMNS: [string, string, string][] = [
  ["name", "Session", ""],
  ["state", "State", ""],
  ["started", "Started", ""],
  ["took", "Took", "number less"],
  ["steps", "Steps", "number less"],
  ["steps_per_s", "Steps/s", "number"],
  ["samples_per_s", "Samples/s", "number less"],
  ["cost", "Top finding", "wide"],
];

export function Sessions({ query }: { query: URLSearchParams }) {
  const words = query.get("q") ?? "";
  const state = query.get("state") ?? "";
  const sort = query.get("sort") ?? "started";
  const order = query.get("order") ?? "down";
  const offset = Number(query.get("offset") ?? "0") || 0;
  const picked = (query.get("pick") ?? "").split(",").filter(Boolean);
  const asked = new URLSearchParams({ q: words, state, sort, order, offset: String(offset), limit: String(PAGE) });
  const found = useLoaded<SessionPage>(`/sessions?${asked}`, { every: FRESH_MS });
  const [edited, edit] = useState<SessionBrief | null>(null);
  const pick = (key: string, on: boolean) => {
    const next = on ? [...picked.filter((one) => one !== key), key].slice(-2) : picked.filter((one) => one !== key);
    change({ pick: next.join(",") }, false);
  };
  const both = picked.length === 2 ? new URLSearchParams({ before: picked[0] ?? "", after: picked[1] ?? "" }) : null;
  return (
    <section aria-labelledby="sessions-title">
      <h1 id="sessions-title">Sessions</h1>
      <div class="controls">
        <label>
          State
          <select value={state} onChange={(event) => change({ state: event.currentTarget.value, offset: null })}>
            <option value="">any</option>
            {STATES.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        {both ? <a href={`/compare?${both}`}>Compare the two ticked</a> : <a href="/compare">Compare two sessions</a>}
        <span class="quiet" role="status">
          {picked.length === 1 ? "one ticked; tick another one to compare them" : ""}
          {picked.length === 2 ? "two ticked: the one ticked first is before" : ""}
        </span>
      </div>
      {found.problem && <Failed problem={found.problem} again={found.again} />}
      {!found.value && !found.problem && <Waiting what="Reading sessions" />}
      {found.value && !found.value.items.length && (
        <p class="quiet">{words || state ? "No session matches." : "The served folders contain no sessions."}</p>
      )}
      {found.value && found.value.items.length > 0 && (
        <>
          <div class="table">
            <table>
              <thead>
                <tr>
                  <th>
                    <span class="spoken">Tick to compare</span>
                  </th>
                  {COLUMNS.map(([name, title, kind]) => (
                    <Sorted key={name} name={name} title={title} kind={kind} sort={sort} order={order} />
                  ))}
                  <th>
                    <span class="spoken">Edit</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {found.value.items.map((brief) => (
                  <Row key={brief.key} brief={brief} picked={picked.includes(brief.key)} pick={pick} edit={() => edit(brief)} />
                ))}
              </tbody>
            </table>
          </div>
          <Pager offset={found.value.offset} total={found.value.total} next={found.value.next_offset} />
        </>
      )}
      {edited && (
        <Edit
          brief={edited}
          close={(changed) => {
            edit(null);
            if (changed) found.again();
          }}
        />
      )}
    </section>
  );
}

interface Column {
  name: string;
  title: string;
  kind: string;
  sort: string;
  order: string;
}

function Sorted({ name, title, kind, sort, order }: Column) {
  const mine = sort === name;
  const first = name === "name" || name === "state" ? "up" : "down";
  const next = mine ? (order === "up" ? "down" : "up") : first;
  return (
    <th class={kind} aria-sort={mine ? (order === "up" ? "ascending" : "descending") : "none"}>
      <button
        class="sort"
        onClick={() => change({ sort: name === "started" ? null : name, order: next === "down" ? null : next, offset: null })}
      >
        {title}
      </button>
    </th>
  );
}

interface OneRow {
  brief: SessionBrief;
  picked: boolean;
  pick: (key: string, on: boolean) => void;
  edit: () => void;
}

function Row({ brief, picked, pick, edit }: OneRow) {
  const { label } = brief;
  const name = label.name || brief.name;
  return (
    <tr>
      <td>
        <input
          type="checkbox"
          checked={picked}
          aria-label={`Compare ${name}`}
          onChange={(event) => pick(brief.key, event.currentTarget.checked)}
        />
      </td>
      <td class="named">
        <a href={`/sessions/${brief.key}`} title={brief.path}>
          {name}
        </a>{" "}
        {label.tags.map((tag) => (
          <button key={tag} class="tag" title={`Sessions with ${tag}`} onClick={() => change({ q: tag, offset: null })}>
            {tag}
          </button>
        ))}
        {brief.arguments && (
          <small class="one-line" title={brief.arguments}>
            {brief.arguments}
          </small>
        )}
        {label.note && (
          <small class="note" title={label.note}>
            {label.note}
          </small>
        )}
      </td>
      <td>
        <State state={brief.state} />
        {brief.role && <small>{brief.role}</small>}
        {brief.pid !== null && <small>job {brief.pid}, above</small>}
      </td>
      <td class="short">{format.when(brief.started_unix_s)}</td>
      <td class="number less">{brief.wall_ns ? format.lasting(brief.wall_ns) : ""}</td>
      <td class="number less">{brief.steps ? format.count(brief.steps) : ""}</td>
      <td class="number">{format.rate(brief.steps_per_s)}</td>
      <td class="number less">{format.rate(brief.samples_per_s)}</td>
      <td class="wide">{brief.problem ? brief.problem : <Top top={brief.top} findings={brief.findings} steps={brief.steps} />}</td>
      <td>
        <button aria-label={`Edit ${name}`} title="Rename, tags, note, delete" onClick={edit}>
          Edit
        </button>
      </td>
    </tr>
  );
}

/** Name, tags and note of a session, and its deletion, which asks for its name. */
function Edit({ brief, close }: { brief: SessionBrief; close: (changed: boolean) => void }) {
  const [label, set] = useState<SessionLabel>(brief.label);
  const [tags, setTags] = useState(brief.label.tags.join(", "));
  const [typed, type] = useState("");
  const [deleting, ask] = useState(false);
  const [problem, fail] = useState("");
  const opened = useRef(false);
  const failed = (error: unknown) => fail((error as Problem).message);
  const save = () => {
    const words = [...new Set(tags.split(",").map((tag) => tag.trim()))].filter(Boolean);
    send<SessionBrief>("POST", `/sessions/${brief.key}/label`, { ...label, tags: words }).then(() => close(true), failed);
  };
  const drop = () => {
    remove<Deleted>(`/sessions/${brief.key}?${new URLSearchParams({ name: typed })}`).then(() => close(true), failed);
  };
  return (
    <dialog
      class="edit"
      aria-labelledby="edit-title"
      onClose={() => close(false)}
      ref={(place) => {
        if (place && !opened.current) {
          opened.current = true;
          place.showModal();
        }
      }}
    >
      <h2 id="edit-title">{brief.name}</h2>
      <p class="quiet">Name, tags and note are kept for you, not in the session.</p>
      <label>
        Name
        <input
          value={label.name}
          maxLength={200}
          placeholder={brief.name}
          onInput={(event) => set({ ...label, name: event.currentTarget.value.trim() })}
        />
      </label>
      <label>
        Tags, with commas
        <input value={tags} maxLength={900} placeholder="baseline, v100" onInput={(event) => setTags(event.currentTarget.value)} />
      </label>
      <label>
        Note
        <textarea rows={3} maxLength={4000} value={label.note} onInput={(event) => set({ ...label, note: event.currentTarget.value })} />
      </label>
      {problem && (
        <p class="failed" role="alert">
          {problem}
        </p>
      )}
      <div class="controls">
        <button class="main" onClick={save}>
          Save
        </button>
        <button onClick={() => close(false)}>Cancel</button>
        <button class="danger" aria-expanded={deleting} disabled={brief.pid !== null} onClick={() => ask(!deleting)}>
          Delete…
        </button>
      </div>
      {deleting && (
        <div class="deleting">
          <p>
            This deletes <code>{brief.path}</code> for ever. To confirm, type <b>{brief.name}</b>
          </p>
          <div class="controls">
            <input aria-label="Name of the session to delete" value={typed} onInput={(event) => type(event.currentTarget.value)} />
            <button class="danger" disabled={typed !== brief.name} onClick={drop}>
              Delete for ever
            </button>
          </div>
        </div>
      )}
    </dialog>
  );
}

function Pager({ offset, total, next }: { offset: number; total: number; next: number | null }) {
  if (!offset && next === null) return null;
  const last = next === null ? total : next;
  return (
    <nav class="pager" aria-label="Pages of sessions">
      <button disabled={!offset} onClick={() => change({ offset: String(Math.max(0, offset - PAGE)) })}>
        Previous
      </button>
      <span>
        {offset + 1} to {last} of {total}
      </span>
      <button disabled={next === null} onClick={() => change({ offset: String(next) })}>
        Next
      </button>
    </nav>
  );
}
