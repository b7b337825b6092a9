/** The timeline's state in the address: ?from=&to= in seconds, ?span=TRACK~DEPTH~START, ?sel=FROM~TO, ?find=, ?open=,
?fold= and ?pin= with keys of tracks and series. */
import type { Timeline, Track } from "../generated/api";
import { change } from "../router";
import type { View } from "./view";

export interface Chosen {
  track: string;
  depth: number;
  start: number;
}

const NANOS = 9;

export const seconds = (ns: number): string => (Math.round(ns) / 1e9).toFixed(NANOS).replace(/\.?0+$/, "");

/** The whole run, with some room on both sides. */
export function whole(timeline: Timeline): View {
  const room = Math.max(1, (timeline.end_ns - timeline.begin_ns) * 0.01);
  return { from: timeline.begin_ns - room, to: timeline.end_ns + room };
}

/** The part of the time that the address names; null: none, or none that makes sense. */
export function viewOf(query: URLSearchParams): View | null {
  return range(query.get("from"), query.get("to"));
}

export function selectionOf(query: URLSearchParams): View | null {
  const [from, to] = (query.get("sel") ?? "").split("~");
  return range(from ?? null, to ?? null);
}

function range(from: string | null, to: string | null): View | null {
  const low = Math.round(Number.parseFloat(from ?? "") * 1e9);
  const high = Math.round(Number.parseFloat(to ?? "") * 1e9);
  return low < high && Number.isFinite(high - low) ? { from: low, to: high } : null;
}

export function chosenOf(query: URLSearchParams): Chosen | null {
  const [, track, depth, start] = /^(.*)~(.*)~(.*)$/.exec(query.get("span") ?? "") ?? []; // a track's key may hold a ~
  if (!track || !depth || !start) return null;
  const chosen = { track, depth: Number(depth), start: Number(start) };
  return Number.isInteger(chosen.depth) && Number.isInteger(chosen.start) && chosen.depth >= 0 ? chosen : null;
}

export const chosenWord = (chosen: Chosen): string => `${chosen.track}~${chosen.depth}~${chosen.start}`;

export function laneOf(tracks: Track[], chosen: Chosen): number | null {
  const track = tracks.find((t) => t.key === chosen.track);
  return track && chosen.depth < track.lanes ? track.first_lane + chosen.depth : null;
}

export function wordsOf(query: URLSearchParams, name: string): Set<string> {
  return new Set((query.get(name) ?? "").split(",").filter(Boolean));
}

/** Take a key into a word of the address, or out of it. */
export function toggle(query: URLSearchParams, name: string, key: string): void {
  const words = wordsOf(query, name);
  if (!words.delete(key)) words.add(key);
  change({ [name]: [...words].join(",") });
}

/** As close as a range may come, and as far, within what there is. */
export function bounded(view: View, timeline: Timeline): View {
  const all = whole(timeline);
  const most = all.to - all.from;
  const size = Math.min(most, Math.max(40, view.to - view.from));
  const middle = (view.from + view.to) / 2;
  const from = Math.min(all.to - size, Math.max(all.from, middle - size / 2));
  return { from, to: from + size };
}

/** The part of the time around a span, as the address says it. */
export function around(start: number, dur: number): { from: string; to: string } {
  const room = Math.max(20, dur) * 0.5;
  return { from: seconds(start - room), to: seconds(start + dur + room) };
}
