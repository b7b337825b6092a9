/** What stands beside the lanes: names, how many are merged, and what folds and opens them. */
import * as format from "../format";
import { change } from "../router";
import { CURVE, FEW, type Curve, type Head, type Layout, type Row } from "./layout";
import type { Drawn } from "./scene";
import { toggle, wordsOf } from "./state";

export function Labels({ made, drawn, query }: { made: Layout; drawn: Drawn | null; query: URLSearchParams }) {
  const some = (pinned: boolean) => [
    ...made.heads.filter((head) => head.pinned === pinned).map((head) => <GroupLabel key={`${head.text} ${head.fold}`} head={head} query={query} />),
    ...made.curves
      .filter((row) => row.pinned === pinned)
      .map((row) => <CurveLabel key={row.series.key} row={row} merged={drawn?.looks.get(row.series.key) ?? 0} query={query} />),
    ...made.rows
      .filter((row) => row.pinned === pinned)
      .map((row) => <TrackLabel key={row.track.key} row={row} merged={drawn?.merged.get(row.track.key) ?? 0} query={query} />),
  ];
  return (
    <div class="tl-labels" style={{ height: `${made.height}px` }}>
      {made.pinned > 0 && (
        <div class="tl-pinned" style={{ height: `${made.pinned}px` }}>
          {some(true)}
        </div>
      )}
      {some(false)}
    </div>
  );
}

/** Pins a lane to the top, or lets it go. */
function Pin({ query, lane, title }: { query: URLSearchParams; lane: string; title: string }) {
  const pinned = wordsOf(query, "pin").has(lane);
  return (
    <button
      class="tl-pin"
      aria-pressed={pinned}
      aria-label={`Pin ${title} to the top`}
      title={pinned ? "Unpin" : "Pin to the top"}
      onClick={() => toggle(query, "pin", lane)}
    >
      {pinned ? "unpin" : "pin"}
    </button>
  );
}

function GroupLabel({ head, query }: { head: Head; query: URLSearchParams }) {
  const { text, top, fold, bound } = head;
  const off = bound ? `: times may be off by ${format.ns(bound)} against those of the first member, as wide as the bar beside it` : "";
  return (
    <b class="tl-group" style={{ top: `${top}px` }} title={text + off}>
      {fold ? (
        <button class="tl-link" aria-expanded={!wordsOf(query, "fold").has(fold)} onClick={() => toggle(query, "fold", fold)}>
          {text}
        </button>
      ) : (
        text
      )}
    </b>
  );
}

function CurveLabel({ row, merged, query }: { row: Curve; merged: number; query: URLSearchParams }) {
  const { series, top } = row;
  return (
    <div class="tl-track" style={{ top: `${top}px`, height: `${CURVE}px` }} title={`${series.title}: ${series.about}`}>
      {series.title}
      <span class="tl-badges">
        <i title="Maximum of the whole run: the top of the lane">to {format.measured(series.most, series.unit)}</i>
        {merged > 0 && <i title="Samples merged with neighbours at this zoom: each column shows minimum and maximum">{format.count(merged)} merged</i>}
      </span>
      <Pin query={query} lane={series.key} title={series.title} />
    </div>
  );
}

function TrackLabel({ row, merged, query }: { row: Row; merged: number; query: URLSearchParams }) {
  const { track, top, height, lanes } = row;
  const more = track.lanes - lanes;
  const unfold = () => {
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
        title={`${track.group}, ${track.title}: ${format.count(track.spans)} spans, ${track.lanes} deep`}
        aria-expanded={track.lanes > 1 ? more === 0 : undefined}
        disabled={track.lanes < 2}
        onClick={unfold}
      >
        {track.title}
      </button>
      {(merged > 0 || more > 0) && (
        <span class="tl-badges">
          {more > 0 && <i title="Hidden lanes: click the title to show them">+{more} lanes</i>}
          {merged > 0 && <i title="Spans merged with neighbours at this zoom">{format.count(merged)} merged</i>}
        </span>
      )}
      <Pin query={query} lane={track.key} title={track.title} />
    </div>
  );
}
