/** Numbers as text: those of Python, and what the page alone writes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as format from "../src/format";
import numbers from "./numbers.json";

const WRITERS: Record<string, (value: never) => string> = {
  ns: format.ns,
  bytes: format.bytes,
  percent: format.percent,
  rate: format.rate,
  measured: (value: number) => format.measured(value, "threads"),
  singular: format.singular,
};

test("numbers are written as Python writes them", () => {
  const wrong = numbers.map(([name, value, text]) => [name, value, text, WRITERS[name as string]?.(value as never)]).filter(([, , text, made]) => made !== text);
  assert.deepEqual(wrong, []);
  assert.ok(numbers.length > 300);
});

test("a run's length is in minutes from two minutes on", () => {
  assert.equal(format.lasting(119.4e9), "119 s");
  assert.equal(format.lasting(125e9), "2 min 5 s");
  assert.equal(format.lasting(3599.6e9), "1 h 0 min");
  assert.equal(format.lasting(90 * 3600e9), "90 h 0 min");
  assert.equal(format.lasting(-5e9), "-5 s");
});

test("what disks carry is in their makers' units, whatever its sign", () => {
  assert.equal(format.flow(0), "0 B/s");
  assert.equal(format.flow(1_500_000), "1.5 MB/s");
  assert.equal(format.flow(-2e9), "-2 GB/s");
  assert.equal(format.measured(1e3, "bytes/s"), "1 kB/s");
});

test("counts have separators between thousands alone", () => {
  assert.deepEqual([0, 999, 1000, 1234567, -1000, -999, 1e21].map(format.count), [
    "0",
    "999",
    "1,000",
    "1,234,567",
    "-1,000",
    "-999",
    "1,000,000,000,000,000,000,000",
  ]);
  assert.equal(format.count(1234.5678), "1,234.5678");
  assert.equal(format.rate(null), "");
});

test("numbers of charts drop zeros at the end", () => {
  assert.deepEqual([0, 2, 2.5, 12.04, 1812.4, 0.1 + 0.2].map(format.short), ["0", "2", "2.5", "12", "1,812", "0.3"]);
});

test("changes have a sign, and none has none", () => {
  assert.deepEqual([0.012, -0.003, 0, -0.5].map(format.signed), ["+1.2 %", "−0.3 %", "0 %", "−50 %"]);
});

test("a measured value has its unit, in the singular where it is one", () => {
  assert.equal(format.measured(1, "CPUs"), "1 CPU");
  assert.equal(format.measured(0.0001, "threads"), "0 threads");
  assert.equal(format.measured(0.25, "ratio"), "25 %");
  assert.equal(format.measured(3, "count"), "3");
  assert.equal(format.plural(1, "step"), "1 step");
  assert.equal(format.plural(2000, "step"), "2,000 steps");
});

test("names that every object has are names like others", () => {
  assert.equal(format.component("constructor"), "constructor");
  assert.equal(format.metric("constructor"), "constructor");
  assert.equal(format.metric("to_toString_<b>"), "to toString <b>");
});

test("no time of a session is no date", () => {
  assert.equal(format.when(0), "");
  assert.match(format.when(86400), /1970/);
});
