#pragma once
// What a mistyped name was probably meant to be. One rule for verbs, options, stages, measures, formats, operators,
// models and devices, so that all of them suggest alike.

#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace llmprof::base {

// Lower-case letters and digits only: "H100 PCIe" and "h100-pcie" have the same key. Decimal points stay ("llama3.2"):
// without them "3.2" and "32" would be the same.
std::string name_key(std::string_view name);

// The known names that a typed one may stand for, best first, at most `most`: those that begin with it, then those that
// contain it, then those within an edit per three letters. Case and punctuation do not count.
std::vector<std::string> near_names(std::string_view typed, const std::vector<std::string_view>& known,
                                    std::size_t most = 3);

// "did you mean report? ", "did you mean h100-sxm, h100-pcie or h100-nvl? "; "" where nothing is near.
std::string did_you_mean(const std::vector<std::string>& names);

// Any range of texts.
template <class Names>
std::string did_you_mean(std::string_view typed, const Names& known, std::size_t most = 1) {
  return did_you_mean(near_names(typed, std::vector<std::string_view>(std::begin(known), std::end(known)), most));
}

// "a, b or c".
std::string one_of(const std::vector<std::string>& names);

}  // namespace llmprof::base
