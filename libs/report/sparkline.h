#pragma once
// Values over time in one line of text.

#include <cstdint>
#include <string>
#include <vector>

namespace llmprof::report {

// A row of bars between the smallest and the largest value, at most `width` of them: with more values each bar is the
// largest of several neighbours, so that no peak is lost. Without `unicode` bars are ASCII characters of growing
// weight.
std::string sparkline(const std::vector<std::int64_t>& values, std::size_t width, bool unicode = true);

// The same between two given ends; values beyond them are drawn as these.
struct SparkRange {
  std::int64_t low = 0, high = 0;
};
std::string sparkline(const std::vector<std::int64_t>& values, std::size_t width, bool unicode, SparkRange range);

}  // namespace llmprof::report
