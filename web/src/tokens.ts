// Tokens round by round; what was not reported is a dash, never a zero.

import type { Round, Turn } from "./document";
import { h, short } from "./dom";
import { count, time, type Unit } from "./format";

export function tokens(turn: Turn, facts: string[], unit: Unit): HTMLElement {
  if (turn.by_round.length === 0) {
    return h(
      "div",
      {},
      h("p", {}, facts.join(" · ")),
      h("p", { class: "empty" }, "The trace tells of no rounds."),
    );
  }
  const most = Math.max(
    1,
    ...turn.by_round.flatMap((round) => [round.input_tokens ?? 0, round.output_tokens ?? 0]),
  );
  const titles = ["round", "share of wall", "model", "tokens in", "cached", "tokens out"];
  const head = h(
    "tr",
    {},
    ...titles.map((title, at) => h("th", { scope: "col", class: at === 2 ? null : "figure" }, title)),
    h("th", { class: "bar", scope: "col" }, "in and out"),
  );
  const rows = turn.by_round.map((round) =>
    h(
      "tr",
      {},
      h("th", { scope: "row", class: "figure" }, String(round.round)),
      h("td", { class: "figure" }, time(round.wall_ns, unit)),
      h("td", {}, short(round.model ?? "")),
      h("td", { class: "figure" }, count(round.input_tokens)),
      h("td", { class: "figure" }, count(round.cached_input_tokens)),
      h("td", { class: "figure" }, count(round.output_tokens)),
      h("td", { class: "bar" }, bars(round, most)),
    ),
  );
  const { usage } = turn;
  const sum = h(
    "tr",
    { class: "total" },
    h("th", { scope: "row" }, "turn"),
    h("td", { class: "figure" }, time(turn.wall_ns, unit)),
    h("td", {}, usage.complete ? "" : "not every call reported"),
    h("td", { class: "figure" }, count(usage.input_tokens)),
    h("td", { class: "figure" }, count(usage.cached_input_tokens)),
    h("td", { class: "figure" }, count(usage.output_tokens)),
    h("td", {}),
  );
  const table = h(
    "table",
    { class: "report" },
    h("caption", {}, "Tokens by round"),
    h("thead", {}, head),
    h("tbody", {}, ...rows, sum),
  );
  return h(
    "div",
    {},
    h(
      "p",
      { class: "help" },
      h("i", { class: "tok tok-in" }),
      " read ",
      h("i", { class: "tok tok-cached" }),
      " of which from the cache ",
      h("i", { class: "tok tok-out" }),
      " written. A dash is unknown, not zero.",
    ),
    h("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Tokens by round" }, table),
  );
}

function bars(round: Round, most: number): HTMLElement {
  const part = (kind: string, value: number | null): HTMLElement | null =>
    value === null ? null : h("i", { class: `tok tok-${kind}`, "style:width": `${(100 * value) / most}%` });
  return h(
    "div",
    { class: "tok-bars", "aria-hidden": "true" },
    h("div", {}, part("in", round.input_tokens), part("cached", round.cached_input_tokens)),
    h("div", {}, part("out", round.output_tokens)),
  );
}
