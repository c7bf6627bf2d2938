// The waterfall: labels as elements, bars on a canvas beside them, one time axis above both.

import { TimeAxis } from "./axis";
import type { Finding, Turn } from "./document";
import { h } from "./dom";
import type { Unit } from "./format";
import { describe, labelRow } from "./labels";
import {
  axisPx,
  fitSizes,
  paintAxis,
  paintRows,
  roundItems,
  size,
  type Colors,
  type Scene,
  type Sheet,
} from "./paint";
import { VirtualRows } from "./rows";
import { buildTree, ownParts, reveal, visible, type Item, type Tree } from "./tree";

const PRINTED_ROWS = 250;
const PAPER: Colors = {
  text: "#000",
  quiet: "#444",
  line: "#ddd",
  selected: "#eee",
  critical: "#000",
  back: "#fff",
};
const LEAST_SEEN_PX = 12;

export class Waterfall {
  readonly element: HTMLElement;
  private readonly ticks = h("canvas", { class: "wf-axis", "aria-hidden": "true" });
  private readonly bars = h("canvas", { class: "wf-bars", "aria-hidden": "true" });
  private readonly holder: HTMLElement;
  private readonly scroller: HTMLElement;
  private readonly tip = h("div", { class: "wf-tip", "aria-hidden": "true", hidden: true });
  private readonly tree: Tree;
  private readonly axis: TimeAxis;
  private readonly virtual: VirtualRows;
  private rows: Item[] = [];
  private path: Scene["path"] = [];
  private phase: string | null = null;
  private selected: Item | null = null;
  private colors: Colors | null = null;
  private waiting = false;

  constructor(
    private readonly turn: Turn,
    name: string,
    private readonly unit: Unit,
    findings: Finding[],
    private readonly onSelect: (item: Item) => void,
  ) {
    fitSizes();
    this.tree = buildTree(turn, name);
    findings.forEach((finding, at) => this.number(finding.span_ids, at + 1));
    this.holder = h("div", {
      class: "wf-rows",
      role: "treegrid",
      tabindex: 0,
      "aria-label": "Spans of the turn by round, in order of time",
      onkeydown: (event: KeyboardEvent) => this.key(event),
    });
    this.scroller = h("div", { class: "wf-scroll" }, this.holder, this.bars);
    this.element = h("div", { class: "wf" }, this.tools(), this.ticks, this.scroller, this.tip);
    this.axis = new TimeAxis(this.bars, this.tree.start, this.tree.end, (down) => {
      this.scroller.scrollTop -= down;
      this.tip.hidden = true;
      this.paintSoon();
    });
    this.virtual = new VirtualRows(
      this.scroller,
      this.holder,
      size.row,
      (at) => this.row(at),
      () => this.paintSoon(),
    );
    this.listen();
    this.relist();
  }

  /** Give the spans of a finding its number, so that they are found again among the bars. */
  private number(span_ids: string[], number: number): void {
    for (const id of span_ids) {
      const item = this.tree.byId.get(id);
      if (item && !item.fix) item.fix = number;
    }
  }

  private tools(): HTMLElement {
    const button = (text: string, title: string, act: () => void): HTMLElement =>
      h("button", { type: "button", title, onclick: act }, text);
    const key = (sample: string, text: string): HTMLElement =>
      h("span", { class: "key" }, h("i", { class: `key-${sample}`, "aria-hidden": "true" }), text);
    return h(
      "div",
      { class: "wf-tools" },
      h(
        "span",
        { class: "buttons" },
        button("Zoom in", "Zoom in (+)", () => this.axis.zoomBy(2)),
        button("Zoom out", "Zoom out (-)", () => this.axis.zoomBy(0.5)),
        button("Whole turn", "Show the whole turn (0)", () => this.fit(null)),
        button("Expand", "Open every row", () => this.openAll(true)),
        button("Collapse", "Close every round", () => this.openAll(false)),
      ),
      key("critical", "● critical path: what the turn was waiting for"),
      key("own", "own time"),
      key("covered", "its children's time"),
      key("wait", "waiting for a person or a process"),
      key("gap", "? unattributed"),
      h("span", { class: "key" }, "↻ retry"),
      h("span", { class: "key" }, "✕ failed"),
    );
  }

  private listen(): void {
    this.bars.addEventListener("wheel", (event) => {
      if (event.ctrlKey || event.metaKey) return;
      const across = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
      if (Math.abs(across) <= Math.abs(event.shiftKey ? 0 : event.deltaY)) return;
      event.preventDefault();
      this.axis.panBy(across);
    });
    this.bars.addEventListener("click", (event) => {
      const item = this.itemAt(event);
      if (item) this.choose(item);
    });
    this.bars.addEventListener("dblclick", (event) => {
      const item = this.itemAt(event);
      if (item) this.fit(item);
    });
    this.bars.addEventListener("mousemove", (event) => this.hover(event));
    this.bars.addEventListener("mouseleave", () => (this.tip.hidden = true));
    new ResizeObserver(() => this.resize()).observe(this.scroller);
    window.addEventListener("beforeprint", () => this.print(true));
    window.addEventListener("afterprint", () => this.print(false));
  }

