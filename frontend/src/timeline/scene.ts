/** What is to be drawn, and what was. */
import type { SpanName } from "../generated/api";
import type { Curves } from "./curves";
import type { Layout } from "./layout";
import type { Tile, Tiles } from "./tiles";
import type { View } from "./view";

/** A span, as far as it is drawn. */
export interface Place {
  lane: number;
  start: number;
  dur: number;
}

export interface Scene {
  view: View;
  layout: Layout;
  scroll: number;
  names: SpanName[];
  /** Names that a search leaves; null: all. */
  matching: Uint8Array | null;
  tiles: Tiles<Tile>;
  curves: Tiles<Curves>;
  lanesPerTile: number;
  steps: number | null;
  selected: Place | null;
  /** What led to the selected span, and what it led to. */
  links: { out: boolean; to: Place }[];
  range: View | null;
}

export interface Drawn {
  marks: number;
  spans: number;
  /** Spans that stand in marks with others, by track. */
  merged: Map<string, number>;
  /** Looks at resources that stand in points with others, by series. */
  looks: Map<string, number>;
  arrows: number;
  /** Tracks that begin below what is in sight. */
  below: number;
  missing: boolean;
}
