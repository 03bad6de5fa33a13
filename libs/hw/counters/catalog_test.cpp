#include "hw/counters/catalog.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace llmprof::hw::counters {
namespace {

using Names = std::vector<std::string>;

bool has(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

ChipMetrics metrics(std::string_view text, std::string_view chip, Method method) {
  const Result<Selection> selection = select(text);
  EXPECT_TRUE(selection) << text;
  return selection ? metrics_of(*selection, chip, method) : ChipMetrics{};
}

std::optional<double> value(const char* counter, const std::map<std::string, double, std::less<>>& metrics) {
  return evaluate(*find_counter(counter), [&](std::string_view name) -> std::optional<double> {
    const auto found = metrics.find(name);
    return found == metrics.end() ? std::nullopt : std::optional(found->second);
  });
}

TEST(CounterCatalog, TheFileIsReadableAndNamesAreUnique) {
  ASSERT_FALSE(catalog().empty());  // empty: the embedded file was refused
  std::set<std::string> names;
  for (const Counter& counter : catalog()) EXPECT_TRUE(names.insert(counter.name).second) << counter.name;
  for (const Set& set : sets()) EXPECT_TRUE(names.insert(set.name).second) << set.name;
  for (const char* set : {"light", "memory", "compute", "stalls", "roofline", "full"})
    EXPECT_NE(find_set(set), nullptr);
}

TEST(CounterCatalog, APercentageSaysOfWhat) {
  for (const Counter& counter : catalog()) {
    EXPECT_EQ(counter.name.ends_with("_pct"), counter.unit == "%") << counter.name;
    EXPECT_EQ(counter.unit == "%", !counter.denominator.empty()) << counter.name;
  }
  EXPECT_FALSE(parse_catalog(R"({"counters": [{"name": "a_pct", "unit": "%", "meaning": "m", "together": "mean",
                                               "formulas": [{"text": "a__b.pct"}]}]})",
                             "test"));
  EXPECT_FALSE(parse_catalog(R"({"sets": [{"name": "s", "counters": ["nothing"]}]})", "test"));
}

TEST(CounterCatalog, NamesThatDifferBetweenChipsAreChosenByChip) {
  EXPECT_EQ(metrics("dram_read_bytes", "GH100", Method::kRange).metrics, Names{"dram__bytes_read.sum"});
  EXPECT_EQ(metrics("dram_read_bytes", "GB202", Method::kRange).metrics, Names{"dram__bytes_op_read.sum"});
  EXPECT_EQ(metrics("dram_read_bytes", "GA10B", Method::kRange).missing, Names{"dram_read_bytes"});
  EXPECT_EQ(metrics("flops_fp8_tensor", "GH100", Method::kRange).metrics, Names{"sm__ops_path_tensor_src_fp8.sum"});
  EXPECT_EQ(metrics("flops_fp8_tensor", "GA100", Method::kRange).missing, Names{"flops_fp8_tensor"});
  EXPECT_EQ(
      metrics("flops_fp16_tensor", "TU102", Method::kKernel).metrics,
      (Names{"sm__ops_path_tensor_src_fp16_dst_fp16.sum", "sm__ops_path_tensor_src_fp16_bf16_tf32_dst_fp32.sum"}));
}

TEST(CounterCatalog, AnUnknownChipHasOnlyWhatWasAskedForByItsOwnName) {
  const ChipMetrics unknown = metrics("dram_read_bytes,some__thing.sum", "GX999", Method::kRange);
  EXPECT_EQ(unknown.metrics, Names{"some__thing.sum"});
  EXPECT_EQ(unknown.missing, Names{"dram_read_bytes"});
}

TEST(CounterCatalog, SetsGiveEachMetricOnce) {
  const ChipMetrics both = metrics("light,memory,dram_read_bytes", "GH100", Method::kRange);
  EXPECT_EQ(std::count(both.metrics.begin(), both.metrics.end(), "dram__bytes_read.sum"), 1);
  EXPECT_TRUE(both.missing.empty());
  EXPECT_TRUE(has(both.metrics, "lts__t_sector_hit_rate.pct"));
}

TEST(CounterCatalog, SamplingKeepsASetsShareAndSaysWhatIsMissing) {
  const ChipMetrics sampled = metrics("roofline", "GH100", Method::kSampled);
  EXPECT_TRUE(has(sampled.metrics, "dram__bytes_read.sum"));
  EXPECT_TRUE(has(sampled.missing, "flops_bf16_tensor"));
  // Volta has no PM sampling.
  EXPECT_TRUE(metrics("light", "GV100", Method::kSampled).metrics.empty());
  // Asked for by name, it is kept, whatever the set says.
  const ChipMetrics named = metrics("light,ipc", "GH100", Method::kSampled);
  EXPECT_TRUE(has(named.metrics, "sm__inst_executed.avg.per_cycle_active"));
  EXPECT_TRUE(has(named.missing, "achieved_occupancy_pct"));
}

