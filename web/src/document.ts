// What the page is given: the report of schema 1, and the words and sums that were made beside it.

export interface Usage {
  input_tokens: number | null;
  cached_input_tokens: number | null;
  cache_write_tokens: number | null;
  output_tokens: number | null;
  reasoning_tokens: number | null;
  total_tokens: number | null;
}

export interface Span {
  span_id: string;
  parent_id: string | null;
  parent_source: string;
  name: string;
  phase: string | null;
  structure: boolean;
  round: number | null;
  tool: string | null;
  model: string | null;
  usage: Usage | null;
  attributes: Record<string, unknown>;
  start_ns: number;
  end_ns: number;
  exclusive_ns: number;
  wall_share_ns: number | null;
  critical_ns: number | null;
  status: string;
  outcome: string | null;
  detached: boolean;
}

export interface Phase {
  phase: string;
  wall_share_ns: number | null;
}

export interface Round {
  round: number;
  wall_ns: number | null;
  model: string | null;
  tools: string[];
  input_tokens: number | null;
  cached_input_tokens: number | null;
  output_tokens: number | null;
}

export interface Turn {
  run_id: string;
  parent_run_id: string | null;
  session_id: string;
  trace_id: string;
  labels: Record<string, string>;
  status: string;
  started_at_ns: string | null;
  wall_ns: number | null;
  unattributed_ns: number | null;
  first_token_ns: number | null;
  first_visible_ns: number | null;
  root: { span_id: string | null; name: string };
  usage: Usage & { complete: boolean; known: Usage };
  phases: Phase[];
  by_round: Round[];
  spans: Span[];
  critical_path: { span_id: string | null; start_ns: number; end_ns: number }[];
  gaps: { start_ns: number; end_ns: number; after: string | null; before: string | null }[];
  unattributed: { span_id: string; name: string; ns: number }[];
  warnings: { code: string; message: string; line: number | null }[];
}

export interface Report {
  schema: 1;
  turns: Turn[];
}

export interface Row {
  label: string;
  cells: string[];
  depth: number;
  fraction: number;
  note: string;
  quiet: boolean;
}

export interface Table {
  heading: string;
  columns: string[];
  rows: Row[];
  total: { cells: string[]; note: string } | null;
}

export interface Heading {
  title: string;
  figures: string;
  note: string;
}

export interface Facts {
  facts: string[];
}

export type Block = Heading | Facts | Table;

export interface Finding {
  label: string;
  phase: string | null;
  message: string;
  saves: string;
  span_ids: string[];
}

export interface TurnWords {
  heading: Heading;
  name: string;
  wall: string;
  unit: "s" | "ms";
  /** Wall share by phase, the largest first, `unattributed` last; it adds up to the wall. */
  sums: Record<string, number>;
  facts: Facts;
  moments: Facts | null;
  missing: { text: string; warn: boolean }[];
  findings: Finding[];
  table: Table;
  phases: Table;
}

export interface Frame {
  parent: number | null;
  name: string;
  phase: string;
  own_ns: number;
  count: number;
}

export interface Words {
  turns: TurnWords[];
  all: { blocks: Block[]; sums: Record<string, number> } | null;
  flames: Frame[][];
  flame: Frame[] | null;
  colors: Record<string, string>;
  files: string[];
  beside: Block[] | null;
}

/** The JSON of an element; what is large is compressed. */
async function read(id: string): Promise<unknown> {
  const element = document.getElementById(id);
  const text = element?.textContent ?? "";
  if (element?.dataset["encoding"] !== "gzip") return JSON.parse(text) as unknown;
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return (await new Response(stream).json()) as unknown;
}

/** The words, small unless the turns are very many: the first screen needs no more. */
export async function readWords(): Promise<Words> {
  return (await read("words")) as Words;
}

export async function readReport(): Promise<Report> {
  return (await read("report")) as Report;
}
