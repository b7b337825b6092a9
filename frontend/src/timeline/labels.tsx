/** What stands beside the lanes: names, how many are merged, and what folds and opens them. */
import * as format from "../format";
import { change } from "../router";
import { CURVE, FEW, type Curve, type Head, type Layout, type Row } from "./layout";
import type { Drawn } from "./paint";
import { wordsOf } from "./state";

export function Labels({ made, drawn, query }: { made: Layout; drawn: Drawn | null; query: URLSearchParams }) {
  return (
    <div class="tl-labels" style={{ height: `${made.height}px` }}>
      {made.heads.map((head) => (
        <GroupLabel key={head.text} head={head} query={query} />
      ))}
      {made.curves.map((row) => (
        <CurveLabel key={row.series.key} row={row} merged={drawn?.looks.get(row.series.key) ?? 0} />
      ))}
      {made.rows.map((row) => (
        <TrackLabel key={row.track.key} row={row} merged={drawn?.merged.get(row.track.key) ?? 0} query={query} />
      ))}
    </div>
  );
}

function GroupLabel({ head, query }: { head: Head; query: URLSearchParams }) {
  const { text, top, fold } = head;
  const folded = wordsOf(query, "fold");
  const toggle = () => {
    if (!folded.delete(fold)) folded.add(fold);
    change({ fold: [...folded].join(",") });
  };
  return (
    <b class="tl-group" style={{ top: `${top}px` }} title={text}>
      {fold ? (
        <button class="tl-link" aria-expanded={!folded.has(fold)} onClick={toggle}>
          {text}
        </button>
      ) : (
        text
      )}
    </b>
  );
}

function CurveLabel({ row, merged }: { row: Curve; merged: number }) {
  const { series, top } = row;
  return (
    <div class="tl-track" style={{ top: `${top}px`, height: `${CURVE}px` }} title={`${series.title}: ${series.about}`}>
      {series.title}
      <span class="tl-badges">
        <i title="Its highest value in the whole run: the top of the lane">to {format.measured(series.most, series.unit)}</i>
        {merged > 0 && <i title="Looks that are merged with neighbours at this zoom: each column has their lowest and highest">{format.count(merged)} merged</i>}
      </span>
    </div>
  );
}

function TrackLabel({ row, merged, query }: { row: Row; merged: number; query: URLSearchParams }) {
  const { track, top, height, lanes } = row;
  const more = track.lanes - lanes;
  const toggle = () => {
    const [open, fold] = [wordsOf(query, "open"), wordsOf(query, "fold")];
    const { key } = track;
    if (fold.delete(key)) open.delete(key);
    else if (open.delete(key) || track.lanes <= FEW) fold.add(key);
    else open.add(key);
    change({ fold: [...fold].join(","), open: [...open].join(",") });
  };
  return (
    <div class={lanes === 1 ? "tl-track tl-one" : "tl-track"} style={{ top: `${top}px`, height: `${height}px` }}>
      <button
        class="tl-link"
        title={`${track.title}: ${format.count(track.spans)} spans, ${track.lanes} deep`}
        aria-expanded={track.lanes > 1 ? more === 0 : undefined}
        disabled={track.lanes < 2}
        onClick={toggle}
      >
        {track.title}
      </button>
      {(merged > 0 || more > 0) && (
        <span class="tl-badges">
          {more > 0 && <i title="Lanes below that are not shown: click the title">+{more} lanes</i>}
          {merged > 0 && <i title="Spans that are merged with neighbours at this zoom">{format.count(merged)} merged</i>}
        </span>
      )}
    </div>
  );
}