  private print(on: boolean): void {
    if (!this.element.isConnected) return;
    const rows = on ? Math.min(this.rows.length, PRINTED_ROWS) : this.rows.length;
    this.scroller.style.height = `${rows * size.row + 2}px`;
    this.scroller.style.maxHeight = on ? "none" : "";
    this.virtual.forPrint(on ? PRINTED_ROWS : 0);
    this.colors = on ? PAPER : null; // the style of paper is not in force yet when this is told
    this.resize();
  }

  /** Show the spans of one phase only, or all of them. */
  filter(phase: string | null): void {
    this.phase = phase;
    this.relist();
  }

  themeChanged(): void {
    this.colors = null;
    this.paintSoon();
  }

  /** Select a span from outside, open what is above it, and bring it into view. */
  show(span_id: string): void {
    const item = this.tree.byId.get(span_id);
    if (!item) return;
    reveal(item);
    this.selected = item;
    this.relist();
    if (!this.rows.includes(item)) {
      this.phase = null;
      this.relist();
    }
    this.virtual.scrollTo(this.rows.indexOf(item));
    this.enlarge(item);
  }

  /** Zoom to an item that is too narrow to be seen; to its round, where it has one. */
  private enlarge(item: Item): void {
    const x = this.axis.scale();
    const seen = x(Math.min(item.end, x.invert(this.axis.plotPx))) - x(Math.max(item.start, x.invert(0)));
    if (seen >= LEAST_SEEN_PX) return;
    let around = item;
    while (
      around.parent?.parent &&
      (x(around.end) - x(around.start)) * 20 < this.axis.plotPx &&
      around.kind !== "round"
    )
      around = around.parent;
    this.fit(around);
  }

  item(span_id: string): Item | undefined {
    return this.tree.byId.get(span_id);
  }

  private choose(item: Item): void {
    this.selected = item;
    this.virtual.update(this.rows.length);
    this.virtual.scrollTo(this.rows.indexOf(item));
    this.markActive();
    this.onSelect(item);
  }

  private relist(): void {
    this.rows = visible(this.tree, this.phase);
    const at = new Map(this.rows.map((item, index) => [item, index]));
    const rowOf = (id: string | null): number => {
      let item: Item | null = (id === null ? null : this.tree.byId.get(id)) ?? this.tree.turn;
      while (item && !at.has(item)) item = item.parent;
      return item ? (at.get(item) ?? 0) : 0;
    };
    this.path = this.turn.critical_path
      .map((part) => ({ start: part.start_ns, end: part.end_ns, row: rowOf(part.span_id) }))
      .reverse();
    this.scroller.style.height = `${this.rows.length * size.row + 2}px`;
    this.holder.setAttribute("aria-rowcount", String(this.rows.length));
    this.virtual.update(this.rows.length);
    this.markActive();
  }

  private markActive(): void {
    const index = this.selected ? this.rows.indexOf(this.selected) : -1;
    if (index >= 0) this.holder.setAttribute("aria-activedescendant", `row-${index}`);
    else this.holder.removeAttribute("aria-activedescendant");
  }

  private row(index: number): HTMLElement {
    const item = this.rows[index] as Item;
    return labelRow(item, index, this.unit, item === this.selected, (onTwisty) => {
      if (item.children.length && (onTwisty || item.kind === "round")) this.toggle(item);
      if (!onTwisty) this.choose(item);
    });
  }

  private toggle(item: Item): void {
    item.open = !item.open;
    this.relist();
    if (item.open && item.kind === "round") this.enlarge(item);
  }

  private openAll(open: boolean): void {
    for (const item of [this.tree.turn, ...roundItems(this.tree.turn)]) {
      if (item.kind !== "turn") item.open = open || item.kind !== "round";
    }
    this.relist();
  }

  private resize(): void {
    const { clientWidth } = this.bars;
    sized(this.bars, clientWidth, this.scroller.clientHeight);
    sized(this.ticks, clientWidth, axisPx(this.turn));
    this.ticks.style.width = `${clientWidth}px`; // without the gutter of the scrollbar, as the bars are
    this.axis.resize();
    this.paint();
  }

  /** Make an item as wide as the plot; without one the whole turn. */
  private fit(item: Item | null): void {
    if (item && item.end > item.start) this.axis.fit(item.start, item.end);
    else this.axis.whole();
  }

  // -- painting -------------------------------------------------------------------------------------------

