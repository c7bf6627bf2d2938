// The rows of the waterfall: the turn, its rounds, and the spans of each below one another.

import type { Round, Span, Turn } from "./document";

export interface Item {
  kind: "turn" | "round" | "span";
  id: string;
  label: string;
  phase: string | null;
  span: Span | null;
  round: Round | null;
  start: number;
  end: number;
  level: number;
  parent: Item | null;
  children: Item[];
  /** The spans below it in the trace; `children` may stand elsewhere, below their round. */
  inner: Item[];
  open: boolean;
  critical: boolean;
  /** Its number among what to fix first, 0 for none. */
  fix: number;
  /** Parts of its own, [start, end, start, end, …], once they were asked for. */
  own: number[] | null;
}

export interface Tree {
  turn: Item;
  byId: Map<string, Item>;
  /** What the time axis covers. */
  start: number;
  end: number;
  deepest: number;
}

const OPEN_UP_TO = 400;

/** What a person calls a span: its tool, its phase, or its own name. */
export function nameOf(span: Span): string {
  if (span.phase === "tool_execution" && span.tool) return span.tool;
  return span.phase === null || span.phase === "other" ? span.name : span.phase;
}

function itemOf(kind: Item["kind"], id: string, label: string): Item {
  return {
    kind,
    id,
    label,
    phase: null,
    span: null,
    round: null,
    start: Infinity,
    end: -Infinity,
    level: 1,
    parent: null,
    children: [],
    inner: [],
    open: true,
    critical: false,
    fix: 0,
    own: null,
  };
}

function spanItem(span: Span): Item {
  const item = itemOf("span", span.span_id, nameOf(span));
  item.phase = span.phase;
  item.span = span;
  item.start = span.start_ns;
  item.end = Math.max(span.end_ns, span.start_ns);
  return item;
}

export function buildTree(turn: Turn, name: string): Tree {
  const root = itemOf("turn", turn.root.span_id ?? "turn", name || "turn");
  const byId = new Map<string, Item>();
  for (const span of turn.spans) byId.set(span.span_id, spanItem(span));
  for (const part of turn.critical_path) {
    const item = part.span_id === null ? undefined : byId.get(part.span_id);
    if (item && part.end_ns > part.start_ns) item.critical = true;
  }
  hang(turn, root, byId);
  root.start = 0;
  root.end = turn.wall_ns ?? lastEnd(turn.spans);
  const deepest = settle(root, byId.size > OPEN_UP_TO);
  byId.set(root.id, root);
  const [start, end] = extent(turn.spans, root);
  return { turn: root, byId, start, end, deepest };
}

function lastEnd(spans: Span[]): number {
  return spans.reduce((latest, span) => Math.max(latest, span.end_ns), 0);
}

function extent(spans: Span[], root: Item): [number, number] {
  let start = root.start;
  let end = root.end;
  for (const span of spans) {
    start = Math.min(start, span.start_ns);
    end = Math.max(end, span.end_ns);
  }
  return [start, end > start ? end : start + 1];
}

/** Put every span below its parent, or below its round where its parent is of none or of another. */
function hang(turn: Turn, root: Item, byId: Map<string, Item>): void {
  const rounds = new Map<number, Item>();
  for (const round of turn.by_round) {
    const item = itemOf("round", `round ${round.round}`, `round ${round.round}`);
    item.round = round;
    rounds.set(round.round, item);
  }
  const parents = new Map<Item, Item | undefined>();
  for (const span of turn.spans) {
    const item = byId.get(span.span_id) as Item;
    const parent = span.parent_id === null ? undefined : byId.get(span.parent_id);
    parents.set(item, parent);
    (parent ?? root).inner.push(item);
  }
  const numbers = roundNumbers(root);
  for (const [item, parent] of parents) {
    const number = numbers.get(item) ?? null;
    const group = number === null ? undefined : rounds.get(number);
    const above = group && (!parent || numbers.get(parent) !== number) ? group : (parent ?? root);
    item.parent = above;
    above.children.push(item);
  }
  for (const round of rounds.values()) {
    if (round.children.length === 0) continue;
    for (const child of round.children) {
      round.start = Math.min(round.start, child.start);
      round.end = Math.max(round.end, child.end);
    }
    round.parent = root;
    root.children.push(round);
  }
}

/** The round of each item: its own, else that of everything below it where that is one and the same. */
function roundNumbers(root: Item): Map<Item, number | null> {
  const ordered = [root];
  for (let at = 0; at < ordered.length; at++) ordered.push(...(ordered[at] as Item).inner);
  const numbers = new Map<Item, number | null>();
  for (const item of ordered.reverse()) {
    const below = new Set(item.inner.map((inner) => numbers.get(inner) ?? null));
    const [only] = below;
    numbers.set(item, item.span?.round ?? (item.span && below.size === 1 ? (only ?? null) : null));
  }
  return numbers;
}

/** Order children by time, set levels, and close rounds where there is too much to show at once. */
function settle(root: Item, closed: boolean): number {
  let deepest = 1;
  const left = [root];
  for (let item = left.pop(); item; item = left.pop()) {
    item.children.sort((a, b) => a.start - b.start || b.end - a.end);
    item.inner.sort((a, b) => a.start - b.start);
    if (closed && item.kind === "round") item.open = false;
    for (const child of item.children) {
      child.level = item.level + 1;
      deepest = Math.max(deepest, child.level);
      left.push(child);
    }
  }
  return deepest;
}

/** Whether an item is shown while only one phase is wanted. */
export function matches(item: Item, phase: string | null): boolean {
  if (phase === null) return true;
  if (phase === "unattributed") return item.kind === "turn" || (item.kind === "span" && item.phase === null);
  return item.phase === phase;
}

/** The items that are visible, in order; with a phase wanted, those of it and what is above them. */
export function visible(tree: Tree, phase: string | null): Item[] {
  const wanted = phase === null ? null : withAncestors(tree, phase);
  const shown: Item[] = [];
  const left = [tree.turn];
  for (let item = left.pop(); item; item = left.pop()) {
    if (wanted && !wanted.has(item)) continue;
    shown.push(item);
    if (!item.open) continue;
    for (let at = item.children.length - 1; at >= 0; at--) left.push(item.children[at] as Item);
  }
  return shown;
}

function withAncestors(tree: Tree, phase: string): Set<Item> {
  const wanted = new Set<Item>([tree.turn]);
  for (const item of tree.byId.values()) {
    if (!matches(item, phase)) continue;
    for (let at: Item | null = item; at && !wanted.has(at); at = at.parent) wanted.add(at);
  }
  return wanted;
}

/** The parts of an item that no span below it covers: layout of the solid part of its bar. */
export function ownParts(item: Item): number[] {
  if (item.own) return item.own;
  const parts: number[] = [];
  let at = item.start;
  for (const child of item.inner) {
    if (child.end <= at) continue;
    if (child.start >= item.end) break;
    if (child.start > at) parts.push(at, child.start);
    at = Math.max(at, child.end);
  }
  if (at < item.end) parts.push(at, item.end);
  item.own = parts;
  return parts;
}

/** Everything below an item, itself left out. */
export function below(item: Item): Item[] {
  const found: Item[] = [];
  const left = [...item.children];
  for (let at = left.pop(); at; at = left.pop()) {
    found.push(at);
    left.push(...at.children);
  }
  return found;
}

/** Open what is above an item so that it is visible. */
export function reveal(item: Item): void {
  for (let at = item.parent; at; at = at.parent) at.open = true;
}
