#include "importers/chrome_json/named_ranges.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "base/nesting.h"

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

namespace {

// Thread by thread, the outer before the inner.
bool earlier(const Range& a, const Range& b) {
  if (a.thread.id != b.thread.id) return a.thread.id < b.thread.id;
  if (a.begin_ns != b.begin_ns) return a.begin_ns < b.begin_ns;
  return a.end_ns > b.end_ns;
}

}  // namespace

void Ranges::add(const Range& range) {
  if (held_.size() >= kMaxHeld) {
    sink_.lose(trace::Loss::kInputLimit, 1, "ranges: nesting is known among half a million at a time");
    nest();
  }
  held_.push_back(range);
}

void Ranges::add_module(const Range& range, std::string_view python_function) {
  Range made = range;
  made.module = modules_.module(python_function);
  if (made.module == Modules::kNone) return sink_.lose(trace::Loss::kInputLimit, 1, "modules beyond the first 200000");
  add(made);
}

void Ranges::open(OpenRanges& all, std::int64_t key, const Range& range) {
  if (opened_ >= kMaxOpen) return sink_.lose(trace::Loss::kInputLimit, 1, "ranges that were open at once");
  all[key].push_back(range);
  ++opened_;
}

void Ranges::close(OpenRanges& all, std::int64_t key, std::int64_t at_ns) {
  const auto found = all.find(key);
  if (found == all.end()) return sink_.lose(trace::Loss::kUnbalancedPop, 1);
  Range range = found->second.back();
  found->second.pop_back();
  if (found->second.empty()) all.erase(found);
  --opened_;
  if (at_ns < range.begin_ns) return sink_.lose(trace::Loss::kBadTime, 1, "ranges that end before they begin");
  range.end_ns = at_ns;
  add(range);
}

void Ranges::emit(const std::vector<Range>& ranges, const std::vector<std::int32_t>& parents) {
  std::vector<trace::Id> ids(ranges.size());
  std::vector<std::int32_t> depths(ranges.size());
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const Range& range = ranges[i];
    trace::RangeRow row;
    row.id = ids[i] = sink_.new_id();
    row.begin_ns = range.begin_ns;
    row.end_ns = range.end_ns;
    row.name = range.name;
    row.category = range.category;
    row.kind = names_(range.kind == RangeKind::kMark       ? "mark"
                      : range.kind == RangeKind::kStartEnd ? "start_end"
                                                           : "push_pop");
    row.process_id = range.thread.process_id;
    row.thread_id = range.thread.id;
    if (parents[i] >= 0) {
      const auto parent = static_cast<std::size_t>(parents[i]);
      row.parent_id = ids[parent];
      depths[i] = depths[parent] + 1;
    }
    row.depth = depths[i];
    row.closed = range.closed;
    row.source = names_(range.on_gpu ? "kineto_gpu" : "kineto");
    if (range.module != Modules::kNone) {
      const std::string& name = modules_.name(range.module);
      row.name = names_(name.empty() ? modules_.class_name(range.module) : name);
      row.domain = name.empty() ? trace::Name{} : names_("llmprof");
      row.category = names_("module");
    }
    sink_.add(row);
  }
}

void Ranges::nest() {
  std::stable_sort(held_.begin(), held_.end(), earlier);
  std::vector<std::int32_t> parents(held_.size(), -1);
  base::Nesting<std::int32_t> nesting;
  for (std::size_t i = 0; i < held_.size(); ++i) {
    const Range& range = held_[i];
    if (i > 0 && held_[i - 1].thread.id != range.thread.id) nesting.clear();
    const auto* around = nesting.at(range.begin_ns);
    if (range.kind != RangeKind::kStartEnd && around != nullptr) parents[i] = around->item;
    if (range.module != Modules::kNone) {
      std::uint32_t outer = Modules::kNone;
      for (std::int32_t at = parents[i]; at >= 0 && outer == Modules::kNone;
           at = parents[static_cast<std::size_t>(at)]) {
        outer = held_[static_cast<std::size_t>(at)].module;
      }
      modules_.called_in(range.module, outer);
    }
    if (range.kind == RangeKind::kPushPop && nesting.depth() < kMaxDepth)
      nesting.open(range.end_ns, static_cast<std::int32_t>(i));
  }
  modules_.name_all();
  emit(held_, parents);
  held_.clear();
}

// Whatever is still open ends with the file.
void Ranges::finish(std::int64_t last_ns) {
  for (OpenRanges* all : {&open_, &open_async_}) {
    for (auto& [key, open] : *all) {
      for (Range& range : open) {
        range.end_ns = std::max(range.begin_ns, last_ns);
        range.closed = false;
        sink_.lose(trace::Loss::kOpenRange, 1);
        add(range);
      }
    }
    all->clear();
  }
  nest();
}

}  // namespace llmprof::importers::chrome_json
