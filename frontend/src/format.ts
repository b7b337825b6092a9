/** Numbers as text, as the terminal's reports write them: what tests/numbers.json holds is Python's. */
import { COMPONENTS } from "./generated/components";
import { METRICS, WORDS } from "./generated/metrics";

/** A decimal text as Python writes it: halfway between two, the one whose last digit is even. */
function fixed(value: number, places: number): string {
  const size = Math.abs(value);
  if (size >= 1e21) return Number.isFinite(value) ? BigInt(value).toString() : String(value);
  const halves = size * 2 ** (places + 1);
  if (halves % 2 !== 1) return value.toFixed(places);
  const below = Math.floor(size * 10 ** places);
  return ((Math.sign(value) * (below + (below % 2))) / 10 ** places).toFixed(places);
}

const grouped = (text: string): string => text.replace(/\B(?=(\d{3})+(?!\d))(?<!\.\d*)/g, ",");
const bare = (text: string): string => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);

function scaled(value: number): string {
  const size = Math.abs(value);
  return bare(fixed(value, size >= 100 || Number.isInteger(value) ? 0 : size >= 10 ? 1 : 2));
}

/** Share of a unit from which three digits round up to it. */
const ROUNDS_UP = 0.9995;

function inUnits(value: number, units: [number, string][]): string {
  const [step, unit] = units.find(([size]) => Math.abs(value) >= ROUNDS_UP * size) ?? [0, units.at(-1)?.[1]];
  return `${step ? scaled(value / step) : "0"} ${unit}`;
}

const TIMES: [number, string][] = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "us"],
  [1, "ns"],
];

export function ns(value: number): string {
  return inUnits(value, TIMES);
}

/** How long a run takes, or when in it something is: from two minutes on in minutes and hours. */
export function lasting(value: number): string {
  return value >= 120e9 ? wall(value) : ns(value);
}

function wall(value: number): string {
  const seconds = Math.round(value / 1e9);
  const hours = Math.floor(seconds / 3600);
  const minutes = Math.floor((seconds % 3600) / 60);
  return hours ? `${hours} h ${minutes} min` : `${minutes} min ${seconds % 60} s`;
}

const SIZES: [number, string][] = [
  [2 ** 30, "GiB"],
  [2 ** 20, "MiB"],
  [2 ** 10, "KiB"],
  [1, "B"],
];

export function bytes(value: number): string {
  return inUnits(value, SIZES);
}

const FLOWS: [number, string][] = [
  [1e9, "GB/s"],
  [1e6, "MB/s"],
  [1e3, "kB/s"],
  [1, "B/s"],
];

/** What disks and networks carry, in their makers' units. */
export function flow(value: number): string {
  return inUnits(value, FLOWS);
}

export function percent(ratio: number): string {
  return `${fixed(100 * ratio, Math.abs(ratio) >= 0.0995 || ratio === 0 ? 0 : 1)} %`;
}

/** A change as a share: `+1.2 %`, `−0.3 %`. */
export function signed(ratio: number): string {
  return `${ratio > 0 ? "+" : ratio < 0 ? "−" : ""}${percent(Math.abs(ratio))}`;
}

export function rate(value: number | null): string {
  if (value === null) return "";
  const size = Math.abs(value);
  return grouped(fixed(value, size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2));
}

/** A number of a chart or a factor: three digits, without zeros at the end. */
export function short(value: number): string {
  return grouped(scaled(value));
}

/** Hundreds of these stand on a page; asking for a locale each time took a third of its rendering. */
export function count(value: number): string {
  return grouped(Number.isInteger(value) ? fixed(value, 0) : String(value));
}

/** A measured value with its unit. */
export function measured(value: number, unit: string): string {
  if (unit === "ns") return ns(value);
  if (unit === "bytes") return bytes(value);
  if (unit === "bytes/s") return flow(value);
  if (unit === "ratio") return percent(value);
  const number = Math.abs(value) < SHOWN_FROM ? "0" : Number.isInteger(value) ? count(value) : rate(value);
  return `${number}${unit && unit !== "count" ? ` ${number === "1" ? singular(unit) : unit}` : ""}`;
}

/** Smaller values are written as 0. */
const SHOWN_FROM = 0.005;

/** `thread` for `threads`; a unit that is no plural word stays as it is. */
export function singular(unit: string): string {
  return /^\p{L}{2,}s$/u.test(unit) ? unit.replace(/(ch|ss)es$|s$/, "$1") : unit;
}

/** `1 step`, `2 steps`. */
export function plural(value: number, word: string): string {
  return `${count(value)} ${word}${value === 1 ? "" : "s"}`;
}

export function when(unix_s: number): string {
  if (!unix_s) return "";
  const at = new Date(unix_s * 1000);
  const year = at.getFullYear() === new Date().getFullYear() ? undefined : "numeric";
  return at.toLocaleString("en-GB", { day: "numeric", month: "short", year, hour: "2-digit", minute: "2-digit" });
}

/** The time of day. */
export function clock(unix_ms: number): string {
  return new Date(unix_ms).toLocaleTimeString("en-GB");
}

/** What a table says; names of sessions may be those that every object has, like `constructor`. */
const own = (table: Record<string, string>, name: string) => (Object.hasOwn(table, name) ? table[name] : undefined);

/** A metric of evidence in words, as the report says it. */
export function metric(name: string): string {
  return own(METRICS, name) ?? name.split("_").map((word) => own(WORDS, word) ?? word).join(" ");
}

export function component(name: string): string {
  return own(COMPONENTS, name) ?? name;
}
