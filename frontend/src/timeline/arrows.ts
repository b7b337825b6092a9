/** Arrows from what led to the chosen span, and to what it led to: as the profiler wrote them, of this span alone. */
import { LANE, topOf, yOf } from "./layout";
import type { Place, Scene } from "./scene";

const HEAD_PX = 5;
const BEND_PX = 24;

/** `x`: where a time is, in the canvas's pixels. How many were drawn. */
export function drawArrows(context: CanvasRenderingContext2D, scene: Scene, x: (ns: number) => number, scale: number, ink: string): number {
  const { selected, layout, scroll } = scene;
  if (!selected || !scene.links.length) return 0;
  let drawn = 0;
  const floor = layout.pinned * scale;
  context.save();
  context.strokeStyle = context.fillStyle = ink;
  context.lineWidth = 1.5 * scale;
  const end = (place: Place) => {
    const found = topOf(layout, place.lane);
    if (!found) return null;
    const y = (yOf({ top: found.top, pinned: found.row.pinned }, scroll) + (LANE - 2) / 2) * scale;
    return { y: found.row.pinned ? y : Math.max(floor, y), hidden: found.hidden };
  };
  for (const { out, to } of scene.links) {
    const [source, target] = out ? [selected, to] : [to, selected];
    const [from, into] = [end(source), end(target)];
    if (!from || !into) continue;
    const tip = x(target.start);
    const tail = Math.min(x(source.start + source.dur), Math.max(x(source.start), tip)); // what starts work may last longer than it
    context.setLineDash(from.hidden || into.hidden ? [3 * scale, 3 * scale] : []);
    const bend = Math.max(BEND_PX * scale, Math.abs(tip - tail) / 3);
    context.beginPath();
    context.moveTo(tail, from.y);
    context.bezierCurveTo(tail + bend, from.y, tip - bend, into.y, tip, into.y);
    context.stroke();
    context.beginPath();
    context.moveTo(tip, into.y);
    context.lineTo(tip - HEAD_PX * scale, into.y - (HEAD_PX / 1.6) * scale);
    context.lineTo(tip - HEAD_PX * scale, into.y + (HEAD_PX / 1.6) * scale);
    context.fill();
    drawn++;
  }
  context.restore();
  return drawn;
}
