#include "exporters/stacks.h"

#include <fmt/format.h>

#include "exporters/selection.h"
#include "exporters/tracks.h"
#include "trace/chunk_row.h"

namespace llmprof::exporters {
namespace {

constexpr std::int64_t kNull = trace::Columns::kNull;

using Row = trace::ChunkRow;

class Sums {
 public:
  Sums(const Request& request, Frames& frames, const Stacks& stacks, Tracks& tracks,
       const std::function<void(const StackWeight&)>& take)
      : request_(request), frames_(frames), stacks_(stacks), tracks_(tracks), take_(take) {}

  Result<void> kernels() {
    const std::string sql = fmt::format(
        "SELECT t.stack_id, t.stage, t.module, coalesce(o.name, t.op) AS op, t.name, t.device_id, CAST(sum(t.end_ns - "
        "t.begin_ns) AS BIGINT), count(*) FROM ({}) AS t LEFT JOIN (SELECT id AS operator, name FROM op) AS o ON "
        "o.operator = t.op_id GROUP BY ALL ORDER BY ALL",
        selected_kernels(request_.selection));
    return trace::each_row(request_.run, sql, [&](const Row& row) {
      const Device& device = tracks_.devices[tracks_.device(row[5])];
      StackWeight sum{stack(row[0]), device.is_gpu ? Weight::kGpuTime : Weight::kCpuKernelTime,
                      row[6],        row[7],
                      row.text(1),   row.text(2),
                      device.title,  {}};
      if (sum.frames.empty()) {
        for (const std::size_t column : {1, 2})
          if (!row.text(column).empty()) sum.frames.push_back(frames_.number(row.text(column)));
      }
      if (!row.text(3).empty()) sum.frames.push_back(frames_.number(row.text(3)));
      sum.frames.push_back(frames_.number(fmt::format("{} {}", device.is_gpu ? "[GPU]" : "[CPU]", row.text(4))));
      take_(sum);
    });
  }

  Result<void> samples() {
    const std::string sql = fmt::format(
        "SELECT stack_id, stage, thread_id, CAST(sum(weight_ns) AS BIGINT) FROM ({}) GROUP BY ALL ORDER BY ALL",
        selected_samples(request_.selection));
    return trace::each_row(request_.run, sql, [&](const Row& row) {
      const std::string name = tracks_.threads[tracks_.thread(row[2])].title();
      StackWeight sum{stack(row[0]), Weight::kCpuTime, row[3], 0, row.text(1), {}, {}, name};
      if (sum.frames.empty()) sum.frames.push_back(frames_.number("(stack could not be read)"));
      take_(sum);
    });
  }

  Result<void> copies() {
    const std::string sql = fmt::format(
        "SELECT t.stack_id, o.name, t.direction, t.device_id, CAST(sum(t.bytes) AS BIGINT) FROM ({}) AS t LEFT JOIN "
        "(SELECT id AS operator, name FROM op) AS o ON o.operator = t.op_id GROUP BY ALL ORDER BY ALL",
        selected_rows("copy", request_.selection));
    return trace::each_row(request_.run, sql, [&](const Row& row) {
      const Device& device = tracks_.devices[tracks_.device(row[3])];
      StackWeight sum{stack(row[0]), Weight::kCopied, row[4], 0, {}, {}, device.title, {}};
      if (!row.text(1).empty()) sum.frames.push_back(frames_.number(row.text(1)));
      sum.frames.push_back(frames_.number(row.text(2) == "fill" ? std::string("[GPU] fill")
                                                                : fmt::format("[GPU] copy {}", row.text(2))));
      take_(sum);
    });
  }

  Result<void> allocations() {
    const std::string sql =
        fmt::format("SELECT stack_id, kind, device_id, CAST(sum(bytes) AS BIGINT) FROM ({}) GROUP BY ALL ORDER BY ALL",
                    selected_rows("allocation", request_.selection));
    return trace::each_row(request_.run, sql, [&](const Row& row) {
      StackWeight sum{stack(row[0]), Weight::kAllocated, row[3], 0, {}, {}, {}, {}};
      if (row.known(2)) sum.device = tracks_.devices[tracks_.device(row[2])].title;
      sum.frames.push_back(frames_.number(fmt::format("[allocation] {}", row.text(1))));
      take_(sum);
    });
  }

