// What an agent in JavaScript needs: a diary of its tools, and spans as lines of OTLP JSON.

import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { NodeTracerProvider, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-node";

export const url = process.env.FRAMEWORKS_URL;
export const TRIP = "Plan a trip by boat.";
export const EVENING = "Describe the evening.";
export const SILENT = "How are you?";

const now = () => BigInt(Math.round((performance.timeOrigin + performance.now()) * 1e6));

/** Note that `work` ran, whatever came of it. */
export async function noted(what, seconds, work) {
  const began = now();
  let failed = true;
  try {
    await sleep(seconds * 1000);
    const found = await work();
    failed = false;
    return found;
  } finally {
    const line = `{"what": "${what}", "start_ns": ${began}, "end_ns": ${now()}, "failed": ${failed}}\n`;
    appendFileSync(process.env.FRAMEWORKS_DIARY, line);
  }
}

/** A provider whose spans go to the file. */
export function provider() {
  const found = new NodeTracerProvider({
    resource: resourceFromAttributes({ "service.name": "agent" }),
    spanProcessors: [new SimpleSpanProcessor(new Exporter())],
  });
  found.register();
  return found;
}

class Exporter {
  export(spans, done) {
    const lines = spans.map((span) => JSON.stringify({ resourceSpans: [resourceSpans(span)] }) + "\n");
    appendFileSync(process.env.FRAMEWORKS_SPANS, lines.join(""));
    done({ code: 0 });
  }
  async shutdown() {}
  async forceFlush() {}
}

function resourceSpans(span) {
  const { name, version } = span.instrumentationScope;
  return {
    resource: { attributes: attributes({ "service.name": "agent", "telemetry.sdk.language": "nodejs" }) },
    scopeSpans: [{ scope: { name, version: version ?? "" }, spans: [otlp(span)] }],
  };
}

function otlp(span) {
  const context = span.spanContext();
  const parent = span.parentSpanContext;
  return {
    traceId: context.traceId,
    spanId: context.spanId,
    ...(parent && { parentSpanId: parent.spanId }),
    flags: context.traceFlags | (parent ? 0x100 : 0),
    name: span.name,
    kind: span.kind + 1,
    startTimeUnixNano: nanoseconds(span.startTime),
    endTimeUnixNano: nanoseconds(span.endTime),
    attributes: attributes(span.attributes),
    events: span.events.map((event) => ({
      timeUnixNano: nanoseconds(event.time),
      name: event.name,
      attributes: attributes(event.attributes ?? {}),
    })),
    status: { code: span.status.code, ...(span.status.message && { message: span.status.message }) },
  };
}

const nanoseconds = ([seconds, rest]) => String(BigInt(seconds) * 1_000_000_000n + BigInt(rest));

const attributes = (given) =>
  Object.entries(given).map(([key, it]) => ({
    key,
    value: value(key === "exception.stacktrace" ? "" : it),
  }));

function value(given) {
  if (Array.isArray(given)) return { arrayValue: { values: given.map(value) } };
  if (typeof given === "boolean") return { boolValue: given };
  if (Number.isInteger(given)) return { intValue: String(given) };
  if (typeof given === "number") return { doubleValue: given };
  return given == null ? {} : { stringValue: String(given) };
}
