// Runs the tests of modules that touch no page: node test.mjs [NAME]. Each is bundled with what it tests.
import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";

const wanted = process.argv[2] ?? "";
const tests = (await readdir("tests")).filter((name) => name.endsWith(".test.ts") && name.includes(wanted));
const folder = await mkdtemp(join(tmpdir(), "page-tests-"));
try {
  await build({
    entryPoints: tests.map((name) => join("tests", name)),
    outdir: folder,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    platform: "node",
    format: "esm",
    target: "es2022",
    sourcemap: "inline",
  });
  const files = tests.map((name) => join(folder, basename(name, ".ts") + ".mjs"));
  const done = spawnSync(process.execPath, ["--enable-source-maps", "--test", "--test-reporter=spec", ...files], { encoding: "utf8" });
  const passed = /tests (\d+)/.exec(done.stdout)?.[1];
  console.log(done.status === 0 ? `${passed} tests of the page's modules pass` : done.stdout + done.stderr);
  process.exitCode = done.status ?? 1;
} finally {
  await rm(folder, { recursive: true });
}
