// The first screen: how long, where the turn went, what to fix first, and whether anything is missing.

import type { Block, Facts, Finding, Heading, Table, Turn, TurnWords } from "./document";
import { h, short } from "./dom";
import { time, type Unit } from "./format";
import { color, ink, isHatched, isPhase, UNATTRIBUTED } from "./phases";

const FINDINGS_SHOWN = 3;
const WARNINGS_SHOWN = 40;

export function isTable(block: Block): block is Table {
  return "rows" in block;
}

export function isFacts(block: Block): block is Facts {
  return "facts" in block;
}

/** Title, the large figures, and the lines below them. */
export function heading(
  words: Heading,
  when: string,
  facts: string[][],
  missing: HTMLElement | null,
): HTMLElement {
  const figures = words.figures.split(" · ").map((text) => {
    const [, amount, rest] = /^([\d.,]+ m?s)(.*)$/.exec(text) ?? [null, text, ""];
    return h("span", { class: "figure" }, h("b", {}, amount as string), rest as string);
  });
  return h(
    "div",
    { class: "heading" },
    h("h1", {}, short(words.title, 200), when ? h("small", {}, `  ${when}`) : null),
    h(
      "p",
      { class: "figures" },
      ...figures,
      words.note ? h("span", { class: "quiet" }, words.note.trim()) : null,
    ),
    ...facts.map((line) => h("p", { class: "facts" }, line.join(" · "))),
    missing,
  );
}

/** Whether anything is missing, and what each warning says for whoever wants to know. */
export function missingLine(missing: TurnWords["missing"], warnings: Turn["warnings"]): HTMLElement | null {
  if (missing.length === 0) return null;
  const isFine = missing.every((one) => !one.warn);
  const said = missing.map((one) => one.text).join(" · ");
  const text = isFine ? `${said} · nothing is missing` : said;
  const line = h(
    "p",
    { class: isFine ? "missing fine" : "missing warn" },
    h("span", { "aria-hidden": "true" }, isFine ? "✓ " : "⚠ "),
    text,
  );
  if (warnings.length === 0) return line;
  const each = warnings
    .slice(0, WARNINGS_SHOWN)
    .map((one) =>
      h(
        "li",
        {},
        h("b", {}, short(one.code)),
        ` ${one.line === null ? "" : `line ${one.line}: `}${short(one.message, 300)}`,
      ),
    );
  const rest = warnings.length - each.length;
  return h(
    "details",
    { class: "warnings" },
    h("summary", {}, line),
    h("ul", {}, ...each, rest > 0 && h("li", {}, `${rest} more: turntrace check tells them all`)),
  );
}

export interface Share {
  phase: string;
  ns: number;
}

/** One bar of the wall; its parts add up to it and are buttons that filter. */
export function stackedBar(
  shares: Share[],
  unit: Unit,
  phase: string | null,
  onPhase: (phase: string) => void,
): HTMLElement {
  const parts = shares
    .filter((share) => share.ns > 0)
    .map((share) => {
      const isGap = share.phase === UNATTRIBUTED;
      const name = short(share.phase, 40);
      const text = `${name} ${time(share.ns, unit)}`;
      return h(
        "button",
        {
          type: "button",
          class: partClass(share.phase, phase),
          title: text,
          "aria-label": text,
          "aria-pressed": String(phase === share.phase),
          "data-phase": share.phase,
          "data-ns": share.ns,
          "style:flex-grow": share.ns,
          "style:background-color": color(share.phase),
          "style:color": ink(share.phase),
          onclick: () => onPhase(share.phase),
        },
        h("span", { "aria-hidden": "true" }, isGap ? "?" : name),
      );
    });
  return h("div", { class: "stacked", role: "group", "aria-label": "Wall time by phase" }, ...parts);
}

/** The same bar where it only shows: one of many, beside the button that opens its turn. */
export function smallBar(shares: Share[], phase: string | null): HTMLElement {
  const parts = shares
    .filter((share) => share.ns > 0)
    .map((share) =>
      h("i", {
        class: partClass(share.phase, phase),
        "style:flex-grow": share.ns,
        "style:background-color": color(share.phase),
      }),
    );
  return h("div", { class: "stacked", "aria-hidden": "true" }, ...parts);
}

