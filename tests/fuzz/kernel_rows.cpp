// Kernel times that bench --for RUN kept, perhaps from a stranger. What is read is written and read again alike, and
// predictions from it are finite.

#include <cmath>

#include "fuzz.h"
#include "predict/implementation/program.h"

namespace llmprof::fuzz {
namespace {

predict::Implementation program() {
  predict::StageSteps stage{.stage = "decode", .batch = 8, .rows = 8, .contexts = 4096, .graph = true, .launches = 1};
  for (const char* name : {"k", "void add(float*)", "flash"}) {
    predict::StepKernel kernel;
    kernel.name = name, kernel.blocks = 8, kernel.attention = name[0] == 'f';
    stage.kernels.push_back(kernel);
  }
  stage.kernels.front().product = predict::WeightProduct{8, 2048, 1024, "bfloat16"};
  predict::Implementation out;
  out.stages.push_back(std::move(stage));
  return out;
}

void run(std::string_view input) {
  auto rows = predict::parse_probed(input, "input");
  if (!rows) return;
  const std::string written = predict::to_lines(*rows);
  const auto again = predict::parse_probed(written, "written");
  require(again && predict::to_lines(*again) == written);
  const auto cost = predict::ProgramCost::make(program(), std::move(*rows));
  if (!cost) return;
  for (const std::int64_t batch : {1, 8, 500}) {
    const double ns = cost->step(cost->implementation().stages[0], {batch, batch, batch * 700}).total_ns();
    require(ns >= 0 && !std::isnan(ns));
  }
}

std::vector<std::string> seeds() {
  return {R"ROWS({"row": "about", "framework": "pytorch"}
{"row": "kernel", "kernel": "k", "op": "o", "scale": "rows", "stage": "decode", "graph": true, "tokens": 8, "blocks": 4, "ns": 1500}
{"row": "product", "m": 8, "n": 2048, "k": 1024, "dtype": "bfloat16", "stage": "decode", "graph": true, "kernels": ["g"], "ns": 5000}
{"row": "attention", "stage": "decode", "asked": "flash", "heads": 8, "kv_heads": 2, "head_dim": 64, "batch": 1, "q": 1, "kv": 128, "ns": 9000}
{"row": "gap", "graph_ns": 350, "queued_ns": 1100})ROWS"};
}

std::vector<std::string> dictionary() {
  return {"\"row\": \"kernel\"",    "\"tokens\": ", "\"blocks\": ", "\"scale\": \"context\"",
          "\"stage\": \"prefill\"", "1e308",        "-1",           "null"};
}

}  // namespace

const Target kTarget{run, seeds, dictionary};

}  // namespace llmprof::fuzz
