// Draws the bars of the visible rows on a canvas. What is narrower than a pixel is drawn once a pixel.

import type { ScaleLinear } from "d3-scale";
import type { Turn } from "./document";
import { figure, tick, type Unit } from "./format";
import { color, isHatched, isRetry, UNATTRIBUTED } from "./phases";
import { below, ownParts, type Item, type Tree } from "./tree";

const LEAST_OWN_PX = 3;

/** Heights in pixels; they grow with the letters of the page, so that a wall of 4k can be read from a chair. */
export const size = { row: 22, axis: 26, name: 13, top: 4, bar: 12, letters: 11 };
const AT_LETTERS_PX = 13;

export function fitSizes(): void {
  const letters = Number.parseFloat(getComputedStyle(document.documentElement).fontSize) || AT_LETTERS_PX;
  const scale = letters / AT_LETTERS_PX;
  const base = { row: 22, axis: 26, name: 13, top: 4, bar: 12, letters: 11 };
  for (const key of Object.keys(base) as (keyof typeof base)[]) size[key] = Math.round(base[key] * scale);
  document.documentElement.style.setProperty("--row", `${size.row}px`);
}

const font = (weight = ""): string => `${weight} ${size.letters}px system-ui, sans-serif`;

export interface Colors {
  text: string;
  quiet: string;
  line: string;
  selected: string;
  critical: string;
  back: string;
}

export interface Scene {
  turn: Turn;
  tree: Tree;
  rows: Item[];
  unit: Unit;
  selected: Item | null;
  /** For each section of the critical path in order of time, the row that shows it. */
  path: { start: number; end: number; row: number }[];
}

export interface Sheet {
  context: CanvasRenderingContext2D;
  x: ScaleLinear<number, number>;
  width: number;
  height: number;
  scroll: number;
  colors: Colors;
}

const hatches = new WeakMap<CanvasRenderingContext2D, Map<string, CanvasPattern>>();

/** Diagonal lines over what is below them. */
function hatch(context: CanvasRenderingContext2D, stroke: string): CanvasPattern | string {
  let known = hatches.get(context);
  if (!known) hatches.set(context, (known = new Map()));
  const found = known.get(stroke);
  if (found) return found;
  const tile = document.createElement("canvas");
  tile.width = tile.height = 8;
  const pen = tile.getContext("2d");
  if (!pen) return stroke;
  pen.strokeStyle = stroke;
  pen.lineWidth = 1.6;
  pen.beginPath();
  for (const shift of [-8, 0, 8]) {
    pen.moveTo(shift - 1, 9);
    pen.lineTo(shift + 9, -1);
  }
  pen.stroke();
  const pattern = context.createPattern(tile, "repeat");
  if (!pattern) return stroke;
  known.set(stroke, pattern);
  return pattern;
}

/** The rows from `scroll` on, everything that lies behind them, and the critical path over them. */
export function paintRows(scene: Scene, sheet: Sheet): void {
  const { context, width, height, scroll } = sheet;
  context.clearRect(0, 0, width, height);
  const first = Math.max(0, Math.floor(scroll / size.row));
  const last = Math.min(scene.rows.length, Math.ceil((scroll + height) / size.row));
  paintBehind(scene, sheet, first, last);
  for (let at = first; at < last; at++) {
    const item = scene.rows[at];
    if (item) paintItem(item, at * size.row - scroll, scene, sheet);
  }
  paintPath(scene, sheet, first, last);
  paintMoments(scene.turn, sheet);
}

