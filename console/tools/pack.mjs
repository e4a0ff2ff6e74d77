// Writes what `vite build` made into crates/console: every file compressed, and the table of them.
// `node tools/pack.mjs --check` writes nothing and fails when the committed files are not what was built.
// Contents are compared uncompressed: releases of zlib differ in the bytes they write.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync, gzipSync } from "node:zlib";

const root = fileURLToPath(new URL("..", import.meta.url));
const dist = join(root, "dist");
const crate = join(root, "../crates/console");
const bundle = join(crate, "bundle");
const MAX_BYTES = 250 * 1024;
const TYPES = { html: "text/html; charset=utf-8", js: "text/javascript; charset=utf-8", css: "text/css; charset=utf-8" };

const files = readdirSync(dist, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath, entry.name).slice(dist.length + 1))
  .sort();
const entries = files.map((name) => {
  const type = TYPES[name.split(".").pop()];
  if (type === undefined) throw new Error(`no content type is known for ${name}`);
  const isPage = name === "index.html";
  return { name, type, path: isPage ? "/" : `/${name}`, packed: `${name.split("/").pop()}.gz`, isImmutable: !isPage };
});

function table() {
  const rows = entries.map(
    (entry) => `    ConsoleFile {
        path: "${entry.path}",
        content_type: "${entry.type}",
        gzip: include_bytes!("../bundle/${entry.packed}"),
        is_immutable: ${entry.isImmutable},
    },
`,
  );
  return `//! Written by \`npm run pack\` in \`console/\`. Do not edit.

use crate::ConsoleFile;

pub(crate) const FILES: &[ConsoleFile] = &[
${rows.join("")}];
`;
}

if (process.argv.includes("--check")) {
  const problems = [];
  if (readFileSync(join(crate, "src/files.rs"), "utf8") !== table()) problems.push("crates/console/src/files.rs");
  for (const entry of entries) {
    const path = join(bundle, entry.packed);
    const same = existsSync(path) && gunzipSync(readFileSync(path)).equals(readFileSync(join(dist, entry.name)));
    if (!same) problems.push(`crates/console/bundle/${entry.packed}`);
  }
  const known = new Set(entries.map((entry) => entry.packed));
  for (const name of readdirSync(bundle)) if (!known.has(name)) problems.push(`crates/console/bundle/${name}`);
  if (problems.length > 0) {
    console.error(`not what console/ builds: ${problems.join(", ")}; run \`npm run pack\` in console/ and commit it`);
    process.exit(1);
  }
} else {
  rmSync(bundle, { recursive: true, force: true });
  mkdirSync(bundle, { recursive: true });
  for (const entry of entries) {
    writeFileSync(join(bundle, entry.packed), gzipSync(readFileSync(join(dist, entry.name)), { level: 9 }));
  }
  writeFileSync(join(crate, "src/files.rs"), table());
}
const bytes = readdirSync(bundle).reduce((sum, name) => sum + readFileSync(join(bundle, name)).length, 0);
if (bytes > MAX_BYTES) {
  console.error(`the console has ${bytes} bytes compressed, more than ${MAX_BYTES}`);
  process.exit(1);
}
console.log(`console: ${entries.length} files, ${bytes} bytes compressed`);
