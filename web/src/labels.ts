// The label of a row of the waterfall, and the words for those who do not see its bar.

import { h, short } from "./dom";
import { time, type Unit } from "./format";
import { markOf, size } from "./paint";
import { color, isHatched } from "./phases";
import type { Item } from "./tree";

const DEEPEST_INDENT = 12;

/** A sentence for those who do not see the bar, and for the tip over it. */
export function describe(item: Item, unit: Unit): string {
  const parts = [item.label];
  if (item.phase && item.phase !== item.label) parts.push(item.phase);
  if (item.kind === "round") parts.push(`${time(item.round?.wall_ns ?? null, unit)} of the wall`);
  else parts.push(`took ${time(item.end - item.start, unit)}`);
  if (item.span) {
    parts.push(`own ${time(item.span.exclusive_ns, unit)}`);
    const { critical_ns } = item.span;
    if (critical_ns) parts.push(`critical path ${time(critical_ns, unit)}`);
    else if (critical_ns === 0) parts.push("not on the critical path");
    if (item.span.outcome && item.span.outcome !== "ok") parts.push(item.span.outcome);
  }
  if (item.fix) parts.push(`number ${item.fix} of what to fix first`);
  return short(parts.join(" · "), 300);
}

/** The row as an element; `click` is told whether its twisty was hit. */
export function labelRow(
  item: Item,
  index: number,
  unit: Unit,
  isSelected: boolean,
  click: (onTwisty: boolean) => void,
): HTMLElement {
  const isParent = item.children.length > 0;
  return h(
    "div",
    {
      role: "row",
      id: `row-${index}`,
      class: `wf-row wf-${item.kind}${isSelected ? " selected" : ""}`,
      "aria-level": item.level,
      "aria-rowindex": index + 1,
      "aria-selected": String(isSelected),
      "aria-expanded": isParent ? String(item.open) : null,
      onclick: (event: MouseEvent) =>
        click(event.target instanceof Element && event.target.classList.contains("twisty")),
    },
    label(item, unit, isParent),
  );
}

function label(item: Item, unit: Unit, isParent: boolean): HTMLElement {
  const indent = Math.min(item.level - 1, DEEPEST_INDENT) * size.bar;
  const mark = markOf(item);
  const tools = item.round?.tools ?? [];
  return h(
    "span",
    { role: "gridcell", class: "wf-label", "style:padding-left": `${indent}px`, title: describe(item, unit) },
    h("span", { class: "twisty", "aria-hidden": "true" }, isParent ? (item.open ? "▾" : "▸") : ""),
    item.span && swatch(item),
    h("span", { class: "wf-name" }, short(item.label)),
    item.fix
      ? h("b", { class: "wf-fix", title: `number ${item.fix} of what to fix first` }, String(item.fix))
      : null,
    mark ? h("span", { class: "wf-mark" }, ` ${mark}`) : null,
    tools.length ? h("span", { class: "wf-note" }, short(tools.join(", "), 60)) : null,
    item.critical ? h("span", { class: "wf-critical", title: "on the critical path" }, "●") : null,
  );
}

function swatch(item: Item): HTMLElement {
  return h("i", {
    class: isHatched(item.phase) ? "swatch hatched" : "swatch",
    "aria-hidden": "true",
    "style:background-color": color(item.phase),
  });
}
