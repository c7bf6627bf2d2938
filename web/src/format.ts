// Figures as the report prints them: three decimals, rounded half up, unknown as a dash.

export type Unit = "s" | "ms";
export const UNKNOWN = "–";

const TICK_NS: Record<Unit, number> = { s: 1_000_000, ms: 1_000 };

/** Nanoseconds as a figure without its unit. */
export function figure(ns: number | null, unit: Unit): string {
  if (ns === null) return UNKNOWN;
  return (Math.floor(ns / TICK_NS[unit] + 0.5) / 1000).toFixed(3);
}

/** Nanoseconds with their unit. */
export function time(ns: number | null, unit: Unit): string {
  return ns === null ? UNKNOWN : `${figure(ns, unit)} ${unit}`;
}

/** A count with thousands separated. */
export function count(value: number | null): string {
  return value === null ? UNKNOWN : value.toLocaleString("en-US");
}

/** A tick of the time axis; `step` is the distance to the next one, both in nanoseconds. */
export function tick(ns: number, step: number): string {
  const [size, name]: [number, string] = step >= 1e8 ? [1e9, "s"] : step >= 1e5 ? [1e6, "ms"] : [1e3, "µs"];
  const decimals = Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9));
  return `${(ns / size).toFixed(decimals)} ${name}`;
}

/** When the turn began, in the reader's own time zone. */
export function clock(started_at_ns: string | null): string {
  if (started_at_ns === null) return UNKNOWN;
  return new Date(Number(BigInt(started_at_ns) / 1_000_000n)).toLocaleString();
}
