// The catalogue against CUPTI's host library, for every chip that both know. Needs no GPU; skipped where there is no
// CUPTI. LLMPROF_UPDATE_PASSES=libs/hw/counters/passes.json writes the table of passes anew.

#include "hw/counters/host_library.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>

#include "hw/counters/passes.h"

// Sanitizers end a program in which CUPTI loads its second library (RTLD_DEEPBIND).
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LLMPROF_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define LLMPROF_SANITIZED 1
#endif
#endif

namespace llmprof::hw::counters {
namespace {

#ifdef LLMPROF_SANITIZED
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

class WithHostLibrary : public testing::Test {
 protected:
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "CUPTI cannot be loaded under a sanitizer";
    Result<std::unique_ptr<HostLibrary>> opened = HostLibrary::open();
    if (!opened) GTEST_SKIP() << "names and passes of counters are not verified: " << opened.error().message;
    library_ = std::move(*opened);
  }

  // Chips of the catalogue that the library knows.
  std::vector<std::string> chips_of_both() const {
    std::vector<std::string> both;
    const std::vector<std::string> known = library_->chips();
    for (const std::string_view chip : chips()) {
      if (std::find(known.begin(), known.end(), chip) != known.end()) both.emplace_back(chip);
    }
    return both;
  }

  Result<int> passes(std::string_view text, const std::string& chip, Method method) const {
    LLMPROF_LET(const Selection selection, select(text));
    return library_->passes(chip, method, metrics_of(selection, chip, method).metrics);
  }

  std::unique_ptr<HostLibrary> library_;
};

using CounterNames = WithHostLibrary;
using CounterPasses = WithHostLibrary;
using CounterHostLibrary = WithHostLibrary;

TEST_F(CounterNames, EveryMetricOfEveryFormulaExistsOnItsChip) {
  const std::vector<std::string> both = chips_of_both();
  EXPECT_GE(both.size(), 25U);
  for (const std::string& chip : library_->chips()) {  // a newer CUPTI's; GV11B has no metrics there
    if (find_chip(chip) == nullptr) std::cout << "[ note     ] " << chip << " is not in the catalogue\n";
  }
  for (const std::string& chip : both) {
    for (const Method method : {Method::kRange, Method::kSampled}) {
      for (const Counter& counter : catalog()) {
        const Formula* formula = formula_of(counter, chip, method);
        if (formula == nullptr) continue;
        const Result<int> count = library_->passes(chip, method, formula->metrics);
        EXPECT_TRUE(count) << counter.name << ": " << (count ? "" : count.error().message);
      }
    }
  }
}

TEST_F(CounterNames, EveryCounterIsOnSomeChipAndEveryChipHasTheLightSet) {
  for (const Counter& counter : catalog()) {
    EXPECT_TRUE(std::any_of(chips().begin(), chips().end(), [&](std::string_view chip) {
      return formula_of(counter, chip, Method::kRange) != nullptr;
    })) << counter.name;
  }
  for (const std::string& chip : chips_of_both()) {
    const Result<int> light = passes("light", chip, Method::kRange);
    ASSERT_TRUE(light) << light.error().message;
    EXPECT_EQ(*light, 1) << chip;
  }
}

// Any sets together, too: so they fit whatever is asked for.
TEST_F(CounterPasses, WhatIsSampledFitsIntoOnePass) {
  std::string all;
  for (const Set& set : sets()) all += (all.empty() ? "" : ",") + set.name;
  for (const std::string& chip : chips_of_both()) {
    if (!find_chip(chip)->sampled) continue;
    const Result<int> together = passes(all, chip, Method::kSampled);
    ASSERT_TRUE(together) << together.error().message;
    EXPECT_EQ(*together, 1) << chip;
    for (const Counter& counter : catalog()) {
      const Result<int> alone = passes(counter.name, chip, Method::kSampled);
      ASSERT_TRUE(alone) << alone.error().message;
      EXPECT_LE(*alone, 1) << chip << " " << counter.name;
    }
  }
}

TEST_F(CounterPasses, AreAsInTheTable) {
  std::string fresh = fmt::format("{{\n  \"cupti\": {}", library_->version());
  std::string differences;
  for (const std::string& chip : chips_of_both()) {
    std::string row;
    const auto hold = [&](const std::string& name, bool listed) {
      const Result<int> count = passes(name, chip, Method::kRange);
      ASSERT_TRUE(count) << count.error().message;
      if (*count > 0 && (listed || *count != 1))
        row += fmt::format("{}\"{}\": {}", row.empty() ? "" : ", ", name, *count);
      if (const int known = passes_of(name, chip, Method::kRange).value_or(0); known != *count) {
        differences += fmt::format("{} {}: {} passes, {} in the table\n", chip, name, *count, known);
      }
    };
    for (const Set& set : sets()) hold(set.name, true);
    for (const Counter& counter : catalog()) hold(counter.name, false);
    fresh += fmt::format(",\n  \"{}\": {{{}}}", chip, row);
  }
  if (const char* path = std::getenv("LLMPROF_UPDATE_PASSES")) {
    std::ofstream(path) << fresh << "\n}\n";
  } else if (library_->version() == static_cast<std::uint32_t>(passes_version())) {
    EXPECT_EQ(differences, "");
  } else if (!differences.empty()) {  // another CUPTI may schedule otherwise: worth a look, not wrong
    std::cout << "[ note     ] CUPTI " << library_->version() << ", the table is of " << passes_version() << ":\n"
              << differences;
  }
}

TEST_F(CounterHostLibrary, RefusesWhatTheChipDoesNotHave) {
  const Result<int> wrong =
      library_->passes("GH100", Method::kRange, {"dram__bytes_read.sum", "dram__bytes_op_read.sum"});
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("dram__bytes_op_read.sum"), std::string::npos) << wrong.error().message;
  EXPECT_FALSE(library_->passes("GH100", Method::kRange, {"dram__bytes_read.nothing"}));
  EXPECT_FALSE(library_->passes("GX999", Method::kRange, {"dram__bytes_read.sum"}));
  // Links go with nothing else in ranges, and with everything when sampled.
  const std::vector<std::string> mixed{"nvlrx__bytes.sum", "dram__bytes_read.sum"};
  const Result<int> together = library_->passes("GH100", Method::kRange, mixed);
  ASSERT_FALSE(together);
  EXPECT_NE(together.error().message.find("together"), std::string::npos) << together.error().message;
  const Result<int> sampled = library_->passes("GH100", Method::kSampled, mixed);
  ASSERT_TRUE(sampled);
  EXPECT_EQ(*sampled, 1);
}

