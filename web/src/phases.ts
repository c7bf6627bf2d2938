// How a phase looks: its fixed colour, whether it is hatched, and ink that can be read on it.

export const UNATTRIBUTED = "unattributed";
const HATCHED = new Set(["permission_wait", "process_wait"]);
const RETRIES = new Set(["retry_wait", "reconnect_wait"]);

let colors: Record<string, string> = {};

export function setColors(table: Record<string, string>): void {
  colors = table;
}

/** The colour of a phase; one that nobody knows looks like `other`. */
export function color(phase: string | null): string {
  return colors[phase ?? UNATTRIBUTED] ?? colors["other"] ?? "#808080";
}

export function isPhase(name: string): boolean {
  return name in colors;
}

export function isHatched(phase: string | null): boolean {
  return phase !== null && HATCHED.has(phase);
}

export function isRetry(phase: string | null): boolean {
  return phase !== null && RETRIES.has(phase);
}

function linear(part: number): number {
  const value = part / 255;
  return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
}

/** Black or white, whichever stands out more on the phase's colour. */
export function ink(phase: string | null): string {
  const hex = color(phase);
  const part = (at: number): number => linear(Number.parseInt(hex.slice(at, at + 2), 16));
  const luminance = 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
  return luminance > 0.179 ? "#000" : "#fff";
}
