// Vercel's AI SDK 5 with its experimental_telemetry.

import { createOpenAI } from "@ai-sdk/openai";
import { generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";
import * as lab from "./lab.mjs";

const provider = lab.provider();
const model = createOpenAI({ baseURL: `${lab.url}/v1`, apiKey: "fake" }).chat("gpt-fake");

const weather = tool({
  description: "Tell the weather of a city.",
  inputSchema: z.object({ city: z.string() }),
  execute: ({ city }) => lab.noted("tool:weather", 0.1, () => `Sun in ${city}.`),
});

const tides = tool({
  description: "Tell the tides of a port.",
  inputSchema: z.object({ port: z.string() }),
  execute: () =>
    lab.noted("tool:tides", 0.05, () => {
      throw new Error("tides is closed");
    }),
});

const ask_researcher = tool({
  description: "Ask somebody who knows.",
  inputSchema: z.object({ question: z.string() }),
  execute: ({ question }) =>
    lab.noted("tool:ask_researcher", 0, () =>
      lab.noted("agent:researcher", 0, async () => {
        const experimental_telemetry = { isEnabled: true, functionId: "researcher" };
        return (await generateText({ model, prompt: question, experimental_telemetry })).text;
      }),
    ),
});

const experimental_telemetry = { isEnabled: true, functionId: "planner" };
const tools = { weather, tides, ask_researcher };
const plan = (prompt) => ({ model, tools, prompt, stopWhen: stepCountIs(9), experimental_telemetry });

console.log((await generateText(plan(lab.TRIP))).text);
for await (const text of streamText(plan(lab.EVENING)).textStream) process.stdout.write(text);
console.log((await generateText(plan(lab.SILENT))).text);

await provider.shutdown();
