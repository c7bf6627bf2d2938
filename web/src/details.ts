// Everything that is known of one span.

import type { Span, Turn, Usage } from "./document";
import { h, short } from "./dom";
import { count, time, UNKNOWN, type Unit } from "./format";
import { color, isHatched } from "./phases";
import type { Item } from "./tree";

type Pair = [string, string];

const TOKENS: [string, keyof Usage][] = [
  ["input tokens", "input_tokens"],
  ["of which cached", "cached_input_tokens"],
  ["cache writes", "cache_write_tokens"],
  ["output tokens", "output_tokens"],
  ["of which reasoning", "reasoning_tokens"],
];

/** `close` is called when the reader has seen enough, `show` to look at another span. */
export function details(
  item: Item,
  turn: Turn,
  unit: Unit,
  close: () => void,
  show: (span_id: string) => void,
): HTMLElement {
  const { span } = item;
  const title = h(
    "h2",
    { tabindex: -1 },
    span
      ? h("i", {
          class: isHatched(item.phase) ? "swatch hatched" : "swatch",
          "style:background-color": color(item.phase),
        })
      : null,
    short(item.label, 200),
  );
  const head = h(
    "div",
    { class: "d-head" },
    title,
    h("button", { type: "button", title: "Close (Escape)", "aria-label": "Close", onclick: close }, "✕"),
  );
  if (!span) return h("div", {}, head, list(pairsOfGroup(item, turn, unit)));
  const warnings = turn.warnings.filter((warning) => warning.message.includes(span.span_id));
  return h(
    "div",
    {},
    head,
    list(pairsOfSpan(span, turn, unit)),
    parentLink(item, show),
    span.usage
      ? section(
          "Usage",
          TOKENS.map(([name, key]): Pair => [name, count((span.usage as Usage)[key])]),
        )
      : null,
    section(
      "Attributes",
      Object.entries(span.attributes).map(([name, value]): Pair => [name, String(value)]),
    ),
    section(
      "Warnings",
      warnings.map((warning): Pair => [warning.code, warning.message]),
    ),
  );
}

function pairsOfGroup(item: Item, turn: Turn, unit: Unit): Pair[] {
  if (item.round) {
    const { round } = item;
    return [
      ["share of the wall", time(round.wall_ns, unit)],
      ["model", round.model ?? UNKNOWN],
      ["tools", round.tools.join(", ") || "none"],
      ["tokens in", count(round.input_tokens)],
      ["of which cached", count(round.cached_input_tokens)],
      ["tokens out", count(round.output_tokens)],
    ];
  }
  return [
    ["name", turn.root.name],
    ["wall", time(turn.wall_ns, unit)],
    ["unattributed", time(turn.unattributed_ns, unit)],
    ...turn.unattributed.map((part): Pair => [`? inside ${part.name}`, time(part.ns, unit)]),
    ["run", turn.run_id],
    ["trace", turn.trace_id || UNKNOWN],
    ["session", turn.session_id || UNKNOWN],
    ...Object.entries(turn.labels).map(([name, value]): Pair => [`label ${name}`, value]),
    ["spans", count(turn.spans.length)],
    ...turn.warnings.map((warning): Pair => [
      warning.code,
      warning.line === null ? warning.message : `line ${warning.line}: ${warning.message}`,
    ]),
  ];
}

function pairsOfSpan(span: Span, turn: Turn, unit: Unit): Pair[] {
  const took = Math.max(span.end_ns - span.start_ns, 0);
  const pairs: (Pair | false)[] = [
    ["name", span.name],
    ["phase", span.phase ?? "structure: no phase, its own time is unattributed"],
    span.round !== null && ["round", String(span.round)],
    span.tool !== null && ["tool", span.tool],
    span.model !== null && ["model", span.model],
    ["start", time(span.start_ns, unit)],
    ["end", time(span.end_ns, unit)],
    ["took", time(took, unit)],
    ["own (exclusive)", time(span.exclusive_ns, unit)],
    ["share of the wall", time(span.wall_share_ns, unit)],
    ["critical path", time(span.critical_ns, unit)],
    ["outcome", span.outcome ?? span.status],
    span.detached && ["detached", "it ended after its parent"],
    ["span", span.span_id],
    ["trace", turn.trace_id || UNKNOWN],
  ];
  return pairs.filter((pair): pair is Pair => pair !== false);
}

function parentLink(item: Item, show: (span_id: string) => void): HTMLElement | null {
  const { span } = item;
  if (!span?.parent_id) return null;
  const parent = span.parent_id;
  const source = span.parent_source === "otel" ? "" : ` (${span.parent_source})`;
  return h(
    "p",
    {},
    "below ",
    h("button", { type: "button", class: "link", onclick: () => show(parent) }, parent),
    source,
  );
}

function section(title: string, pairs: Pair[]): HTMLElement | null {
  return pairs.length ? h("section", {}, h("h3", {}, title), list(pairs)) : null;
}

function list(pairs: Pair[]): HTMLElement {
  return h(
    "dl",
    {},
    ...pairs.flatMap(([name, value]) => [h("dt", {}, short(name, 120)), h("dd", {}, short(value, 2000))]),
  );
}
