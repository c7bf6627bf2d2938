// The page: the words are shown at once, the report when it is read.

import { details } from "./details";
import {
  readReport,
  readWords,
  type Finding,
  type Report,
  type Turn,
  type TurnWords,
  type Words,
} from "./document";
import { add, h, replace, short } from "./dom";
import { flame } from "./flame";
import { clock, type Unit } from "./format";
import { setColors, UNATTRIBUTED } from "./phases";
import { SpanTable } from "./spans";
import { tokens } from "./tokens";
import type { Item } from "./tree";
import { Waterfall } from "./waterfall";
import {
  besideTab,
  fixFirst,
  heading,
  isFacts,
  isTable,
  legend,
  missingLine,
  reportTable,
  smallBar,
  stackedBar,
  type Share,
} from "./where";

const TURNS_SHOWN = 200;

type Tab = [name: string, make: () => HTMLElement | null];

const KEYS =
  "Keys: arrows select and open · + − zoom · Shift+arrows pan · 0 whole turn · f fit · c next critical · / search · 1–6 tabs · t theme · Esc close";

class App {
  private readonly root = document.getElementById("app") as HTMLElement;
  private readonly top = h("header", { class: "top" });
  private readonly first = h("div", { class: "first" });
  private readonly tabs = h("div", { class: "tabs", role: "tablist", "aria-label": "Views" });
  private readonly panel = h("div", {
    class: "panel",
    role: "tabpanel",
    id: "panel",
    "aria-labelledby": "tab-0",
  });
  private readonly aside = h("aside", { class: "details", hidden: true, "aria-label": "Details of a span" });
  private report: Report | null = null;
  private at: number | "all";
  private tab = 0;
  private phase: string | null = null;
  private waterfall: Waterfall | null = null;
  private spans: SpanTable | null = null;
  private made = new Map<number, HTMLElement>();