TEST(CounterCatalog, LinksAreApartInRangesOnly) {
  const ChipMetrics mixed = metrics("dram_bytes,nvlink_rx_bytes", "GH100", Method::kRange);
  EXPECT_EQ(mixed.missing, Names{"nvlink_rx_bytes"});
  EXPECT_EQ(metrics("gpu_time_ns,nvlink_rx_bytes", "GH100", Method::kRange).metrics,
            (Names{"nvlrx__bytes.sum", "gpu__time_duration.sum"}));
  EXPECT_TRUE(has(metrics("dram_bytes,nvlink_rx_bytes", "GH100", Method::kSampled).metrics, "nvlrx__bytes.sum"));
}

TEST(CounterCatalog, ValuesFollowTheirFormulas) {
  EXPECT_EQ(value("dram_bytes", {{"dram__bytes_read.sum", 30}, {"dram__bytes_write.sum", 12}}), 42);
  EXPECT_EQ(value("dram_bytes", {{"dram__bytes_op_read.sum", 5}, {"dram__bytes_op_write.sum", 2}}), 7);
  EXPECT_EQ(value("dram_bytes", {{"dram__bytes_read.sum", 30}}), std::nullopt);
  // 3 adds, 4 products, 5 multiply-adds: 3 + 4 + 2 * 5 = 17; in packed halves 2 * 17 = 34.
  const std::string op = "smsp__sass_thread_inst_executed_op_";
  EXPECT_EQ(
      value("flops_fp32", {{op + "fadd_pred_on.sum", 3}, {op + "fmul_pred_on.sum", 4}, {op + "ffma_pred_on.sum", 5}}),
      17);
  EXPECT_EQ(
      value("flops_fp16", {{op + "hadd_pred_on.sum", 3}, {op + "hmul_pred_on.sum", 4}, {op + "hfma_pred_on.sum", 5}}),
      34);
  EXPECT_EQ(value("stall_long_scoreboard_pct",
                  {{"smsp__warps_issue_stalled_long_scoreboard.sum", 30}, {"smsp__warps_active.sum", 40}}),
            75);
}

// Seen on an H200: a kernel of 3 us, hits counted over one launch and sectors over another.
TEST(CounterCatalog, AnImpossiblePercentageIsNone) {
  EXPECT_EQ(value("l2_hit_pct", {{"lts__t_sector_hit_rate.pct", 633.65}}), std::nullopt);
  EXPECT_EQ(value("l2_hit_pct", {{"lts__t_sector_hit_rate.pct", -1}}), std::nullopt);
  EXPECT_EQ(value("l2_hit_pct", {{"lts__t_sector_hit_rate.pct", 100.4}}), 100.4);
}

TEST(CounterCatalog, AWordThatIsNothingGetsAHint) {
  const Result<Selection> misspelt = select("light,dram_read_byte");
  ASSERT_FALSE(misspelt);
  EXPECT_NE(misspelt.error().hint.find("did you mean dram_read_bytes?"), std::string::npos) << misspelt.error().hint;
  EXPECT_FALSE(select(""));
  EXPECT_FALSE(select(" , "));
  const Result<Selection> bare = select("dram__bytes_read");
  ASSERT_FALSE(bare);
  EXPECT_NE(bare.error().hint.find("dram__bytes_read.sum"), std::string::npos);
}

TEST(CounterCatalog, ChipsAreFoundByNameAndCapability) {
  ASSERT_NE(find_chip("gh100"), nullptr);
  EXPECT_EQ(find_chip("gh100")->generation, "Hopper");
  EXPECT_EQ(find_chip("h200")->name, "GH100");
  EXPECT_EQ(find_chip("rtx4090")->name, "AD102");
  EXPECT_EQ(find_chip("Z9000"), nullptr);
  EXPECT_EQ(chip_of_capability("9.0")->name, "GH100");
  EXPECT_EQ(chip_of_capability("sm_100")->name, "GB100");
  EXPECT_EQ(chip_of_capability("1.0"), nullptr);
  EXPECT_TRUE(std::find(chips().begin(), chips().end(), "GA100") != chips().end());
}

}  // namespace
}  // namespace llmprof::hw::counters
