// The flame: wall shares along the path of phases, from the whole turn at the top down to its leaves.

import { partition, stratify, type HierarchyRectangularNode } from "d3-hierarchy";
import type { Frame } from "./document";
import { h, replace, short } from "./dom";
import { count, time, type Unit } from "./format";
import { color, ink, isHatched, UNATTRIBUTED } from "./phases";

type Node = HierarchyRectangularNode<Frame>;

const LEAST_SHARE = 0.0005;
const ROW_PX = 24;

/** `onPhase` is told of the phase of a frame that was clicked. */
export function flame(frames: Frame[], unit: Unit, onPhase: (phase: string) => void): HTMLElement {
  const whole = frames[0];
  if (!whole || frames.every((frame) => frame.own_ns === 0)) {
    return h("p", { class: "empty" }, "No shares are known: the turn has no end.");
  }
  const root = layout(frames);
  const stage = h("div", { class: "flame", role: "group", "aria-label": "Flame of wall shares" });
  const note = h("p", { class: "flame-note", "aria-live": "polite" });
  const show = (focus: Node): void => {
    note.textContent = describe(focus, root, unit);
    stage.style.height = `${(root.height + 1) * ROW_PX}px`;
    replace(stage, ...drawn(root, focus, unit, show, onPhase));
  };
  show(root);
  const help =
    "Width is wall share: a level never exceeds the turn, and time without a phase is the ? frame. Click to zoom.";
  return h("div", {}, h("p", { class: "help" }, help), note, stage);
}

function layout(frames: Frame[]): Node {
  const tree = stratify<[number, Frame]>()
    .id(([index]) => String(index))
    .parentId(([, frame]) => (frame.parent === null ? null : String(frame.parent)))(
    frames.map((frame, index) => [index, frame]),
  );
  const sized = tree.sum(([, frame]) => frame.own_ns).sort((a, b) => (b.value ?? 0) - (a.value ?? 0));
  const placed = partition<[number, Frame]>()(sized);
  // the frame alone is what a node is about; its number was for the parents
  placed.each((node) => ((node as unknown as { data: Frame }).data = node.data[1]));
  return placed as unknown as Node;
}

function describe(node: Node, root: Node, unit: Unit): string {
  const share = (100 * (node.value ?? 0)) / (root.value || 1);
  const path = node
    .ancestors()
    .reverse()
    .map((one) => short(one.data.name, 40))
    .join(" › ");
  const spans = node.depth && node.data.count ? ` · ${count(node.data.count)} spans` : "";
  return `${path}: ${time(node.value ?? 0, unit)} · ${share.toFixed(1)} %${spans}`;
}

function drawn(
  root: Node,
  focus: Node,
  unit: Unit,
  show: (node: Node) => void,
  onPhase: (phase: string) => void,
): HTMLElement[] {
  const width = focus.x1 - focus.x0 || 1;
  const frames: HTMLElement[] = [];
  root.each((node) => {
    const left = Math.max((node.x0 - focus.x0) / width, 0);
    const right = Math.min((node.x1 - focus.x0) / width, 1);
    if (right - left < LEAST_SHARE) return;
    frames.push(
      frame(node, left, right - left, describe(node, root, unit), () => {
        show(node === focus && node.parent ? node.parent : node);
        if (node.data.phase) onPhase(node.data.phase);
      }),
    );
  });
  return frames;
}

function frame(node: Node, left: number, width: number, text: string, act: () => void): HTMLElement {
  const { phase, name } = node.data;
  const isRoot = node.depth === 0;
  return h(
    "button",
    {
      type: "button",
      class: `frame${isHatched(phase) ? " hatched" : ""}${phase === UNATTRIBUTED ? " gap" : ""}`,
      title: text,
      "aria-label": text,
      "style:left": `${left * 100}%`,
      "style:width": `${width * 100}%`,
      "style:top": `${node.depth * ROW_PX}px`,
      "style:background-color": isRoot ? "var(--raised)" : color(phase),
      "style:color": isRoot ? "var(--text)" : ink(phase),
      onclick: act,
    },
    width > 0.02 ? h("span", {}, phase === UNATTRIBUTED ? "? unattributed" : short(name, 60)) : null,
  );
}
