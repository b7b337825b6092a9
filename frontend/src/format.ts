/** Numbers as text: three significant digits, like the terminal's reports. */
import { COMPONENTS } from "./generated/components";
import { METRICS, WORDS } from "./generated/metrics";

function digits(value: number): string {
  const size = Math.abs(value);
  const places = size >= 100 || Number.isInteger(value) ? 0 : size >= 10 ? 1 : 2;
  return value.toLocaleString("en-US", { maximumFractionDigits: places });
}

const TIMES: [number, string][] = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
  [1, "ns"],
];

export function ns(value: number): string {
  if (value >= 120e9) return wall(value);
  const [step, unit] = TIMES.find(([size]) => Math.abs(value) >= size) ?? [1, "ns"];
  return `${digits(value / step)} ${unit}`;
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
  const [step, unit] = SIZES.find(([size]) => value >= size) ?? [1, "B"];
  return `${digits(value / step)} ${unit}`;
}

const FLOWS: [number, string][] = [
  [1e9, "GB/s"],
  [1e6, "MB/s"],
  [1e3, "kB/s"],
  [1, "B/s"],
];

/** What disks and networks carry, in their makers' units. */
export function flow(value: number): string {
  const [step, unit] = FLOWS.find(([size]) => value >= size) ?? [1, "B/s"];
  return `${digits(value / step)} ${unit}`;
}

export function percent(ratio: number): string {
  const value = 100 * ratio;
  return `${Math.abs(value) >= 10 || value === 0 ? value.toFixed(0) : value.toFixed(1)} %`;
}

/** A change as a share: `+1.2 %`, `−0.3 %`. */
export function signed(ratio: number): string {
  return `${ratio > 0 ? "+" : ratio < 0 ? "−" : ""}${percent(Math.abs(ratio))}`;
}

export function rate(value: number | null): string {
  return value === null ? "" : digits(value);
}

/** Hundreds of these stand on a page; asking for a locale each time took a third of its rendering. */
export function count(value: number): string {
  return Number.isInteger(value) ? String(value).replace(/\B(?=(\d{3})+$)/g, ",") : value.toLocaleString("en-US");
}

/** A measured value with its unit. */
export function measured(value: number, unit: string): string {
  if (unit === "ns") return ns(value);
  if (unit === "bytes") return bytes(value);
  if (unit === "bytes/s") return flow(value);
  if (unit === "ratio") return percent(value);
  const number = digits(value);
  return `${number}${unit && unit !== "count" ? ` ${number === "1" ? singular(unit) : unit}` : ""}`;
}

/** `thread` for `threads`; a unit that is no plural word stays as it is. */
function singular(unit: string): string {
  return /^[a-z]{2,}s$/.test(unit) ? unit.replace(/(ch|ss)es$|s$/, "$1") : unit;
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

export function ago(unix_s: number): string {
  const seconds = Math.max(0, Date.now() / 1000 - unix_s);
  return seconds < 90 ? `${Math.round(seconds)} s ago` : `${Math.round(seconds / 60)} min ago`;
}

/** A metric of evidence in words, as the report says it. */
export function metric(name: string): string {
  return METRICS[name] ?? name.split("_").map((word) => WORDS[word] ?? word).join(" ");
}

export function component(name: string): string {
  return COMPONENTS[name] ?? name;
}