  private paintSoon(): void {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => this.paint());
  }

  private paint(): void {
    this.waiting = false;
    this.colors ??= readColors(this.element);
    const x = this.axis.scale();
    const scene: Scene = {
      turn: this.turn,
      tree: this.tree,
      rows: this.rows,
      unit: this.unit,
      selected: this.selected,
      path: this.path,
    };
    const sheet = (canvas: HTMLCanvasElement): Sheet | null => {
      const context = canvas.getContext("2d");
      if (!context || !this.colors) return null;
      context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
      const { clientWidth: width, clientHeight: height } = canvas;
      return { context, x, width, height, scroll: this.scroller.scrollTop, colors: this.colors };
    };
    const [start, end] = x.domain();
    this.element.dataset["shown"] = `${Math.round(start ?? 0)} ${Math.round(end ?? 0)}`;
    const bars = sheet(this.bars);
    const ticks = sheet(this.ticks);
    if (bars) paintRows(scene, bars);
    if (ticks) paintAxis(scene, ticks);
  }

  // -- pointer and keys -----------------------------------------------------------------------------------

  private itemAt(event: MouseEvent): Item | null {
    const item = this.rows[Math.floor((event.offsetY + this.scroller.scrollTop) / size.row)];
    if (!item) return null;
    if (item.kind !== "round" || item.open) return item;
    const at = this.axis.scale().invert(event.offsetX);
    return roundItems(item).find((inner) => inner.phase !== null && covers(ownParts(inner), at)) ?? item;
  }

  private hover(event: MouseEvent): void {
    const item = this.itemAt(event);
    const x = this.axis.scale();
    const isOver = item && event.offsetX >= x(item.start) - 4 && event.offsetX <= x(item.end) + 4;
    this.tip.hidden = !isOver;
    if (!item || !isOver) return;
    this.tip.textContent = describe(item, this.unit);
    const box = this.element.getBoundingClientRect();
    const left = Math.min(
      event.clientX - box.left + 12,
      box.width - Math.min(this.tip.offsetWidth, box.width),
    );
    this.tip.style.left = `${Math.max(left, 0)}px`;
    this.tip.style.top = `${event.clientY - box.top + 18}px`;
  }

  /** Keys of the waterfall: rows, opening and closing, zooming and panning. */
  key(event: KeyboardEvent): void {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.shiftKey && event.key.startsWith("Arrow")) {
      const step = this.axis.plotPx / 6;
      if (event.key === "ArrowLeft") this.axis.panBy(-step);
      else if (event.key === "ArrowRight") this.axis.panBy(step);
      else return;
    } else if (!this.rowKey(event.key) && !this.zoomKey(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
  }

  private rowKey(key: string): boolean {
    const at = this.selected ? this.rows.indexOf(this.selected) : -1;
    const item = this.rows[at];
    const page = Math.max(Math.floor(this.scroller.clientHeight / size.row) - 1, 1);
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page };
    if (key in steps) return this.goTo(at + (steps[key] as number));
    if (key === "Home") return this.goTo(0);
    if (key === "End") return this.goTo(this.rows.length - 1);
    if (key === "c") return this.goTo(this.rows.findIndex((row, index) => index > at && row.critical));
    if (!item) return false;
    if (key === "ArrowRight" && item.children.length) {
      if (item.open) return this.goTo(at + 1);
      this.toggle(item);
      return true;
    }
    if (key === "ArrowLeft") {
      if (item.open && item.children.length) this.toggle(item);
      else if (item.parent) return this.goTo(this.rows.indexOf(item.parent));
      return true;
    }
    return false;
  }

  private goTo(index: number): boolean {
    const item = this.rows[Math.min(Math.max(index, 0), this.rows.length - 1)];
    if (item) this.choose(item);
    return true;
  }

  private zoomKey(key: string): boolean {
    if (key === "+" || key === "=") this.axis.zoomBy(2);
    else if (key === "-") this.axis.zoomBy(0.5);
    else if (key === "0") this.fit(null);
    else if (key === "f" && this.selected) this.fit(this.selected);
    else return false;
    return true;
  }
}

function covers(parts: number[], at: number): boolean {
  for (let index = 0; index < parts.length; index += 2) {
    if ((parts[index] as number) <= at && at < (parts[index + 1] as number)) return true;
  }
  return false;
}

function sized(canvas: HTMLCanvasElement, width: number, height: number): void {
  const ratio = window.devicePixelRatio;
  canvas.style.height = `${height}px`;
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide) canvas.width = wide;
  if (canvas.height !== high) canvas.height = high;
}

function readColors(element: HTMLElement): Colors {
  const style = getComputedStyle(element);
  const read = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  return {
    text: read("text"),
    quiet: read("quiet"),
    line: read("line"),
    selected: read("selected"),
    critical: read("critical"),
    back: read("back"),
  };
}