function partClass(own: string, wanted: string | null): string {
  return `part${isHatched(own) ? " hatched" : ""}${own === UNATTRIBUTED ? " gap" : ""}${wanted && wanted !== own ? " dim" : ""}`;
}

/** The rows of the report's table as a legend that adds up to its sum. */
export function legend(
  table: Table,
  phases: Map<string, string>,
  phase: string | null,
  onPhase: (phase: string) => void,
  onAll: () => void,
): HTMLElement {
  const shares = table.columns.indexOf("%");
  const walls = shares === 1 ? 0 : -1; // of many turns the other columns are no parts of a sum
  const figures = (cells: string[]): HTMLElement[] => [
    h("b", {}, cells[walls] ?? ""),
    h("span", { class: "quiet" }, `${cells[shares] ?? ""} %`),
  ];
  const chips = table.rows
    .filter((row) => row.depth === 0)
    .map((row) => {
      const known = phases.get(row.label) ?? null;
      const isGap = row.label === UNATTRIBUTED;
      return h(
        "button",
        {
          type: "button",
          class: `chip${phase && phase !== known ? " dim" : ""}`,
          "aria-pressed": known === null ? null : String(phase === known),
          title: row.note || (known ? `show ${row.label} only` : "show every phase"),
          onclick: () => (known === null ? onAll() : onPhase(known)),
        },
        h("i", {
          class: `swatch${isHatched(known) ? " hatched" : ""}${isGap ? " gap" : ""}`,
          "style:background-color": known === null ? "transparent" : color(known),
          "aria-hidden": "true",
        }),
        h("span", { class: "chip-name" }, isGap ? "? unattributed" : short(row.label, 40)),
        ...figures(row.cells),
      );
    });
  const sum = table.total
    ? h(
        "span",
        { class: "chip sum" },
        "= ",
        ...figures([
          `${table.total.cells[0] ?? ""} ${table.columns[0]?.split(" ")[1] ?? ""}`,
          ...table.total.cells.slice(1),
        ]),
      )
    : null;
  return h("div", { class: "legend" }, ...chips, sum);
}

/** What to fix first with what each saves; a click shows where. */
export function fixFirst(
  findings: Finding[],
  hasEnd: boolean,
  onShow: (finding: Finding) => void,
): HTMLElement {
  const list = h("ol", { class: "findings" });
  const rows = findings.map((finding) =>
    h(
      "li",
      {},
      h(
        "button",
        {
          type: "button",
          class: "finding",
          title: "show it in the waterfall",
          onclick: () => onShow(finding),
        },
        h(
          "b",
          { class: "f-name" },
          h("i", { class: "swatch", "style:background-color": color(finding.phase), "aria-hidden": "true" }),
          short(finding.label, 60),
        ),
        h("span", { class: "f-why" }, short(finding.message, 300)),
        h("span", { class: "f-saves" }, "saves up to ", h("b", {}, finding.saves)),
      ),
    ),
  );
  list.append(...rows.slice(0, FINDINGS_SHOWN));
  const rest = rows.slice(FINDINGS_SHOWN);
  const more = h(
    "button",
    { type: "button", class: "link", onclick: () => (list.append(...rest), more.remove()) },
    `${rest.length} more`,
  );
  const none = hasEnd
    ? "Nothing found: no retry, queue, late tool or the like on the critical path costs 1 % of the turn."
    : "Unknown: the turn has no end, so there is no critical path.";
  return h(
    "section",
    { class: "fix", "aria-label": "Fix first" },
    h("h2", {}, "Fix first ", h("small", {}, "on the critical path, yours to change")),
    findings.length ? list : h("p", { class: "quiet" }, none),
    rest.length ? more : null,
  );
}

