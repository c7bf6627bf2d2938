// Reads a JSON report and tells where the solid part of a bar, as the page lays it out, is not the exclusive time.
// Run in web/, whose sources and tools it uses: node ../tests/browser/own_parts.mjs < report.json
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const web = process.cwd();
const { buildSync } = createRequire(join(web, "package.json"))("esbuild");
const built = buildSync({ entryPoints: [join(web, "src/tree.ts")], bundle: true, format: "esm", write: false });
const { buildTree, ownParts, visible } = await import(
  `data:text/javascript;base64,${Buffer.from(built.outputFiles[0].text).toString("base64")}`
);

const report = JSON.parse(readFileSync(0, "utf8"));
const wrong = [];
let spans = 0;
for (const turn of report.turns) {
  const tree = buildTree(turn, "turn");
  for (const item of [tree.turn, ...tree.byId.values()]) item.open = true;
  const shown = visible(tree, null);
  const rows = new Set(shown.filter((item) => item.kind === "span").map((item) => item.id));
  if (rows.size !== turn.spans.length) wrong.push(`${turn.run_id}: ${rows.size} rows for ${turn.spans.length} spans`);
  for (const span of turn.spans) {
    const parts = ownParts(tree.byId.get(span.span_id));
    const inWindow = (ns) => Math.min(Math.max(ns, 0), turn.wall_ns ?? Infinity);
    let own = 0;
    for (let at = 0; at < parts.length; at += 2) own += inWindow(parts[at + 1]) - inWindow(parts[at]);
    spans += 1;
    if (turn.wall_ns !== null && own !== span.exclusive_ns) wrong.push(`${span.span_id}: ${own} is not ${span.exclusive_ns}`);
  }
}
console.log(JSON.stringify({ spans, wrong }));