 private:
  std::vector<std::uint32_t> stack(std::int64_t stack_id) {
    std::vector<std::uint32_t> numbers;
    for (const Frame* frame : stacks_.frames(stack_id))
      numbers.push_back(frames_.number(frame->name, frame->file, frame->line));
    return numbers;
  }

  const Request& request_;
  Frames& frames_;
  const Stacks& stacks_;
  Tracks& tracks_;
  const std::function<void(const StackWeight&)>& take_;
};

}  // namespace

std::uint32_t Frames::number(std::string_view name, std::string_view file, std::int64_t line) {
  const auto [found, is_new] =
      numbers_.try_emplace(fmt::format("{}\n{}\n{}", name, file, line), static_cast<std::uint32_t>(frames_.size()));
  if (is_new) frames_.push_back({std::string(name), std::string(file), line});
  return found->second;
}

std::vector<const Frame*> Stacks::frames(std::int64_t stack_id) const {
  std::vector<const Frame*> out;
  const auto found = stacks_.find(stack_id);
  if (found == stacks_.end()) return out;
  for (auto frame = found->second.rbegin(); frame != found->second.rend(); ++frame) out.push_back(&frames_[*frame]);
  return out;
}

std::string Stacks::folded(std::int64_t stack_id) const {
  std::string text;
  for (const Frame* frame : frames(stack_id)) text += (text.empty() ? "" : ";") + frame->name;
  return text;
}

Result<Stacks> load_stacks(const trace::Run& run) {
  LLMPROF_LET(const trace::Columns rows, run.columns("SELECT id, function, file, line, kind FROM frame"));
  std::vector<Frame> frames{{"(unknown)", "", 0}};
  std::unordered_map<std::int64_t, std::uint32_t> frame_of_id;
  for (std::size_t i = 0; i < rows.rows(); ++i) {
    const auto text = [&](std::size_t column) { return rows.names[static_cast<std::size_t>(rows.values[column][i])]; };
    frame_of_id.emplace(rows.values[0][i], static_cast<std::uint32_t>(frames.size()));
    frames.push_back({rows.values[1][i] == 0 ? "(unknown)" : text(1), text(2),
                      rows.values[3][i] == kNull ? 0 : rows.values[3][i], text(4)});
  }
  std::unordered_map<std::int64_t, std::vector<std::uint32_t>> stacks;
  LLMPROF_LET(const trace::Columns stack, run.columns("SELECT stack_id, frame_id FROM stack ORDER BY stack_id, depth"));
  for (std::size_t i = 0; i < stack.rows(); ++i) {
    const auto frame = frame_of_id.find(stack.values[1][i]);
    stacks[stack.values[0][i]].push_back(frame != frame_of_id.end() ? frame->second : 0);
  }
  return Stacks(std::move(frames), std::move(stacks));
}

WeightName name_of(Weight weight) {
  constexpr WeightName kNames[] = {{"gpu_time", "nanoseconds"}, {"kernels", "count"},
                                   {"cpu_time", "nanoseconds"}, {"cpu_kernel_time", "nanoseconds"},
                                   {"copied", "bytes"},         {"allocated", "bytes"}};
  static_assert(std::size(kNames) == static_cast<std::size_t>(Weight::kCount));
  return kNames[static_cast<std::size_t>(weight)];
}

Result<void> each_stack(const Request& request, Frames& frames, const std::function<void(const StackWeight&)>& take) {
  LLMPROF_LET(const Stacks stacks, load_stacks(request.run));
  LLMPROF_LET(Tracks tracks, load_tracks(request.run));
  Sums sums(request, frames, stacks, tracks, take);
  LLMPROF_TRY(sums.kernels());
  LLMPROF_TRY(sums.samples());
  LLMPROF_TRY(sums.copies());
  return sums.allocations();
}

}  // namespace llmprof::exporters
