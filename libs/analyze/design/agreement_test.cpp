// `report` of a run and `model` of the same model must name the same floor, bound and share of it, also where a model
// multiplies in several types.

#include <gtest/gtest.h>

#include "analyze/design/design.h"
#include "analyze/design/testing/small_model.h"
#include "analyze/summary.h"
#include "base/file.h"
#include "trace/test_run.h"

namespace llmprof::analyze::design {
namespace {

// The layers' matrices in float8, attention and logits in bfloat16.
constexpr std::string_view kFloat8Model = R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 128, "vocab_size": 256,
    "max_position_embeddings": 4096, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
    "quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic"}})";
constexpr std::int64_t kStepNs = 50'000, kBatch = 64, kContext = 10;

// A bandwidth of 1 TB/s: products are the limit.
std::vector<hw::Peak> peaks() {
  return {{"flops", "bfloat16", 1e12, "FLOP/s", "measured", "by hand"},
          {"flops", "float8", 2e12, "FLOP/s", "measured", "by hand"},
          {"bandwidth", "read", 1e12, "B/s", "measured", "by hand"}};
}

// One decode step of the batch.
Summary summary_of_run(const trace::TestFolder& folder) {
  trace::RunWriter writer = must(trace::RunWriter::create(folder / "x.llmprof"));
  const auto name = [&](std::string_view text) { return writer.strings().intern(text); };
  writer.add(trace::ProcessRow{.id = 1, .pid = 100, .end_ns = 2 * kStepNs, .injected = true});
  writer.add(trace::ThreadRow{.id = 1, .process_id = 1, .tid = 100});
  writer.add(trace::DeviceRow{.id = 1, .kind = name("gpu"), .name = name("Toy"), .units = 2, .cache_bytes = 1});
  for (const hw::Peak& peak : peaks()) {
    writer.add(trace::PeakRow{.device_id = 1,
                              .quantity = name(peak.quantity),
                              .type = name(peak.type),
                              .value = peak.value,
                              .unit = name(peak.unit),
                              .source = name(peak.source),
                              .method = name(peak.method)});
  }
  writer.add(trace::RangeRow{.id = 1,
                             .begin_ns = 1000,
                             .end_ns = 1000 + kStepNs,
                             .name = name("decode"),
                             .kind = name("push_pop"),
                             .process_id = 1,
                             .thread_id = 1,
                             .domain = name("llmprof"),
                             .category = name("step"),
                             .payload = kBatch | std::int64_t{1} << 16 | kContext << 40,
                             .source = name("nvtx")});
  writer.add(trace::KernelRow{.id = 1,
                              .begin_ns = 1000,
                              .end_ns = 1000 + kStepNs,
                              .name = name("all of it"),
                              .device_id = 1,
                              .thread_id = 1,
                              .launch_begin_ns = 1000,
                              .launch_end_ns = 1000});
  EXPECT_TRUE(writer.finish({}));
  EXPECT_TRUE(base::write_file(folder / "config.json", kFloat8Model));
  trace::Run run = must(trace::Run::open(folder / "x.llmprof"));
  return must(summarise(run, {.model = folder / "config.json"}));
}

TEST(Agreement, ReportAndModelOfAFloat8Model) {
  const trace::TestFolder folder;
  const Summary summary = summary_of_run(folder);
  ASSERT_EQ(summary.stages.size(), 1u);
  const Efficiency& run = summary.stages[0].efficiency;

  const Subject subject{.config = must(model::parse_config(kFloat8Model, "float8"))};
  const Roof roof{.device = "Toy", .on_chip_bytes = 1, .peaks = peaks()};
  const Design design = must(make_design(subject, {.batch = kBatch, .prompt = kContext, .context = kContext}, roof));
  const Stage& decode = *design.stage("decode");
  const Reached reached_by =
      must(reached(design, {.tokens_per_s = {}, .ttft_ns = {}, .tpot_ns = static_cast<double>(kStepNs)})).at(0);

  ASSERT_TRUE(run.floor_ns && run.mfu && run.mbu) << run.why;
  EXPECT_DOUBLE_EQ(*run.flops, decode.costs.flops);
  EXPECT_DOUBLE_EQ(*run.bytes, decode.costs.bytes());
  EXPECT_DOUBLE_EQ(*run.floor_ns, *decode.floor.ns);
  EXPECT_EQ(run.bound, decode.floor.bound());
  EXPECT_DOUBLE_EQ(*run.mfu, *reached_by.mfu);
  EXPECT_DOUBLE_EQ(*run.mbu, *reached_by.mbu);
  EXPECT_EQ(*run.above_ridge, *decode.intensity > *decode.ridge);
}

}  // namespace
}  // namespace llmprof::analyze::design