function paintBehind(scene: Scene, sheet: Sheet, first: number, last: number): void {
  const { context, x, width, height, scroll, colors } = sheet;
  const selected = scene.selected ? scene.rows.indexOf(scene.selected, first) : -1;
  if (selected >= first && selected < last) {
    context.fillStyle = colors.selected;
    context.fillRect(0, selected * size.row - scroll, width, size.row);
  }
  context.fillStyle = colors.line;
  for (const at of x.ticks(tickCount(width))) context.fillRect(Math.round(x(at)), 0, 1, height);
  for (const gap of scene.turn.gaps) {
    const left = x(gap.start_ns);
    const right = x(gap.end_ns);
    if (right < 0 || left > width) continue;
    context.fillStyle = hatch(context, `${color(UNATTRIBUTED)}99`);
    context.fillRect(left, 0, right - left, height); // many that are narrow stay as faint as they are
  }
  const wall = scene.turn.wall_ns;
  if (wall === null) return;
  context.fillStyle = colors.line;
  if (scene.tree.start < 0) context.fillRect(0, 0, x(0), height);
  if (scene.tree.end > wall) context.fillRect(x(wall), 0, width - x(wall), height);
}

function tickCount(width: number): number {
  return Math.max(2, Math.floor(width / 90));
}

function paintItem(item: Item, top: number, scene: Scene, sheet: Sheet): void {
  const { x, width } = sheet;
  const left = x(item.start);
  const right = x(item.end);
  if (right >= 0 && left <= width) {
    if (item.kind === "round") paintRound(item, top, sheet);
    else paintBar(item, top, sheet);
    paintMark(item, top, Math.max(left, 0), sheet);
  }
  if (item.kind !== "turn") paintTime(item, top, left, right, scene.unit, sheet);
}

function paintBar(item: Item, top: number, sheet: Sheet): void {
  const isStructure = item.phase === null;
  const height = isStructure ? size.bar / 2 : size.bar;
  const at = top + size.top + (size.bar - height) / 2;
  block(sheet, item.start, item.end, at, height, item.phase, 0.3);
  let drawnTo = -1;
  const parts = ownParts(item);
  for (let index = 0; index < parts.length; index += 2) {
    const right = sheet.x(parts[index + 1] as number);
    if (right < drawnTo + 0.5 && right < sheet.width) continue;
    if (sheet.x(parts[index] as number) > sheet.width) break;
    block(sheet, parts[index] as number, parts[index + 1] as number, at, height, item.phase, 1);
    drawnTo = right;
  }
  outline(sheet, item.start, item.end, at, height);
}

/** A closed round shows all it holds in one row; an open one only how far it reaches. */
function paintRound(item: Item, top: number, sheet: Sheet): void {
  const at = top + size.top;
  if (item.open) {
    const { context, x, colors, width } = sheet;
    const left = Math.max(x(item.start), -2);
    context.globalAlpha = 0.5;
    context.fillStyle = colors.quiet;
    context.fillRect(left, at + size.bar / 2 - 1, Math.max(Math.min(x(item.end), width + 2) - left, 1), 1);
    context.globalAlpha = 1;
    return;
  }
  block(sheet, item.start, item.end, at, size.bar, null, 0.3);
  const drawnTo = new Map<string | null, number>();
  for (const inner of roundItems(item)) {
    if (inner.phase === null) continue;
    const parts = ownParts(inner);
    for (let index = 0; index < parts.length; index += 2) {
      const right = sheet.x(parts[index + 1] as number);
      if (right < 0 || right < (drawnTo.get(inner.phase) ?? -1) + 0.5) continue;
      if (sheet.x(parts[index] as number) > sheet.width) break;
      block(sheet, parts[index] as number, parts[index + 1] as number, at, size.bar, inner.phase, 1);
      drawnTo.set(inner.phase, right);
    }
  }
  outline(sheet, item.start, item.end, at, size.bar);
}

const inside = new WeakMap<Item, Item[]>();

export function roundItems(item: Item): Item[] {
  let found = inside.get(item);
  if (!found) {
    found = below(item).sort((a, b) => a.start - b.start);
    inside.set(item, found);
  }
  return found;
}

