// An agent of Vercel's AI SDK with the official OpenTelemetry SDK, which variables alone tell where to send.

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { createOpenAI } from "@ai-sdk/openai";
import { OpenTelemetry } from "@ai-sdk/otel";
import { NodeSDK } from "@opentelemetry/sdk-node";
import { isStepCount, registerTelemetry, streamText, tool } from "ai";
import { z } from "zod";

const sdk = new NodeSDK();
sdk.start();
registerTelemetry(new OpenTelemetry());

const shell = tool({
  description: "Run a command.",
  inputSchema: z.object({ command: z.string() }),
  execute: async ({ command }) => (await promisify(execFile)("sh", ["-c", command])).stdout,
});

const answer = streamText({
  model: createOpenAI({ baseURL: process.env.MODEL_URL, apiKey: "fake" }).chat("gpt-fake"),
  tools: { shell },
  prompt: process.argv[2],
  stopWhen: isStepCount(5),
  telemetry: { isEnabled: true, functionId: "node-agent" },
});
for await (const text of answer.textStream) process.stdout.write(text);
await sdk.shutdown().catch(() => {}); // nobody may be listening
