#include "importers/chrome_json/modules.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

namespace llmprof::importers::chrome_json {

std::uint32_t Modules::module(std::string_view python_function) {
  if (!python_function.starts_with(kFront)) return kNone;
  std::string text(python_function.substr(kFront.size()));
  const auto found = ids_.find(text);
  if (found != ids_.end()) return found->second;
  if (modules_.size() >= kMaxModules) return kNone;
  Module made;
  const std::size_t bar = text.rfind('_');
  const char* const end = text.data() + text.size();
  if (bar == std::string::npos || std::from_chars(text.data() + bar + 1, end, made.instance).ptr != end) {
    made.class_name = text;
  } else {
    made.class_name = text.substr(0, bar);
  }
  std::replace(made.class_name.begin(), made.class_name.end(), '.', '_');  // a dot divides paths
  const auto id = static_cast<std::uint32_t>(modules_.size());
  modules_.push_back(std::move(made));
  ids_.emplace(std::move(text), id);
  return id;
}

void Modules::called_in(std::uint32_t module, std::uint32_t outer) {
  Module& inner = modules_[module];
  if (std::exchange(inner.placed, true) || outer == module) return;
  inner.parent = outer;
  if (outer != kNone) modules_[outer].has_children = true;
}

// Numbers siblings of one class by the order of their first calls, which is that of their instance numbers.
void Modules::find_repeated() {
  std::map<std::pair<std::uint32_t, std::string_view>, std::vector<std::uint32_t>> siblings;
  for (std::uint32_t i = 0; i < modules_.size(); ++i)
    siblings[{modules_[i].parent, modules_[i].class_name}].push_back(i);
  for (auto& [where, same] : siblings) {
    std::sort(same.begin(), same.end(),
              [&](std::uint32_t a, std::uint32_t b) { return modules_[a].instance < modules_[b].instance; });
    const bool blocks =
        same.size() > 1 && std::any_of(same.begin(), same.end(), [&](auto i) { return modules_[i].has_children; });
    for (std::size_t place = 0; place < same.size(); ++place) {
      Module& module = modules_[same[place]];
      module.repeats = blocks;
      module.name = module.class_name;
      if (same.size() > 1) module.name += (blocks ? "." : "_") + std::to_string(place);
    }
    if (blocks && where.first != kNone) modules_[where.first].holds_blocks = true;
  }
}

void Modules::name_all() {
  find_repeated();
  // From the outside: the outermost is the model if it has parts, and so is what holds the blocks directly in it.
  // Parents may stand behind their parts, so it goes on while something changes; models are few levels deep.
  for (int level = 0; level < 8; ++level) {
    bool changed = false;
    for (Module& module : modules_) {
      if (module.is_model || module.repeats || !module.has_children) continue;
      const bool outermost = module.parent == kNone;
      if (!outermost && !(module.holds_blocks && modules_[module.parent].is_model)) continue;
      module.is_model = changed = true;
      module.name.clear();
    }
    if (!changed) break;
  }
}

}  // namespace llmprof::importers::chrome_json
