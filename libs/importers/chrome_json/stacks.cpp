#include "importers/chrome_json/stacks.h"

#include <algorithm>

#include "base/numbers.h"

namespace llmprof::importers::chrome_json {
namespace {

struct Place {
  std::string_view file, function;
  std::optional<std::int32_t> line;
};

// "FILE(LINE): FUNCTION"
Place place_in(std::string_view text) {
  const std::size_t colon = text.find("): ");
  const std::size_t open = colon == std::string_view::npos ? colon : text.rfind('(', colon);
  if (open == std::string_view::npos) return {{}, text, {}};
  const auto line = base::parse_number<std::int32_t>(text.substr(open + 1, colon - open - 1));
  if (!line) return {{}, text, {}};
  return {text.substr(0, open), text.substr(colon + 3), line};
}

}  // namespace

std::uint32_t Stacks::frame_of(std::string_view function) {
  const bool built_in = function.starts_with('<');
  const std::size_t address = built_in ? function.rfind(" at 0x") : std::string_view::npos;
  if (address != std::string_view::npos) {  // another object, the same function
    scratch_ = function.substr(0, address);
    scratch_ += '>';
    function = scratch_;
  }
  const trace::Name name = names_(function);
  if (name.id >= frame_of_name_.size()) frame_of_name_.resize(name.id + 1024, 0);
  std::uint32_t& frame = frame_of_name_[name.id];
  if (frame != 0) return frame;
  const Place place = built_in ? Place{{}, function, {}} : place_in(function);
  trace::FrameRow row;
  row.id = sink_.new_id();
  row.kind = names_(built_in ? "native" : "python");
  row.function = names_(place.function);
  row.file = names_(place.file);
  row.line = place.line;
  sink_.add(row);
  frame = static_cast<std::uint32_t>(frames_.size());
  frames_.push_back({row.id});
  return frame;
}

void Stacks::add(trace::Id thread_id, std::int64_t begin_ns, std::int64_t end_ns, std::string_view function) {
  if (calls_ >= kMaxCalls)
    return sink_.lose(trace::Loss::kInputLimit, 1, "Python functions: stacks of what they called are not complete");
  if (last_ == nullptr || last_thread_ != thread_id) {
    last_ = &threads_[thread_id];
    last_thread_ = thread_id;
  }
  last_->disorder |= !last_->calls.empty() && begin_ns < last_->calls.back().begin_ns;
  last_->calls.push_back({begin_ns, end_ns, frame_of(function), -1});
  ++calls_;
}

std::uint32_t Stacks::node_of(std::uint32_t parent, std::uint32_t frame) {
  if (frame == 0 || nodes_[parent].depth >= kMaxDepth) return parent;
  const auto key = static_cast<std::int64_t>(static_cast<std::uint64_t>(parent) << 32 | frame);
  const auto fresh = static_cast<std::uint32_t>(nodes_.size());
  const std::uint32_t* const node = node_ids_.insert(key, fresh);
  if (node == nullptr) {
    sink_.lose(trace::Loss::kDefinitionsFull, 1, "distinct stacks");
    return parent;
  }
  if (*node == fresh) nodes_.push_back({parent, frame, 0, nodes_[parent].depth + 1});
  return *node;
}

void Stacks::sort(Thread& thread) {
  // Calls that have their node give back their frame.
  for (std::size_t i = 0; i < thread.placed; ++i) thread.calls[i].node = nodes_[thread.calls[i].node].frame;
  std::stable_sort(thread.calls.begin(), thread.calls.end(), [](const Call& a, const Call& b) {
    return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
  });
  thread.placed = 0;
  thread.nesting.clear();
  thread.disorder = false;
}

void Stacks::place(Thread& thread) {
  for (std::size_t i = thread.placed; i < thread.calls.size(); ++i) {
    Call& call = thread.calls[i];
    const auto* around = thread.nesting.at(call.begin_ns);
    call.parent = around == nullptr ? -1 : around->item;
    call.node = node_of(call.parent < 0 ? 0 : thread.calls[static_cast<std::size_t>(call.parent)].node, call.node);
    if (thread.nesting.depth() < kMaxDepth) thread.nesting.open(call.end_ns, static_cast<std::int32_t>(i));
  }
  thread.placed = thread.calls.size();
}

trace::Id Stacks::stack_of(std::uint32_t node) {
  if (nodes_[node].stack_id != 0) return nodes_[node].stack_id;
  trace::StackRow row;
  row.stack_id = nodes_[node].stack_id = sink_.new_id();
  for (std::uint32_t at = node; at != 0; at = nodes_[at].parent) {
    row.frame_id = frames_[nodes_[at].frame].id;
    sink_.add(row);
    ++row.depth;
  }
  return row.stack_id;
}

std::optional<trace::Id> Stacks::at(trace::Id thread_id, std::int64_t at_ns) {
  const auto found = threads_.find(thread_id);
  if (found == threads_.end()) return std::nullopt;
  Thread& thread = found->second;
  if (thread.disorder) {
    // A file that mixes functions and launches without order would be sorted again and again: not before an eighth is
    // new. Until then nobody knows.
    if (thread.calls.size() - thread.placed <= thread.placed / 8) return std::nullopt;
    sort(thread);
  }
  place(thread);
  const auto end = thread.calls.begin() + static_cast<std::ptrdiff_t>(thread.placed);
  const auto after = std::upper_bound(thread.calls.begin(), end, at_ns,
                                      [](std::int64_t at, const Call& call) { return at < call.begin_ns; });
  auto call = static_cast<std::int32_t>(after - thread.calls.begin()) - 1;
  for (std::size_t climbed = 0; call >= 0 && climbed <= kMaxDepth; ++climbed) {
    const Call& here = thread.calls[static_cast<std::size_t>(call)];
    if (here.end_ns >= at_ns && here.node != 0) return stack_of(here.node);
    call = here.parent;
  }
  return std::nullopt;
}

}  // namespace llmprof::importers::chrome_json
