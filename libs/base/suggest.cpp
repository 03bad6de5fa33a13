#include "base/suggest.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/strings.h"

namespace llmprof::base {
namespace {

constexpr std::size_t kLongestName = 128;  // longer ones are nobody's typo; bounds the work of comparing

std::size_t allowed_edits(std::size_t letters) {
  return letters < 3 ? 0 : letters < 5 ? 1 : std::max<std::size_t>(2, letters / 3);
}

// Letters in the wrong order are one slip of the fingers, though more than one edit.
std::size_t slips(const std::string& typed, const std::string& known) {
  const std::size_t apart = edits(typed, known);
  const bool swapped = apart == 2 && typed.size() == known.size() && std::ranges::is_permutation(typed, known);
  return swapped ? 1 : apart;
}

}  // namespace

std::string name_key(std::string_view name) {
  std::string key;
  for (std::size_t i = 0; i < std::min(name.size(), kLongestName); ++i) {
    const auto c = static_cast<unsigned char>(name[i]);
    const bool point = c == '.' && i > 0 && i + 1 < name.size() && is_digit(name[i - 1]) && is_digit(name[i + 1]);
    if (std::isalnum(c) != 0 || point) key += static_cast<char>(std::tolower(c));
  }
  return key;
}

std::vector<std::string> near_names(std::string_view typed, const std::vector<std::string_view>& known,
                                    std::size_t most) {
  const std::string wanted = name_key(typed);
  if (wanted.empty() || typed.size() > kLongestName) return {};
  struct Near {
    std::size_t rank;  // 0 begins with it, 1 contains it, 2 + edits
    std::string_view name;
  };
  std::vector<Near> near;
  for (const std::string_view name : known) {
    const std::string key = name_key(name);
    const std::size_t apart = slips(wanted, key);
    if (key.starts_with(wanted)) {
      near.push_back({0, name});
    } else if (wanted.size() > 2 && contains(key, wanted)) {
      near.push_back({1, name});
    } else if (apart <= allowed_edits(wanted.size())) {
      near.push_back({2 + apart, name});
    }
  }
  std::ranges::stable_sort(near, {}, &Near::rank);
  std::vector<std::string> names;
  for (const Near& each : near) {
    // Spellings that are further away than the best say nothing more.
    if (names.size() == most || (each.rank > 1 && each.rank > near.front().rank + 1)) break;
    names.emplace_back(each.name);
  }
  return names;
}

std::string one_of(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + names[i];
  }
  return text;
}

std::string did_you_mean(const std::vector<std::string>& names) {
  return names.empty() ? "" : "did you mean " + one_of(names) + "? ";
}

}  // namespace llmprof::base
