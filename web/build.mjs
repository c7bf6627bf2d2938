// Builds src/turntrace/report/page/page.html: script and style inlined, each named by its hash in the policy.
// The hash of the sources stands in the page too, so that a test without npm can say whether it is current.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const target = process.argv[2] ?? join(here, "../src/turntrace/report/page/page.html");

/** The files the page is made of, by their path from here. */
function sources() {
  const below = readdirSync(join(here, "src"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(here, join(entry.parentPath, entry.name)).replaceAll("\\", "/"));
  return ["build.mjs", "package-lock.json", "package.json", "tsconfig.json", ...below].sort();
}

function hashOfSources() {
  const hash = createHash("sha256");
  for (const path of sources()) {
    const bytes = readFileSync(join(here, path));
    hash.update(`${path}\0${bytes.length}\0`).update(bytes);
  }
  return hash.digest("hex");
}

/** The licences of what is inlined, which ask to stand in every copy. */
function licences(inputs) {
  const names = new Set();
  for (const input of Object.keys(inputs)) {
    const found = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input);
    if (found) names.add(found[1]);
  }
  return [...names].sort().map((name) => {
    const folder = join(here, "node_modules", name);
    const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
    if (!file) throw new Error(`${name} has no licence file`);
    return `${name} ${version}\n\n${readFileSync(join(folder, file), "utf8").trim()}`;
  });
}

const policyHash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

const options = { bundle: true, minify: true, write: false, legalComments: "none", charset: "ascii" };
const script = await build({
  ...options,
  entryPoints: [join(here, "src/main.ts")],
  absWorkingDir: here,
  format: "iife",
  target: "es2022",
  metafile: true,
});
const style = await build({ ...options, entryPoints: [join(here, "src/page.css")], absWorkingDir: here });
const js = script.outputFiles[0].text.trim();
const css = style.outputFiles[0].text.trim();
if (js.includes("</script") || css.includes("</style") || js.includes("<!--"))
  throw new Error("would end its element");

const policy = [
  "default-src 'none'",
  `script-src ${policyHash(js)}`,
  `style-src ${policyHash(css)}`,
  "img-src data:",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

const values = {
  policy,
  sources: hashOfSources(),
  licences: licences(script.metafile.inputs).join("\n\n").replaceAll("--", "- -"),
  style: css,
  script: js,
};
let page = readFileSync(join(here, "src/page.html"), "utf8");
for (const [name, value] of Object.entries(values)) {
  const mark = `<!--build:${name}-->`;
  if (page.split(mark).length !== 2) throw new Error(`${mark} stands in page.html not once`);
  page = page.replace(mark, () => value);
}
writeFileSync(target, page);
console.log(
  `${relative(process.cwd(), target)}: ${page.length} bytes, script ${js.length}, style ${css.length}`,
);
