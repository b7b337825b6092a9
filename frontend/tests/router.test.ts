/** The state of a page in its address. */
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { at, went } from "./page";

const { change, go, onClick } = await import("../src/router");

beforeEach(() => at("/session/s?find=a%26b&from=1"));

test("a change leaves other words, and null or nothing takes one out", () => {
  change({ to: "2", from: null });
  assert.deepEqual(went, ["/session/s?find=a%26b&to=2"]);
  change({ find: "", to: null });
  assert.equal(went.at(-1), "/session/s");
});

test("signs of addresses in a word stay in it", () => {
  change({ find: "x=1&y#z <b>" });
  assert.equal(new URLSearchParams(location.search).get("find"), "x=1&y#z <b>");
  assert.equal(new URLSearchParams(location.search).get("from"), "1");
});

test("a change that back does not return from replaces the address", () => {
  change({ from: "3" }, false);
  assert.deepEqual(went, ["replaced /session/s?find=a%26b&from=3"]);
});

test("going somewhere leaves the state behind", () => {
  go("/compare?a=b");
  assert.deepEqual(went, ["/compare?a=b"]);
});

function click(href: string | null, more: object = {}, link: object = {}): boolean {
  let stopped = false;
  const found = { getAttribute: () => href, hasAttribute: () => false, target: "", ...link };
  onClick({ target: { closest: () => found }, button: 0, preventDefault: () => (stopped = true), ...more } as unknown as MouseEvent);
  return stopped;
}

test("links of the page are followed in it, all others by the browser", () => {
  assert.ok(click("/sessions"));
  assert.deepEqual(went, ["/sessions"]);
  for (const other of ["/api/v1/sessions", "https://example.org/", "//example.org/x", "#part", "", null]) assert.ok(!click(other), String(other));
  assert.ok(!click("/sessions", { ctrlKey: true }));
  assert.ok(!click("/sessions", { button: 1 }));
  assert.ok(!click("/sessions", {}, { target: "_blank" }));
  assert.ok(!click("/sessions", {}, { hasAttribute: (name: string) => name === "download" }));
  assert.deepEqual(went, ["/sessions"]);
});
