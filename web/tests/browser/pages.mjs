// Pages of real runs, made by the program: the embedded model on the CPU, a recording of an H200, an imported trace, and
// a run in which every name is hostile.
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, rmSync } from "node:fs";
import { join } from "node:path";

export function makePages(build, root, out) {
  const llmprof = (...words) => {
    const done = spawnSync(join(build, "bin/llmprof"), words, { cwd: out, encoding: "utf8" });
    if (done.status !== 0) throw new Error(`llmprof ${words.join(" ")}: status ${done.status}\n${done.stderr}`);
  };
  const page = (name, run) => {
    llmprof("report", run, "--html", `${name}.html`);
    return join(out, `${name}.html`);
  };
  for (const run of ["demo.llmprof", "h200.llmprof", "kineto.llmprof", "serving.llmprof", "hostile.llmprof"]) rmSync(join(out, run), { recursive: true, force: true });
  llmprof("demo", "--device", "cpu", "--preset", "tiny-llama", "-f", "-o", "demo");
  cpSync(join(root, "tests/runs/h200_decode"), join(out, "h200.llmprof"), { recursive: true });
  cpSync(join(root, "tests/runs/serving"), join(out, "serving.llmprof"), { recursive: true });
  llmprof("import", join(root, "tests/imports/kineto_llama_full.json.gz"), "-o", "kineto");
  const common = ["summary", "stages", "timeline", "flame", "environment", "numbers"];
  const pages = [
    { name: "demo", file: page("demo", "demo.llmprof"), filled: [...common, "waterfall", "roofline", "modules", "gemms", "memory"] },
    { name: "h200", file: page("h200", "h200.llmprof"), filled: [...common, "waterfall", "roofline", "gemms", "kernels"] },
    { name: "serving", file: page("serving", "serving.llmprof"), filled: [...common, "requests", "gemms"] },
    { name: "kineto", file: page("kineto", "kineto.llmprof"), filled: [...common, "gemms", "kernels"] },
  ];
  const hostile = join(build, "tests/make_hostile_run");
  if (existsSync(hostile)) {
    execFileSync(hostile, [join(out, "hostile.llmprof")]);
    pages.push({ name: "hostile", file: page("hostile", "hostile.llmprof"), filled: [], hostile: true });
  }
  return pages;
}