  constructor(private readonly words: Words) {
    setColors(words.colors);
    this.at = words.all ? "all" : 0;
    const body = h("div", { class: "body" }, this.panel, this.aside);
    const foot = h(
      "footer",
      {},
      h("p", {}, KEYS),
      h(
        "p",
        {},
        `turntrace · ${words.files.map((name) => short(name, 120)).join(", ")} · this file asks nothing of any network`,
      ),
    );
    replace(this.root, this.top, this.first, this.tabs, body, foot);
    document.addEventListener("keydown", (event) => this.key(event));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
      this.waterfall?.themeChanged(),
    );
  }

  async start(): Promise<void> {
    this.showFirst();
    replace(this.panel, h("p", { class: "empty" }, "Reading the spans…"));
    await new Promise(requestAnimationFrame);
    this.report = await readReport();
    this.openTurn(this.at);
    this.root.dataset["ready"] = "true";
  }

  private get turn(): Turn | null {
    return this.at === "all" || !this.report ? null : (this.report.turns[this.at] ?? null);
  }

  private get turnWords(): TurnWords | null {
    return this.at === "all" ? null : (this.words.turns[this.at] ?? null);
  }

  private get unit(): Unit {
    return this.turnWords?.unit ?? "s";
  }

  // -- first screen ---------------------------------------------------------------------------------------

  private showFirst(): void {
    const theme = h(
      "button",
      { type: "button", title: "Dark or light (t)", onclick: () => this.switchTheme() },
      "◐ theme",
    );
    replace(this.top, theme, this.picker());
    replace(this.first, ...(this.turnWords ? this.firstOfTurn(this.turnWords) : this.firstOfAll()));
  }

  private picker(): HTMLElement | null {
    if (this.words.turns.length === 1) return null;
    const options = this.words.turns.map((turn, at) =>
      h(
        "option",
        { value: at, selected: at === this.at },
        `${at + 1}  ${short(turn.name, 60)}  ${turn.wall}`,
      ),
    );
    if (this.words.all)
      options.unshift(
        h(
          "option",
          { value: "all", selected: this.at === "all" },
          this.words.beside ? "both files" : "all turns",
        ),
      );
    const choose = (event: Event): void => {
      const { value } = event.target as HTMLSelectElement;
      this.openTurn(value === "all" ? "all" : Number(value));
    };
    return h("label", { class: "picker" }, "Turn ", h("select", { onchange: choose }, ...options));
  }

  private when(): string {
    const started = this.turn?.started_at_ns;
    return started ? clock(started) : "";
  }

  private firstOfTurn(words: TurnWords): HTMLElement[] {
    const facts = [words.facts.facts, words.moments?.facts ?? []].filter((line) => line.length);
    const hasEnd = words.table.total !== null;
    return [
      heading(words.heading, this.when(), facts, missingLine(words.missing, this.turn?.warnings ?? [])),
      h(
        "section",
        { class: "where", "aria-label": "Where the turn went" },
        hasEnd ? h("h2", {}, words.table.heading) : null,
        hasEnd ? this.bar(sharesOf(words.sums)) : null,
        hasEnd ? this.legend(words) : reportTable(words.table, true),
      ),
      fixFirst(words.findings, hasEnd, (finding) => this.showFinding(finding)),
    ];
  }

  private bar(shares: Share[]): HTMLElement {
    return stackedBar(shares, this.unit, this.phase, (phase) => this.filter(phase));
  }

  private legend(words: TurnWords): HTMLElement {
    const rows = words.phases.rows.filter((row) => row.depth === 0);
    // the rows stand in the order of the report's phases; their labels are escaped where a name is odd
    const labels = new Map(rows.map((row, at) => [row.label, this.turn?.phases[at]?.phase ?? row.label]));
    return legend(
      words.table,
      labels,
      this.phase,
      (phase) => this.filter(phase),
      () => this.openTab(1),
    );
  }

  private firstOfAll(): HTMLElement[] {
    const { all, beside } = this.words;
    if (!all) return [];
    if (beside) {
      // the two are told apart: their sum would be of nothing
      const [title, who] = beside;
      return title && "title" in title && who && isFacts(who)
        ? [
            heading(
              title,
              "",
              who.facts.map((fact) => [fact]),
              null,
            ),
          ]
        : [];
    }
    const [title, ...others] = all.blocks;
    const facts = others.filter(isFacts).map((block) => block.facts);
    const shares = sharesOf(all.sums);
    const table = others.filter(isTable).find((block) => block.total);
    const chips =
      table &&
      legend(
        table,
        new Map(Object.keys(all.sums).map((phase) => [short(phase), phase])),
        this.phase,
        (phase) => this.filter(phase),
        () => this.openTab(1),
      );
    const head = title && "title" in title ? heading(title, "", facts, null) : h("div", {});
    return [
      head,
      h(
        "section",
        { class: "where", "aria-label": "Where the turns went" },
        h("h2", {}, "Where the turns went, all added up"),
        this.bar(shares),
        chips ?? null,
      ),
    ];
  }

  // -- tabs -----------------------------------------------------------------------------------------------

  private tabList(): Tab[] {
    const { words, turn, turnWords } = this;
    const { beside } = words;
    const compare: Tab[] = beside ? [["Compare", () => besideTab(beside)]] : [];
    if (!turn || !turnWords) {
      if (beside) return [...compare, ["Turns", () => this.turnsTab()]];
      return [
        ["Turns", () => this.turnsTab()],
        ["Phases", () => this.tablesTab()],
        ["Flame", () => flame(words.flame ?? [], "s", () => undefined)],
      ];
    }
    const at = this.at as number;
    return [
      ["Waterfall", () => this.waterfall?.element ?? null],
      ["Phases", () => reportTable(turnWords.phases, true)],
      [
        "Flame",
        () =>
          flame(
            words.flames[at] ?? [],
            this.unit,
            (phase) => phase !== UNATTRIBUTED && this.filter(phase, true),
          ),
      ],
      ["Spans", () => this.spans?.element ?? null],
      ["Tokens", () => tokens(turn, turnWords.facts.facts, this.unit)],
      ...compare,
    ];
  }

  private openTurn(at: number | "all"): void {
    this.at = at;
    this.phase = null;
    this.made.clear();
    this.closeDetails();
    const { turn, turnWords } = this;
    this.waterfall =
      turn && turnWords
        ? new Waterfall(turn, turnWords.name, this.unit, turnWords.findings, (item) => this.showItem(item))
        : null;
    this.spans = turn ? new SpanTable(turn, this.unit, (span_id) => this.showSpan(span_id)) : null;
    this.showFirst();
    this.openTab(0);
  }

  private openTab(at: number): void {
    const tabs = this.tabList();
    if (!tabs[at]) return;
    this.tab = at;
    const buttons = tabs.map(([name], index) =>
      h(
        "button",
        {
          type: "button",
          role: "tab",
          id: `tab-${index}`,
          "aria-controls": "panel",
          "aria-selected": String(index === at),
          tabindex: index === at ? 0 : -1,
          onclick: () => this.openTab(index),
          onkeydown: (event: KeyboardEvent) => this.tabKey(event, tabs.length),
        },
        name,
      ),
    );
    const cleared =
      this.phase &&
      h(
        "button",
        {
          type: "button",
          class: "filter",
          title: "Show every phase again",
          onclick: () => this.filter(null),
        },
        `only ${short(this.phase, 40)} ✕`,
      );
    replace(this.tabs, ...buttons);
    this.tabs.nextElementSibling?.classList.toggle("filtered", Boolean(cleared));
    replace(this.panel, cleared ? h("p", { class: "filters" }, cleared) : null, this.content(at));
    this.panel.setAttribute("aria-labelledby", `tab-${at}`);
  }

  private content(at: number): HTMLElement {
    let found = this.made.get(at);
    if (!found) {
      found = this.tabList()[at]?.[1]() ?? h("p", { class: "empty" }, "Nothing to show.");
      this.made.set(at, found);
    }
    return found;
  }

  private tabKey(event: KeyboardEvent, length: number): void {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    this.openTab((this.tab + step + length) % length);
    document.getElementById(`tab-${this.tab}`)?.focus();
  }

  private turnsTab(): HTMLElement {
    const { phase } = this;
    const turns = this.report?.turns ?? [];
    const order = this.words.turns.map((turn, at) => ({ turn, at }));
    if (phase !== null) order.sort((a, b) => (b.turn.sums[phase] ?? 0) - (a.turn.sums[phase] ?? 0));
    const longest = Math.max(1, ...turns.map((one) => one.wall_ns ?? 0));
    const row = ({ turn, at }: (typeof order)[number]): HTMLElement => {
      const shown = turns[at];
      const shares = sharesOf(turn.sums);
      const bar = smallBar(shares, phase);
      bar.style.width = `${(100 * (shown?.wall_ns ?? 0)) / longest}%`;
      const name = `${shown?.parent_run_id ? "└ " : ""}${at + 1}  ${short(turn.name, 60)}`;
      return h(
        "tr",
        {},
        h(
          "th",
          { scope: "row" },
          h("button", { type: "button", class: "link", onclick: () => this.openTurn(at) }, name),
        ),
        h("td", {}, shown?.status ?? ""),
        h("td", { class: "figure" }, turn.wall),
        h("td", { class: "bar" }, bar),
      );
    };
    const body = h("tbody", {}, ...order.slice(0, TURNS_SHOWN).map(row));
    const rest = order.slice(TURNS_SHOWN);
    const more = h(
      "button",
      { type: "button", onclick: () => (body.append(...rest.map(row)), more.remove()) },
      `${rest.length} more turns`,
    );
    const head = h(
      "tr",
      {},
      h("th", { scope: "col" }, "turn"),
      h("th", { scope: "col" }, "status"),
      h("th", { scope: "col", class: "figure" }, "wall"),
      h("th", { scope: "col", class: "bar" }, "where it went"),
    );
    return h(
      "div",
      { class: "wide", tabindex: 0, role: "region", "aria-label": "Turns" },
      h("table", { class: "report turns" }, h("thead", {}, head), body),
      rest.length ? more : null,
    );
  }

  private tablesTab(): HTMLElement {
    const tables = (this.words.all?.blocks ?? []).filter(isTable);
    return h("div", {}, ...tables.map((table) => reportTable(table, table.total !== null)));
  }

  // -- what is looked at ----------------------------------------------------------------------------------

  private filter(phase: string | null, only = false): void {
    this.phase = phase === this.phase && !only ? null : phase;
    this.waterfall?.filter(this.phase);
    this.spans?.filter(this.phase);
    if (this.at === "all") this.made.delete(0);
    this.showFirst();
    this.openTab(this.tab);
  }

  private showFinding(finding: Finding): void {
    const [first] = finding.span_ids;
    if (first === undefined) return;
    if (this.phase) this.filter(null);
    this.openTab(0);
    this.showSpan(first);
  }

  private showSpan(span_id: string): void {
    this.waterfall?.show(span_id);
    const item = this.waterfall?.item(span_id);
    if (item) this.showItem(item);
  }

  private showItem(item: Item): void {
    const { turn } = this;
    if (!turn) return;
    replace(
      this.aside,
      details(
        item,
        turn,
        this.unit,
        () => this.closeDetails(),
        (span_id) => this.showSpan(span_id),
      ),
    );
    this.aside.hidden = false;
    this.spans?.select(item.id);
  }

  private closeDetails(): void {
    this.aside.hidden = true;
    this.aside.replaceChildren();
  }

  private switchTheme(): void {
    const isDark = getComputedStyle(document.documentElement).getPropertyValue("--scheme").trim() === "dark";
    document.documentElement.dataset["theme"] = isDark ? "light" : "dark";
    this.waterfall?.themeChanged();
  }

  private key(event: KeyboardEvent): void {
    const target = event.target as HTMLElement;
    if (event.key === "Escape") return this.closeDetails();
    if (event.altKey || event.ctrlKey || event.metaKey || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName))
      return;
    if (event.key === "/" && this.spans) {
      event.preventDefault();
      this.openTab(3);
      this.spans.search.focus();
    } else if (/^[1-9]$/.test(event.key)) this.openTab(Number(event.key) - 1);
    else if (event.key === "t") this.switchTheme();
    else if (this.tab === 0 && (target === document.body || !event.key.startsWith("Arrow")))
      this.waterfallKey(event, target);
  }

  private waterfallKey(event: KeyboardEvent, target: HTMLElement): void {
    const isButton = target.tagName === "BUTTON" && (event.key === "Enter" || event.key === " ");
    if (!isButton) this.waterfall?.key(event);
  }
}

function sharesOf(sums: Record<string, number>): Share[] {
  return Object.entries(sums).map(([phase, ns]) => ({ phase, ns }));
}

async function main(): Promise<void> {
  await new App(await readWords()).start();
}

void main().catch((error: unknown) => {
  add(document.body, [
    h("p", { class: "broken", role: "alert" }, `This page could not be shown: ${String(error)}`),
  ]);
  throw error;
});
