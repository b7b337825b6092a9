// Builds the page: node build.mjs FOLDER. Names of scripts and styles change with what is in them; nothing else does.
import { build } from "esbuild";
import { copyFile, mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";

const folder = process.argv[2];
if (!folder) throw new Error("expected the folder to build into: node build.mjs FOLDER");
await mkdir(folder, { recursive: true });
for (const name of await readdir(folder)) await rm(join(folder, name));

const made = await build({
  entryPoints: ["src/main.tsx"],
  outdir: folder,
  entryNames: "[name]-[hash]",
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "eof",
  charset: "utf8",
  metafile: true,
});
const outputs = Object.keys(made.metafile.outputs).map((path) => basename(path));
const script = outputs.find((name) => name.endsWith(".js"));
const style = outputs.find((name) => name.endsWith(".css"));
await copyFile("src/icon.svg", join(folder, "icon.svg"));
await writeFile(
  join(folder, "index.html"),
  `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>stepscope</title>
<link rel="icon" href="/assets/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/assets/${style}">
<script type="module" src="/assets/${script}"></script>
</head>
<body><div id="page"></div><noscript>This page needs JavaScript; the same is at /api/v1, and in stepscope report.</noscript></body>
</html>
`,
);
