#pragma once
// What the terminal forms of plots share.

#include <string>
#include <string_view>
#include <vector>

#include "report/plot.h"

namespace llmprof::report {

TextCanvas sane(const TextCanvas& wanted);  // width 40…100, height 4…60

std::string text_head(std::string_view title, std::string_view note, const TextCanvas& canvas);

struct LegendEntry {
  std::string key;  // a mark or a filling, coloured as the entry's number
  std::string name;
};
std::string text_legend(const std::vector<LegendEntry>& entries, const TextCanvas& canvas);

// Lines cut to the canvas' width; without Unicode every other character becomes '?'.
std::string fitted(std::string_view text, const TextCanvas& canvas);

}  // namespace llmprof::report