TEST_F(CounterHostLibrary, ListsAndDescribesMetrics) {
  const auto names = library_->metrics("GH100", Method::kRange);
  ASSERT_TRUE(names);
  EXPECT_TRUE(std::binary_search(names->begin(), names->end(), "dram__bytes_read"));
  const auto description = library_->describe("GH100", Method::kRange, "dram__bytes_read");
  ASSERT_TRUE(description) << description.error().message;
  EXPECT_EQ(description->unit, "byte");
  EXPECT_FALSE(description->text.empty());
  EXPECT_FALSE(library_->describe("GH100", Method::kRange, "no__thing"));
}

TEST(CounterPassTable, KnowsPassesWithoutAnyLibrary) {
  EXPECT_EQ(passes_of("light", "GH100", Method::kRange), 1);
  EXPECT_EQ(passes_of("l2_hit_pct", "GH100", Method::kKernel), 2);
  EXPECT_EQ(passes_of("gpu_time_ns", "GH100", Method::kRange), 1);
  EXPECT_EQ(passes_of("roofline", "GH100", Method::kSampled), 1);
  EXPECT_EQ(passes_of("flops_bf16_tensor", "GH100", Method::kSampled), std::nullopt);
  EXPECT_EQ(passes_of("light", "GV100", Method::kSampled), std::nullopt);
  EXPECT_EQ(passes_of("nothing", "GH100", Method::kRange), std::nullopt);
  EXPECT_EQ(passes_of("l2_hit_pct,ipc", "GH100", Method::kRange), std::nullopt);  // the table holds single names
}

}  // namespace
}  // namespace llmprof::hw::counters
