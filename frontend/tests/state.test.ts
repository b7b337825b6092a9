/** What the timeline says in the address. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Timeline, Track } from "../src/generated/api";
import { at, went } from "./page";

const state = await import("../src/timeline/state");

const of = (text: string) => new URLSearchParams(text);
const timeline = { begin_ns: 0, end_ns: 1e9 } as Timeline;

test("times are seconds without zeros at the end, to the nanosecond", () => {
  assert.deepEqual([0, 1, 1e9, 100e9, 1.5e9, 123_456_789, -2e9].map(state.seconds), ["0", "0.000000001", "1", "100", "1.5", "0.123456789", "-2"]);
});

test("a range in the address is one, or none", () => {
  assert.deepEqual(state.viewOf(of("from=0.5&to=1.000000001")), { from: 500_000_000, to: 1_000_000_001 });
  for (const bad of ["", "from=1", "from=2&to=1", "from=1&to=1", "from=a&to=b", "from=0&to=1e999", "from=-Infinity&to=0"]) {
    assert.equal(state.viewOf(of(bad)), null, bad);
  }
  assert.deepEqual(state.selectionOf(of("sel=1~2")), { from: 1e9, to: 2e9 });
  assert.equal(state.selectionOf(of("sel=1")), null);
  assert.equal(state.selectionOf(of("")), null);
});

test("a range is written as it is read", () => {
  for (const ns of [0, 1, 40, 1e9 + 1, 86_400e9 + 7]) {
    assert.equal(state.viewOf(of(`from=${state.seconds(ns)}&to=${state.seconds(ns + 1)}`))?.from, ns);
  }
});

test("a chosen span is written as it is read, whatever the key of its track", () => {
  for (const track of ["steps", "p12.t3", "a~b", "~", "x,y"]) {
    const chosen = { track, depth: 2, start: -5 };
    assert.deepEqual(state.chosenOf(of(new URLSearchParams({ span: state.chosenWord(chosen) }).toString())), chosen, track);
  }
  for (const bad of ["", "steps", "steps~1", "~1~2", "steps~-1~2", "steps~1.5~2", "steps~1~x", "steps~~2"]) {
    assert.equal(state.chosenOf(of(new URLSearchParams({ span: bad }).toString())), null, bad);
  }
});

test("a span deeper than its track has no lane", () => {
  const tracks = [{ key: "steps", first_lane: 3, lanes: 2 }] as Track[];
  assert.equal(state.laneOf(tracks, { track: "steps", depth: 1, start: 0 }), 4);
  assert.equal(state.laneOf(tracks, { track: "steps", depth: 2, start: 0 }), null);
  assert.equal(state.laneOf(tracks, { track: "gone", depth: 0, start: 0 }), null);
});

test("a key is taken into a word and out of it", () => {
  at("/timeline?pin=a,b");
  state.toggle(of(location.search), "pin", "c");
  assert.equal(of(location.search).get("pin"), "a,b,c");
  state.toggle(of(location.search), "pin", "a");
  assert.equal(of(location.search).get("pin"), "b,c");
  assert.equal(went.length, 2);
  assert.deepEqual([...state.wordsOf(of("pin=,a,,b,"), "pin")], ["a", "b"]);
});

test("a view stays within the run, no closer than 40 ns and no farther than all of it", () => {
  const all = state.whole(timeline);
  assert.deepEqual(state.bounded({ from: -1e15, to: 1e15 }, timeline), all);
  const close = state.bounded({ from: 5e8, to: 5e8 + 1 }, timeline);
  assert.equal(close.to - close.from, 40);
  const late = state.bounded({ from: 5e9, to: 6e9 }, timeline);
  assert.ok(late.to <= all.to + 1e-3 && late.from >= all.from);
});

test("a run without any time has a view", () => {
  const empty = { begin_ns: 7, end_ns: 7 } as Timeline;
  assert.deepEqual(state.bounded(state.whole(empty), empty), { from: 6, to: 8 });
});
