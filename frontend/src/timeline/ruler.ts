/** The times above the lanes. */
import type { View } from "./view";

const APART_PX = 110;

/** A round step of at least so many nanoseconds. */
function round(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((n) => n * power).find((step) => step >= least) ?? 10 * power;
}

export function drawRuler(canvas: HTMLCanvasElement, view: View, width: number, height: number, scale: number, css: Record<string, string>): void {
  canvas.width = width * scale;
  canvas.height = height * scale;
  const context = canvas.getContext("2d", { alpha: false });
  if (!context) return;
  context.scale(scale, scale);
  context.fillStyle = css.ground ?? "#fff";
  context.fillRect(0, 0, width, height);
  context.font = '11px system-ui, "DejaVu Sans", sans-serif';
  context.textBaseline = "middle";
  const step = Math.max(1, round(((view.to - view.from) * APART_PX) / Math.max(1, width)));
  const places = Math.min(9, Math.max(0, Math.ceil(9 - Math.log10(step) - 1e-9)));
  for (let tick = Math.ceil(view.from / step) * step; tick < view.to; tick += step) {
    const x = Math.round(((tick - view.from) / (view.to - view.from)) * width);
    context.fillStyle = css.line ?? "#ccc";
    context.fillRect(x, 0, 1, height);
    context.fillStyle = css.quiet ?? "#555";
    context.fillText(`${(tick / 1e9).toFixed(places)} s`, x + 4, height / 2);
  }
}
