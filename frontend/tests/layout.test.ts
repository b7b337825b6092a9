/** Where lanes are drawn. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { TimelineSeries, Track } from "../src/generated/api";
import { CURVE, curveAt, FEW, GROUP, LANE, laneAt, layout, topOf, type Words, yOf } from "../src/timeline/layout";

const track = (key: string, group: string, first_lane: number, lanes: number, trace = ""): Track =>
  ({ key, group, title: key, first_lane, lanes, trace, bound_ns: 0 }) as Track;
const series = (key: string, group: string): TimelineSeries => ({ key, group, title: key }) as TimelineSeries;
const words = (some: Partial<Words> = {}): Words => ({ open: new Set(), fold: new Set(), pin: new Set(), ...some });

const TRACKS = [track("steps", "job", 0, 1), track("t1", "job", 1, 12), track("none", "job", 13, 0), track("op", "trace", 13, 2, "x")];
const SERIES = [series("cpu", "host"), series("memory", "host")];

test("nothing to draw has no height, and nothing is found in it", () => {
  const made = layout([], [], words(), 100);
  assert.deepEqual(made, { rows: [], curves: [], heads: [], height: 0, pinned: 0 });
  assert.equal(laneAt(made, 5, 0), null);
  assert.equal(curveAt(made, 5, 0), null);
  assert.equal(topOf(made, 0), null);
});

test("what is drawn lies below each other without overlap", () => {
  const made = layout(TRACKS, SERIES, words(), 100);
  const boxes = [
    ...made.heads.map((one) => [one.top, GROUP]),
    ...made.curves.map((one) => [one.top, CURVE]),
    ...made.rows.map((one) => [one.top, one.height]),
  ].sort(([one], [other]) => (one ?? 0) - (other ?? 0));
  let end = 0;
  for (const [top, tall] of boxes) {
    assert.equal(top, end);
    end += tall ?? 0;
  }
  assert.equal(end, made.height);
  assert.deepEqual(made.heads.map((one) => one.text), ["host", "job", "trace"]);
  assert.deepEqual(made.rows.map((one) => [one.track.key, one.lanes]), [["steps", 1], ["t1", FEW], ["op", 2]]);
});

test("every lane that is drawn is found where it is drawn", () => {
  for (const made of [layout(TRACKS, SERIES, words({ open: new Set(["t1"]) }), 100), layout(TRACKS, SERIES, words({ pin: new Set(["t1", "cpu"]) }), 500)]) {
    for (const lane of [0, 1, 5, 13, 14]) {
      const found = topOf(made, lane);
      assert.ok(found && !found.hidden);
      for (const scroll of [0, 17]) assert.equal(laneAt(made, yOf({ top: found.top, pinned: found.row.pinned }, scroll) + LANE / 2, scroll), lane);
    }
    for (const one of made.curves) assert.equal(curveAt(made, yOf(one, 0) + 1, 0), one);
  }
});

test("lanes that are folded away are hidden in the last that is drawn", () => {
  const made = layout(TRACKS, [], words({ fold: new Set(["t1"]) }), 100);
  const [first, last] = [topOf(made, 1), topOf(made, 12)];
  assert.ok(first && last);
  assert.equal(last.hidden, true);
  assert.equal(last.top, first.top);
  assert.equal(topOf(made, 99), null);
});

test("what is pinned stands first, once, and stays in sight only where there is room", () => {
  const pin = new Set(["memory", "op", "gone", "none"]);
  const made = layout(TRACKS, SERIES, words({ pin }), 500);
  assert.deepEqual(made.heads.map((one) => one.text), ["pinned", "host", "job"]);
  assert.equal(made.pinned, GROUP + CURVE + 2 * LANE + 3);
  assert.deepEqual(made.curves.map((one) => [one.series.key, one.index, one.pinned]), [["memory", 1, true], ["cpu", 0, false]]);
  assert.equal(made.rows.filter((one) => one.track.key === "op").length, 1);
  assert.equal(layout(TRACKS, SERIES, words({ pin }), 20).pinned, 0);
  assert.equal(layout(TRACKS, SERIES, words({ pin: new Set(["gone"]) }), 500).pinned, 0);
});

test("the lanes of the trace that was asked for stand below the steps", () => {
  const made = layout(TRACKS, SERIES, words(), 100, "x");
  assert.deepEqual(made.rows.map((one) => one.track.key), ["steps", "op", "t1"]);
});
