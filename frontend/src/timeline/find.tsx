/** Find: `/` leads to it, Enter and Shift-Enter walk through its hits by time, and all of them stand in a panel. */
import { useEffect, useRef, useState } from "preact/hooks";
import { get, type Problem } from "../api";
import { useLoaded } from "../data";
import * as format from "../format";
import type { Span, SpanHits } from "../generated/api";
import { useSlash } from "../hooks";
import { Failed } from "../parts/common";
import { change } from "../router";
import { at, useSettled } from "./panels";

const HITS = 50;

export interface Walk {
  /** The hit that was gone to, from 0; -1: none yet. */
  hit: number;
  /** Go to a hit; before the first comes the last. */
  go: (hit: number) => void;
  total: number | null;
}

/** Hits of the words, one after the other. */
export function useWalk(path: string, build: string, words: string, jump: (span: Span) => void, failed: (problem: Problem) => void): Walk {
  const settled = useSettled(words, 200);
  const [hit, setHit] = useState(-1);
  const newest = useRef(0);
  useEffect(() => {
    newest.current += 1;
    setHit(-1);
  }, [words, build]);
  const one = (offset: number, of = settled) => `${path}/timeline/search?${new URLSearchParams({ build, q: of, offset: String(offset), limit: "1" })}`;
  const found = useLoaded<SpanHits>(settled ? one(0) : null);
  const total = words && settled === words ? (found.value?.total ?? null) : null;
  const go = (wanted: number) => {
    if (!total) return;
    const next = ((wanted % total) + total) % total;
    const mine = (newest.current += 1);
    setHit(next);
    get<SpanHits>(one(next)).then(
      ({ items }) => {
        if (mine === newest.current && items[0]) jump(items[0]);
      },
      (problem: Problem) => failed(problem),
    );
  };
  return { hit, go, total };
}

interface Finding {
  path: string;
  build: string;
  words: string;
  walk: Walk;
}

export function Find({ words, walk, what = "a span or an op ( / )" }: Pick<Finding, "words" | "walk"> & { what?: string }) {
  const field = useSlash();
  const { hit, go, total } = walk;
  const back = () => go(hit < 0 ? -1 : hit - 1);
  return (
    <>
      <label>
        Find
        <input
          ref={field}
          type="search"
          value={words}
          placeholder={what}
          title="Enter goes to the next hit, Shift-Enter to the one before"
          onInput={(event) => change({ find: event.currentTarget.value }, false)}
          onKeyDown={(event) => {
            if (event.key !== "Enter") return;
            event.preventDefault();
            if (event.shiftKey) back();
            else go(hit + 1);
          }}
        />
      </label>
      {words && (
        <span class="tl-walk">
          <span role="status">{total === null ? "looking" : total === 0 ? "not found" : `${hit < 0 ? "" : `${format.count(hit + 1)} of `}${format.count(total)} found`}</span>
          <button disabled={!total} aria-label="Hit before" title="Hit before (Shift-Enter)" onClick={back}>
            ‹
          </button>
          <button disabled={!total} aria-label="Next hit" title="Next hit (Enter)" onClick={() => go(hit + 1)}>
            ›
          </button>
        </span>
      )}
    </>
  );
}

export function SearchPanel({ path, build, words, walk }: Finding) {
  const settled = useSettled(words, 200);
  const [offset, setOffset] = useState(0);
  useEffect(() => setOffset(0), [settled]);
  useEffect(() => {
    if (walk.hit >= 0) setOffset(walk.hit - (walk.hit % HITS));
  }, [walk.hit]);
  const query = new URLSearchParams({ build, q: settled, offset: String(offset), limit: String(HITS) });
  const found = useLoaded<SpanHits>(settled ? `${path}/timeline/search?${query}` : null);
  if (!words) return null;
  return (
    <section aria-labelledby="hits-title" class="tl-panel">
      <h2 id="hits-title">Found</h2>
      {found.problem && <Failed problem={found.problem} again={found.again} />}
      {found.value && (
        <>
          <p class="quiet">
            {found.value.total === 0 ? "No span has such a name." : `${format.count(offset + 1)} to ${format.count(offset + found.value.items.length)} of ${format.count(found.value.total)}, by time`}
          </p>
          <ul class="tl-hits">
            {found.value.items.map((span, i) => (
              <li key={`${span.lane} ${span.row}`}>
                <button class="tl-link" {...(walk.hit === offset + i ? { "aria-current": "true" } : {})} onClick={() => walk.go(offset + i)}>
                  {found.value?.names[span.name]}
                </button>{" "}
                <span class="quiet">
                  {at(span.start_ns)}, {format.ns(span.dur_ns)}
                </span>
              </li>
            ))}
          </ul>
          <div class="pager">
            {offset > 0 && <button onClick={() => setOffset(Math.max(0, offset - HITS))}>Earlier</button>}
            {found.value.next_offset !== null && <button onClick={() => setOffset(found.value?.next_offset ?? 0)}>Later</button>}
          </div>
        </>
      )}
    </section>
  );
}
