// The table of spans: sorted by any column, searched by any name.

import type { Span, Turn } from "./document";
import { h, replace, short } from "./dom";
import { count, figure, type Unit } from "./format";
import { color, isHatched } from "./phases";
import { VirtualRows } from "./rows";
import { nameOf } from "./tree";

const ROW_PX = 24;

interface Column {
  title: string;
  kind: "text" | "figure";
  value: (span: Span) => string | number | null;
  text: (span: Span, unit: Unit) => string;
}

function ns(title: string, value: (span: Span) => number | null): Column {
  return { title, kind: "figure", value, text: (span, unit) => figure(value(span), unit) };
}

function text(title: string, value: (span: Span) => string | null): Column {
  return { title, kind: "text", value, text: (span) => short(value(span) ?? "", 60) };
}

function whole(title: string, value: (span: Span) => number | null, unknown: (span: Span) => string): Column {
  const shown = (span: Span): string => (value(span) === null ? unknown(span) : count(value(span)));
  return { title, kind: "figure", value, text: shown };
}

const tokens = (span: Span): string => (span.usage || span.phase === "generation" ? "–" : "");

const COLUMNS: Column[] = [
  text("name", nameOf),
  text("phase", (span) => span.phase ?? "structure"),
  whole(
    "round",
    (span) => span.round,
    () => "",
  ),
  ns("start", (span) => span.start_ns),
  ns("took", (span) => Math.max(span.end_ns - span.start_ns, 0)),
  ns("own", (span) => span.exclusive_ns),
  ns("share", (span) => span.wall_share_ns),
  ns("critical", (span) => span.critical_ns),
  whole("tokens in", (span) => span.usage?.input_tokens ?? null, tokens),
  whole("out", (span) => span.usage?.output_tokens ?? null, tokens),
  text("outcome", (span) => span.outcome ?? span.status),
];

/** What a search looks at, in lower case. */
function haystack(span: Span): string {
  const parts = [
    span.name,
    span.phase ?? "structure",
    span.tool,
    span.model,
    span.span_id,
    span.status,
    span.outcome,
  ];
  return parts.join("\n").toLowerCase();
}

export class SpanTable {
  readonly element: HTMLElement;
  readonly search: HTMLInputElement;
  private readonly found = h("span", { class: "found", role: "status" });
  private readonly head = h("div", { class: "st-head", role: "row" });
  private readonly holder = h("div", { class: "st-rows", role: "rowgroup" });
  private readonly virtual: VirtualRows;
  private readonly haystacks: string[];
  private shown: Span[];
  private sorted = 3;
  private descending = false;
  private phase: string | null = null;
  private selected: string | null = null;

  constructor(
    private readonly turn: Turn,
    private readonly unit: Unit,
    private readonly onSelect: (span_id: string) => void,
  ) {
    this.haystacks = turn.spans.map(haystack);
    this.shown = turn.spans;
    this.search = h("input", {
      type: "search",
      placeholder: "name, phase, tool, model, id … (/)",
      "aria-label": "Search spans",
      oninput: () => this.refresh(),
    });
    const scroller = h(
      "div",
      { class: "st-scroll", tabindex: 0, role: "rowgroup", "aria-label": "Spans" },
      this.holder,
    );
    this.holder.removeAttribute("role");
    const table = h(
      "div",
      { class: "st", role: "table", "aria-label": "Spans" },
      h("div", { role: "rowgroup" }, this.head),
      scroller,
    );
    this.element = h(
      "div",
      {},
      h("div", { class: "st-tools" }, this.search, this.found),
      h("div", { class: "st-wide" }, table),
    );
    this.virtual = new VirtualRows(scroller, this.holder, ROW_PX, (index) => this.row(index));
    this.refresh();
  }

  filter(phase: string | null): void {
    this.phase = phase;
    this.refresh();
  }

  select(span_id: string | null): void {
    this.selected = span_id;
    this.virtual.update(this.shown.length);
  }

  private refresh(): void {
    const wanted = this.search.value.trim().toLowerCase();
    const column = COLUMNS[this.sorted] as Column;
    const phase = this.phase === "unattributed" ? "" : this.phase;
    this.shown = this.turn.spans.filter(
      (span, at) =>
        (phase === null || (span.phase ?? "") === phase) && (this.haystacks[at] as string).includes(wanted),
    );
    const sign = this.descending ? -1 : 1;
    this.shown.sort((a, b) => sign * compare(column.value(a), column.value(b)) || a.start_ns - b.start_ns);
    this.found.textContent = `${count(this.shown.length)} of ${count(this.turn.spans.length)} spans`;
    replace(this.head, ...COLUMNS.map((one, at) => this.header(one, at)));
    this.virtual.update(this.shown.length);
  }

  private header(column: Column, at: number): HTMLElement {
    const isSorted = at === this.sorted;
    const title =
      column.kind === "figure" && /start|took|own|share|critical/.test(column.title)
        ? `${column.title} ${this.unit}`
        : column.title;
    const sort = (): void => {
      this.descending = isSorted ? !this.descending : column.kind === "figure";
      this.sorted = at;
      this.refresh();
    };
    return h(
      "span",
      {
        role: "columnheader",
        class: column.kind,
        "aria-sort": isSorted ? (this.descending ? "descending" : "ascending") : "none",
      },
      h("button", { type: "button", onclick: sort }, title, isSorted ? (this.descending ? " ▾" : " ▴") : ""),
    );
  }

  private row(index: number): HTMLElement {
    const span = this.shown[index] as Span;
    const cells = COLUMNS.map((column, at) => {
      const shown = column.text(span, this.unit);
      const swatch =
        at === 0 &&
        h("i", {
          class: isHatched(span.phase) ? "swatch hatched" : "swatch",
          "style:background-color": color(span.phase),
          "aria-hidden": "true",
        });
      const content =
        at === 0
          ? h(
              "button",
              { type: "button", class: "plain", onclick: () => this.onSelect(span.span_id) },
              shown || "(no name)",
            )
          : shown;
      return h("span", { role: "cell", class: column.kind, title: shown }, swatch, content);
    });
    const isSelected = span.span_id === this.selected;
    return h(
      "div",
      {
        role: "row",
        class: isSelected ? "st-row selected" : "st-row",
        onclick: () => this.onSelect(span.span_id),
      },
      ...cells,
    );
  }
}

/** Unknown sorts before everything that is known. */
function compare(a: string | number | null, b: string | number | null): number {
  if (a === b) return 0;
  if (a === null) return -1;
  if (b === null) return 1;
  return a < b ? -1 : 1;
}
