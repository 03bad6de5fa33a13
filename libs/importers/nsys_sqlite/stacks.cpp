#include "importers/nsys_sqlite/stacks.h"

namespace llmprof::importers::nsys {
namespace {

constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ hash >> 29;
}

}  // namespace

Result<Stacks::ById> Stacks::read(std::string_view table) {
  ById found;
  LLMPROF_LET(Rows rows, database_.rows(table, {"id", "symbol", "module", "kernelMode"}));
  std::optional<std::int64_t> current;
  while (rows.next()) {
    const auto id = rows.integer(0);
    if (!id) continue;
    if (current && *current != *id) keep(*current, found);
    current = id;
    add_frame(rows);
  }
  if (current) keep(*current, found);
  LLMPROF_TRY(rows.finish());
  return found;
}

// Nsight puts a frame "[Broken backtraces]" where unwinding failed, and one of module "[Unknown]" before it.
void Stacks::add_frame(Rows& rows) {
  const auto symbol = rows.integer(1);
  if (!symbol) return;
  const Frame frame{*symbol, rows.integer_or(2, -1), rows.integer_or(3, 0) != 0};
  const bool broken = strings_.is(frame.symbol, "[Broken backtraces]") || strings_.is(frame.module, "[Unknown]");
  cut_ = cut_ || broken || frames_.size() >= kMostFrames;
  if (!cut_) frames_.push_back(frame_id(frame));
}

trace::Id Stacks::frame_id(const Frame& frame) {
  const std::uint64_t hash = mix(mix(frame.in_kernel ? 2 : 1, static_cast<std::uint64_t>(frame.symbol)),
                                 static_cast<std::uint64_t>(frame.module));
  const auto [known, is_new] = known_frames_.try_emplace(hash, 0);
  if (!is_new) return known->second;
  Sink& sink = database_.sink();
  known->second = sink.new_id();
  trace::FrameRow row;
  row.id = known->second;
  row.kind = sink.name(frame.in_kernel ? "kernel" : "native");
  row.function = strings_.name(frame.symbol);
  if (frame.module >= 0) row.file = strings_.name(frame.module);
  sink.add(row);
  return row.id;
}

void Stacks::keep(std::int64_t id, ById& found) {
  Sink& sink = database_.sink();
  if (found.size() >= kMostStacks) sink.lose(trace::Loss::kInputLimit, 1, "call stacks beyond a million");
  if (!frames_.empty() && found.size() < kMostStacks) {
    std::uint64_t hash = frames_.size();
    for (const trace::Id frame : frames_) hash = mix(hash, static_cast<std::uint64_t>(frame));
    const auto [known, is_new] = known_stacks_.try_emplace(hash, 0);
    if (is_new) {
      known->second = sink.new_id();
      std::int32_t depth = 0;
      for (const trace::Id frame : frames_) sink.add(trace::StackRow{known->second, depth++, frame});
    }
    found[id] = {known->second, cut_};
  }
  frames_.clear();
  cut_ = false;
}

}  // namespace llmprof::importers::nsys