/** A table of the report as it is; `swatches` when its rows are phases. */
export function reportTable(
  table: Table,
  swatches: boolean,
  onRow: ((index: number) => void) | null = null,
): HTMLElement {
  const hasBars = table.rows.some((row) => row.fraction > 0);
  const head = h(
    "tr",
    {},
    h("th", { scope: "col" }, ""),
    hasBars && h("th", { class: "bar", "aria-hidden": "true" }),
    ...table.columns.map((title) => h("th", { scope: "col", class: "figure" }, title)),
    h("th", { scope: "col", class: "note" }, ""),
  );
  let phase = "";
  const rows = table.rows.map((row, index) => {
    if (row.depth === 0) phase = row.label;
    const bar = h("i", {
      class: `t-bar${isHatched(phase) ? " hatched" : ""}`,
      "style:width": `${row.fraction * 100}%`,
      "style:background-color": swatches ? color(phase) : "var(--accent)",
    });
    const name = short(row.label, 120);
    return h(
      "tr",
      { class: row.quiet ? "quiet" : null },
      h(
        "th",
        { scope: "row", "style:padding-left": `${row.depth * 1.2 + 0.4}em` },
        onRow ? h("button", { type: "button", class: "link", onclick: () => onRow(index) }, name) : name,
      ),
      hasBars && h("td", { class: "bar", "aria-hidden": "true" }, row.fraction > 0 ? bar : null),
      ...row.cells.map((cell) => h("td", { class: "figure" }, cell)),
      h("td", { class: "note" }, row.note),
    );
  });
  const total =
    table.total &&
    h(
      "tr",
      { class: "total" },
      h("th", { scope: "row" }, "sum"),
      hasBars && h("td", { class: "bar" }),
      ...table.total.cells.map((cell) => h("td", { class: "figure" }, cell)),
      h("td", { class: "note" }, table.total.note),
    );
  return h(
    "div",
    { class: "wide", tabindex: 0, role: "region", "aria-label": table.heading },
    h(
      "table",
      { class: "report" },
      h("caption", {}, table.heading),
      h("thead", {}, head),
      h("tbody", {}, ...rows, total),
    ),
  );
}

/** The tab that lays two files beside each other; it gives no verdict. */
export function besideTab(blocks: Block[]): HTMLElement {
  const help =
    "A row is a median over the turns of each file, so the rows do not add up. Whether a difference is more than chance is not said here.";
  return h("div", {}, h("p", { class: "help" }, help), ...blocks.filter(isTable).map(pairTable));
}

/** Rows whose first two figures are those of both sides, each pair with two bars on one scale. */
function pairTable(table: Table): HTMLElement {
  const lengths = table.rows.map((row) =>
    [0, 1].map((side) => Number((row.cells[side] ?? "").replaceAll(",", "")) || 0),
  );
  const isOneUnit = table.columns[0] !== "a"; // counts of different things have no common scale
  const longest = Math.max(...lengths.flat(), Number.MIN_VALUE);
  let phase = "";
  const rows = table.rows.map((row, at) => {
    if (row.depth === 0) phase = row.label;
    const bars = (lengths[at] ?? []).map((length) =>
      h("i", {
        class: `t-bar pair${isHatched(phase) ? " hatched" : ""}`,
        "style:width": `${(100 * length) / longest}%`,
        "style:background-color": isPhase(phase) ? color(phase) : "var(--accent)",
      }),
    );
    return h(
      "tr",
      { class: row.quiet ? "quiet" : null },
      h("th", { scope: "row", "style:padding-left": `${row.depth * 1.2 + 0.4}em` }, short(row.label, 120)),
      isOneUnit && h("td", { class: "bar", "aria-hidden": "true" }, ...bars),
      ...row.cells.map((cell) => h("td", { class: "figure" }, cell)),
    );
  });
  const head = h(
    "tr",
    {},
    h("th", { scope: "col" }, ""),
    isOneUnit && h("th", { class: "bar", scope: "col" }, "a above b"),
    ...table.columns.map((title) => h("th", { scope: "col", class: "figure" }, title)),
  );
  return h(
    "div",
    { class: "wide", tabindex: 0, role: "region", "aria-label": table.heading },
    h(
      "table",
      { class: "report" },
      h("caption", {}, table.heading),
      h("thead", {}, head),
      h("tbody", {}, ...rows),
    ),
  );
}