function block(
  sheet: Sheet,
  start: number,
  end: number,
  top: number,
  height: number,
  phase: string | null,
  alpha: number,
): void {
  const { context, x, width } = sheet;
  const left = Math.max(x(start), -2);
  const right = Math.min(x(end), width + 2);
  if (right < left) return;
  context.globalAlpha = alpha;
  context.fillStyle = color(phase);
  context.fillRect(left, top, Math.max(right - left, 1), height);
  if (isHatched(phase) || (phase === null && alpha === 1)) {
    context.fillStyle = hatch(context, phase === null ? "#6668" : "#000b");
    context.fillRect(left, top, Math.max(right - left, 1), height);
  }
  context.globalAlpha = 1;
}

function outline(sheet: Sheet, start: number, end: number, top: number, height: number): void {
  const { context, x, width, colors } = sheet;
  const left = Math.max(x(start), -2);
  const right = Math.min(x(end), width + 2);
  if (right - left < 3) return;
  context.globalAlpha = 0.45;
  context.strokeStyle = colors.text;
  context.lineWidth = 1;
  context.strokeRect(
    Math.round(left) + 0.5,
    top + 0.5,
    Math.max(Math.round(right - left) - 1, 1),
    height - 1,
  );
  context.globalAlpha = 1;
}

/** A retry has an arrow, a failure a cross: shape says it, not colour. */
function paintMark(item: Item, top: number, left: number, sheet: Sheet): void {
  const sign = markOf(item);
  if (!sign) return;
  const { context, colors } = sheet;
  context.font = font("bold");
  context.textAlign = "left";
  context.lineWidth = 3;
  context.strokeStyle = colors.back;
  context.strokeText(sign, left + 3, top + size.top + size.bar - 1);
  context.fillStyle = colors.text;
  context.fillText(sign, left + 3, top + size.top + size.bar - 1);
}

export function markOf(item: Item): string {
  if (isRetry(item.phase)) return "↻";
  const span = item.span;
  if (span && (span.status === "error" || span.outcome === "error")) return "✕";
  return span?.outcome === "incomplete" ? "…" : "";
}

function paintTime(item: Item, top: number, left: number, right: number, unit: Unit, sheet: Sheet): void {
  const { context, colors, width } = sheet;
  const text = figure(item.round ? item.round.wall_ns : item.end - item.start, unit);
  context.font = font();
  context.fillStyle = colors.quiet;
  const needed = context.measureText(text).width + 6;
  const y = top + size.top + size.bar - 2;
  if (right + needed < width && right > -needed) {
    context.textAlign = "left";
    context.fillText(text, Math.max(right, 0) + 4, y);
  } else if (left - needed > 0 && left < width + needed) {
    context.textAlign = "right";
    context.fillText(text, Math.min(left, width) - 4, y);
  }
}

/** What the turn was waiting for: a line along the foot of the bars, from row to row where it changes. */
function paintPath(scene: Scene, sheet: Sheet, first: number, last: number): void {
  const { context, x, width, colors, scroll } = sheet;
  const foot = (row: number): number => row * size.row - scroll + size.top + size.bar + 1;
  const along = new Path2D();
  const across = new Columns(sheet.height);
  let before = -1;
  for (const section of scene.path) {
    const left = x(section.start);
    const right = x(section.end);
    // the turn's own moments between two spans would only draw lines to the top and back
    if (section.row === 0 && right - left < LEAST_OWN_PX) continue;
    if (right >= -2 && left <= width + 2) {
      if (right - left >= 1 && section.row >= first - 1 && section.row <= last) {
        along.moveTo(Math.max(left, -2), foot(section.row));
        along.lineTo(Math.min(right, width + 2), foot(section.row));
      }
      if (before >= 0) across.add(Math.round(left), foot(before), foot(section.row));
    }
    before = section.row;
  }
  context.strokeStyle = colors.critical;
  context.lineWidth = 1;
  context.globalAlpha = 0.55;
  context.stroke(across.path());
  context.globalAlpha = 1;
  context.lineWidth = 3;
  context.stroke(along);
}

