// What is counted, as it is checked, told and planned; and kernels by the names that people read.
#include "record/watch/counter_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "base/json.h"
#include "base/kernel_name.h"
#include "hw/counters/catalog.h"

namespace llmprof::record {
namespace {

using testing::AnyOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

CounterOptions light() {
  CounterOptions options;
  options.set = "light";
  options.ranges = {"prefill", "decode_step_*"};
  return options;
}

TEST(CounterPlan, HasTheMetricsOfEveryChip) {
  const auto text = plan_text(light());
  ASSERT_TRUE(text);
  const std::vector<std::string> lines = lines_of(*text);
  ASSERT_GE(lines.size(), 7u);
  EXPECT_THAT(std::vector<std::string>(lines.begin(), lines.begin() + 7),
              ElementsAre("llmprof counters 1", "method range", "budget_ppm 15000", "stalls off", "replay 0",
                          "range prefill", "range decode_step_*"));
  EXPECT_THAT(lines, Contains("metric GH100 dram__bytes_read.sum"));
  for (const std::string_view chip : hw::counters::chips()) {
    EXPECT_THAT(*text, HasSubstr("metric " + std::string(chip) + " gpu__time_duration.sum")) << chip;
  }
  EXPECT_LT(text->size(), 1u << 20);  // what a collector reads
}

TEST(CounterPlan, OfKernelsAndStalls) {
  CounterOptions options;
  options.set = "dram__bytes_read.sum";
  options.kernels = {{"*gemm*", {"*gemm*"}}, {"foo", {"foo", "_Z3foo*", "_ZL3foo*"}}};
  options.replay = true;
  options.budget = 0;
  EXPECT_TRUE(needs_plan(options));
  EXPECT_THAT(*plan_text(options), testing::StartsWith("llmprof counters 1\nmethod kernel\nbudget_ppm 0\nstalls off\n"
                                                       "replay 1\nnamed *gemm*\nkernel *gemm*\nnamed foo\nkernel foo\n"
                                                       "kernel _Z3foo*\nkernel _ZL3foo*\nmetric "));
  CounterOptions stalls;
  stalls.stalls = StallMode::kOnly;
  EXPECT_TRUE(needs_plan(stalls));
  EXPECT_EQ(*plan_text(stalls), "llmprof counters 1\nmethod none\nbudget_ppm 15000\nstalls only\nreplay 0\n");
}

TEST(CounterPlan, SamplesNeedNone) {
  CounterOptions options = light();
  options.method = CounterMethod::kSampled;
  EXPECT_FALSE(needs_plan(options));
  EXPECT_FALSE(needs_plan({}));
}

TEST(CounterOptions, AreTold) {
  CounterOptions options = light();
  EXPECT_EQ(describe(options),
            "set light, range method: one window per step or stage, at most 1.5 % of the program's time");
  options.own_ranges = true;
  options.budget = 0;
  EXPECT_EQ(describe(options),
            "set light, range method: one window per range prefill, decode_step_*, without a limit on its time");
  options.method = CounterMethod::kSampled;
  EXPECT_EQ(describe(options), "set light, sampled method: every 1.00 ms from outside the program");
  options = light();
  for (const char* name : {"a", "b", "c", "d", "e"}) options.kernels.push_back({name, {name}});
  options.replay = true;
  EXPECT_EQ(describe(options),
            "set light, kernel method: launches of a, b, c and 2 more, executed again for every pass, at most 1.5 % of "
            "the program's time");
  EXPECT_EQ(describe(CounterOptions{}), "");
}

TEST(CounterOptions, AreWrittenIntoTheRun) {
  CounterOptions options = light();
  options.method = CounterMethod::kSampled;
  options.period = std::chrono::microseconds(250);
  const auto sampled = asked(options);
  ASSERT_TRUE(sampled);
  EXPECT_EQ(sampled->set, "light");
  EXPECT_EQ(sampled->method, "sampled");
  EXPECT_EQ(sampled->period_ns, 250'000);
  EXPECT_FALSE(sampled->budget);
  EXPECT_EQ(asked(light())->budget, 0.015);
  EXPECT_FALSE(asked({}));
  const auto again = trace::counters_from_json(trace::counters_to_json(sampled));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->method, "sampled");
  EXPECT_EQ(again->period_ns, 250'000);
  EXPECT_FALSE(trace::counters_from_json(trace::counters_to_json({})));
}

// What light holds is read in one pass.
TEST(CounterOptions, WhatNeedsMorePassesMayTakeMoreTime) {
  EXPECT_EQ(default_budget("light"), 0.015);
  EXPECT_EQ(default_budget("dram_read_bytes"), 0.015);
  EXPECT_EQ(default_budget("full"), 0.04);
  EXPECT_EQ(default_budget("light,dram__bytes_read.sum"), 0.04);
}

std::string refusal(const CounterOptions& options) {
  const auto checked = check(options);
  return checked ? "" : checked.error().message + "; " + checked.error().hint;
}

TEST(CounterOptions, ThatContradictAreRefused) {
  EXPECT_EQ(refusal(light()), "");
  CounterOptions options = light();
  options.set = "lihgt";
  EXPECT_THAT(refusal(options), HasSubstr("light"));  // the name that was meant
  options = light();
  options.method = CounterMethod::kKernel;
  EXPECT_THAT(refusal(options), HasSubstr("which?"));
  options.kernels = {{"*", {"*"}}};
  EXPECT_EQ(refusal(options), "");
  options.method = CounterMethod::kRange;
  EXPECT_THAT(refusal(options), HasSubstr("kernels are named"));
  options = light();
  options.replay = true;
  EXPECT_THAT(refusal(options), HasSubstr("--replay"));
  options = light();
  options.stalls = StallMode::kWith;
  EXPECT_THAT(refusal(options), HasSubstr("record twice"));
  options = light();
  options.method = CounterMethod::kSampled;
  options.period = std::chrono::microseconds(99);
  EXPECT_THAT(refusal(options), HasSubstr("100us"));
  options.period = std::chrono::microseconds(100);
  EXPECT_EQ(refusal(options), "");
  options.own_ranges = true;
  EXPECT_THAT(refusal(options), HasSubstr("ranges are named"));
}

// As libs/collect/cuda/counters/hooks.cpp matches.
bool matches(const char* pattern, const char* text) {
  if (*pattern == '\0') return *text == '\0';
  if (*pattern == '*') return matches(pattern + 1, text) || (*text != '\0' && matches(pattern, text + 1));
  return *text != '\0' && (*pattern == '?' || *pattern == *text) && matches(pattern + 1, text + 1);
}
bool any_matches(std::string_view name, const char* mangled, bool wildcards = false) {
  for (const std::string& pattern : mangled_patterns(name, wildcards)) {
    if (matches(pattern.c_str(), mangled)) return true;
  }
  return false;
}

// Names of kernels as libraries have them: each is found by the name that the table kernel gives it.
constexpr const char* kMangled[] = {
    "triton_poi_fused_add_0",
    "_Z3fooPf",
    "_ZL3fooPf",
    "_Z4gemmILi4EEvPf",
    "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_",
    "_ZN2at6native54_GLOBAL__N__d8ceb000_21_DistributionNormal_cu_0c5b6e8543distribution_elementwise_grid_stride_"
    "kernelIfLi4EEEvf",
    "_ZN7cutlass7Kernel2I66cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x64_64x4_tn_align8EEvNT_6ParamsE",
    "_ZN12_GLOBAL__N_16kernelISt4pairIiNS_3BoxEEEEvT_",
    "_ZN2ns1AIiE4workINS_1BEEEvv",
    "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NTN",
    "_ZN5flash16flash_fwd_kernelI23Flash_fwd_kernel_traitsILi128ELi128ELi64ELi4ELb0ELb0EN7cutlass10bfloat16_tE19Flash_"
    "kernel_traitsILi128ELi128ELi64ELi4ES3_EELb0ELb1ELb0ELb0ELb1ELb1ELb0EEEv16Flash_fwd_params",
};

TEST(MangledPatterns, FindTheKernelsOfAName) {
  for (const char* mangled : kMangled) {
    const std::string name = base::kernel_name(mangled);
    EXPECT_TRUE(any_matches(name, mangled))
        << name << " is not " << mangled << ": " << testing::PrintToString(mangled_patterns(name, false));
    EXPECT_TRUE(any_matches("*", mangled, true));
  }
  // And few others.
  int pairs = 0;
  for (const char* mangled : kMangled) {
    for (const char* other : kMangled) pairs += any_matches(base::kernel_name(mangled), other) ? 1 : 0;
  }
  EXPECT_EQ(pairs, static_cast<int>(std::size(kMangled)) + 2);  // the two foo are the same name
}

TEST(MangledPatterns, OfPatterns) {
  EXPECT_TRUE(any_matches("*flash_fwd*", kMangled[10], true));
  EXPECT_TRUE(any_matches("flash::*", kMangled[10], true));
  EXPECT_TRUE(any_matches("nvjet*", kMangled[9], true));
  EXPECT_TRUE(any_matches("vectorized*kernel", kMangled[4], true));
  EXPECT_FALSE(any_matches("vectorized*kernel", kMangled[10], true));
  EXPECT_THAT(mangled_patterns("gemm<4, Tile*>", false), ElementsAre("_Z4gemmI*4Tile*", "_ZL4gemmI*4Tile*"));
  EXPECT_THAT(mangled_patterns("_Z3fooPf", true), ElementsAre("_Z3fooPf"));
  EXPECT_THAT(mangled_patterns("*nvjet*", true), ElementsAre("*nvjet*"));
}

TEST(MangledPatterns, NamesAreSplitOutsideOfBrackets) {
  EXPECT_THAT(split_names("a<1, b>, c ,,d(e, f)"), ElementsAre("a<1, b>", "c", "d(e, f)"));
  EXPECT_THAT(split_names(""), ElementsAre());
}

}  // namespace
}  // namespace llmprof::record