/** Lines from row to row, one for each column of pixels however many fall into it. */
class Columns {
  private readonly lines = new Path2D();
  private column = Number.NaN;
  private top = 0;
  private bottom = 0;

  constructor(private readonly height: number) {}

  add(column: number, from: number, to: number): void {
    if (column !== this.column) {
      this.flush();
      this.column = column;
      this.top = Infinity;
      this.bottom = -Infinity;
    }
    this.top = Math.min(this.top, from, to);
    this.bottom = Math.max(this.bottom, from, to);
  }

  path(): Path2D {
    this.flush();
    return this.lines;
  }

  private flush(): void {
    if (!(this.bottom > this.top) || this.bottom < 0 || this.top > this.height) return;
    this.lines.moveTo(this.column + 0.5, Math.max(this.top, -2));
    this.lines.lineTo(this.column + 0.5, Math.min(this.bottom, this.height + 2));
  }
}

const MOMENTS = [
  ["first token", "first_token_ns"],
  ["first visible", "first_visible_ns"],
] as const;

function paintMoments(turn: Turn, sheet: Sheet): void {
  const { context, x, height, width, colors } = sheet;
  context.strokeStyle = colors.text;
  context.lineWidth = 1;
  context.setLineDash([4, 3]);
  context.beginPath();
  for (const [, key] of MOMENTS) {
    const at = turn[key];
    if (at === null || x(at) < 0 || x(at) > width) continue;
    context.moveTo(Math.round(x(at)) + 0.5, 0);
    context.lineTo(Math.round(x(at)) + 0.5, height);
  }
  context.stroke();
  context.setLineDash([]);
}

/** How high the axis is: a line for each first moment that is known, and one at least for the gaps. */
export function axisPx(turn: Turn): number {
  const moments = MOMENTS.filter(([, key]) => turn[key] !== null).length;
  return size.axis + size.name * Math.max(moments, turn.gaps.length ? 1 : 0);
}

/** The time axis and, above it, the names of the first moments and of the gaps. */
export function paintAxis(scene: Scene, sheet: Sheet): void {
  const { context, x, width, height, colors } = sheet;
  context.clearRect(0, 0, width, height);
  context.font = font();
  const ticks = x.ticks(tickCount(width));
  const step = (ticks[1] ?? 1) - (ticks[0] ?? 0);
  context.fillStyle = colors.quiet;
  for (const at of ticks) {
    const text = tick(at, step);
    const size = context.measureText(text).width;
    context.textAlign = "left";
    context.fillText(text, Math.min(Math.max(x(at) - size / 2, 2), width - size - 2), height - 7);
    context.fillRect(Math.round(x(at)), height - 4, 1, 4);
  }
  paintNames(scene, sheet);
}

/** The first moments one above the other, so that neither hides the other, and a ? over each wide gap. */
function paintNames(scene: Scene, sheet: Sheet): void {
  const { context, x, width, height, colors } = sheet;
  context.fillStyle = colors.quiet;
  context.textAlign = "center";
  for (const gap of scene.turn.gaps) {
    if (x(gap.end_ns) - x(gap.start_ns) > 8)
      context.fillText("?", (x(gap.start_ns) + x(gap.end_ns)) / 2, height - size.axis - 1);
  }
  context.fillStyle = colors.text;
  MOMENTS.filter(([, key]) => scene.turn[key] !== null).forEach(([name, key], at) => {
    const ns = scene.turn[key] as number;
    if (x(ns) < 0 || x(ns) > width) return;
    const top = at * size.name;
    context.fillRect(Math.round(x(ns)), top + 2, 1, height - top - 2);
    const text = `${name} ${figure(ns, scene.unit)}`;
    const isLate = x(ns) + 4 + context.measureText(text).width > width;
    context.textAlign = isLate ? "right" : "left";
    context.fillText(text, x(ns) + (isLate ? -4 : 4), top + 12);
  });
}
