#include "pictures/flame.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/numbers.h"
#include "base/strings.h"
#include "exporters/stacks.h"
#include "pictures/flame_tree.h"
#include "pictures/flame_wrappers.h"
#include "trace/chunk_row.h"

namespace llmprof::pictures {
namespace {

enum WeightIndex : std::size_t { kGpu, kCpu, kBytes };

// "forward (model.py:12)"; of a library only its name: its functions tell the rest.
std::string title(const exporters::Frame& frame) {
  if (frame.file.empty()) return frame.name;
  return frame.line > 0 ? fmt::format("{} ({}:{})", frame.name, base::base_name(frame.file), frame.line)
                        : fmt::format("{} ({})", frame.name, base::base_name(frame.file));
}

// A launch belongs to the step that its thread had begun last, if that was not over.
constexpr const char* kStageOfLaunch =
    "ASOF LEFT JOIN (SELECT thread_id AS of_thread, begin_ns AS step_begin_ns, end_ns AS step_end_ns, stage FROM step) "
    "AS s "
    "ON s.of_thread = t.thread_id AND s.step_begin_ns <= t.asked_ns";

class Paths {
 public:
  Paths(const trace::Run& run, exporters::Stacks stacks) : run_(run), stacks_(std::move(stacks)) {}

  Result<void> read_ranges();
  Result<void> add_kernels();
  Result<void> add_samples();
  Result<void> add_ranges();
  Result<void> add_bytes();
  FlameTree& tree() { return tree_; }
  bool saw_launch_stacks() const { return saw_launch_stacks_; }

 private:
  template <class Take>
  Result<void> each(const std::string& sql, Take&& take) {
    return trace::each_row(run_, sql, take);
  }
  std::int32_t stage(const std::string& name) {
    return tree_.child(FlameTree::kRoot, name.empty() ? "outside stages" : name, "stage");
  }
  std::int32_t stack(std::int32_t node, std::int64_t stack_id) {
    std::string_view library;  // of the frame before, if that has no name
    const std::vector<const exporters::Frame*> frames = stacks_.frames(stack_id);
    for (const exporters::Frame* frame : frames) {
      const bool wrapper = is_wrapper(*frame, frame == frames.back());
      const std::size_t address = frame->name.find("+0x");
      if (address == std::string::npos) {
        node = tree_.child(node, title(*frame), frame->kind == "python" ? "python" : "native", wrapper);
        library = {};
        continue;
      }
      // Addresses in a library without names of functions tell nothing apart: one node for what calls itself there.
      const std::string_view here = std::string_view(frame->name).substr(0, address);
      if (here != library) node = tree_.child(node, here, "native", wrapper);
      library = here;
    }
    return node;
  }
  // A node, and which of the layers it stands for: -1 none.
  struct Spot {
    std::int32_t node, layer = -1;
  };
  // "layers.7.mlp.up_proj" is layers.*, in it mlp, in it up_proj: what all layers do is one path.
  Spot module(std::int32_t node, std::string_view path) {
    Spot spot{.node = node};
    std::string level;
    while (!path.empty()) {
      const std::string_view part = path.substr(0, path.find('.'));
      if (is_number(path) && spot.layer < 0) spot.layer = base::parse_number<std::int32_t>(part).value_or(-1);
      level += is_number(path) ? ".*" : part;
      path.remove_prefix(std::min(part.size() + 1, path.size()));
      if (is_number(path)) continue;
      spot.node = tree_.child(spot.node, level, "module");
      level.clear();
    }
    return spot;
  }
  static bool is_number(std::string_view path) {
    const std::string_view part = path.substr(0, path.find('.'));
    return !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
  }
  // The ranges around something, outermost first, by their places in the tree of ranges; those that are modules stand
  // as the path of the module. A stage is not its own range.
  Spot inside(std::int32_t node, const std::string& stage, std::string_view path, std::int64_t tree_id) {
    std::vector<const Place*> around;
    while (tree_id > 0 && static_cast<std::size_t>(tree_id) <= places_.size() && around.size() < places_.size()) {
      around.push_back(&places_[static_cast<std::size_t>(tree_id - 1)]);
      tree_id = around.back()->parent;
    }
    Spot spot{.node = node};
    bool in_module = false;
    for (auto place = around.rbegin(); place != around.rend(); ++place) {
      if ((*place)->module) {
        if (!in_module) spot = module(spot.node, path);
        in_module = true;
      } else if ((*place)->name != stage) {
        spot.node = tree_.child(spot.node, (*place)->name, "range");
      }
    }
    return in_module ? spot : module(spot.node, path);
  }

  struct Place {              // of range_tree
    std::int64_t parent = 0;  // 0: none
    std::string name;
    bool module = false;
  };
  std::vector<Place> places_;  // by id, from 1
  const trace::Run& run_;
  exporters::Stacks stacks_;
  FlameTree tree_;
  bool saw_launch_stacks_ = false;
};

Result<void> Paths::read_ranges() {
  return each(
      "SELECT id, coalesce(parent_id, 0), name, (kind IS NOT DISTINCT FROM 'module')::BIGINT FROM "
      "range_tree ORDER BY id",
      [&](const trace::ChunkRow& row) {
        if (row[0] == static_cast<std::int64_t>(places_.size()) + 1)
          places_.push_back({row[1], row.text(2), row[3] != 0});
      });
}

// Measured ones inside the ranges they were launched in; estimated ones in sums over launches.
Result<void> Paths::add_kernels() {
  return each(R"(
SELECT t.stack_id, t.stage, t.module, coalesce(t.tree_id, 0), t.name, CAST(sum(t.ns) AS BIGINT)
FROM (
  SELECT k.stack_id, a.stage, a.module, r.range_tree_id AS tree_id, k.name, k.device_id, k.end_ns - k.begin_ns AS ns
  FROM kernel AS k
  LEFT JOIN attribution AS a ON a.kernel_id = k.id
  LEFT JOIN range_time AS r ON r.range_id = a.range_id
  UNION ALL
  SELECT stack_id, stage, module, NULL, name, device_id, time_ns FROM work WHERE (source = 'estimated' AND graph_node_id IS NOT NULL) OR NOT known
) AS t JOIN (SELECT id FROM device WHERE kind IS DISTINCT FROM 'cpu') AS d ON d.id = t.device_id
GROUP BY ALL ORDER BY ALL)",
              [&](const trace::ChunkRow& row) {
                const std::int32_t called = stack(stage(row.text(1)), row[0]);
                saw_launch_stacks_ |= row[0] != trace::Columns::kNull;
                const Spot spot = inside(called, row.text(1), row.text(2), row[3]);
                tree_.add(tree_.child(spot.node, row.text(4).empty() ? "(no name)" : row.text(4), "kernel"), kGpu,
                          static_cast<double>(row[5]), spot.layer);
              });
}

Result<void> Paths::add_samples() {
  return each(
      "SELECT t.stack_id, p.stage, CAST(sum(t.weight_ns) AS BIGINT) FROM sample AS t LEFT JOIN sample_place AS p ON "
      "p.sample_id = t.id GROUP BY ALL ORDER BY ALL",
      [&](const trace::ChunkRow& row) {
        std::int32_t node = stack(stage(row.text(1)), row[0]);
        if (stacks_.frames(row[0]).empty()) node = tree_.child(node, "(stack could not be read)", "native");
        tree_.add(node, kCpu, static_cast<double>(row[2]));
      });
}

// Host time of ranges, for runs without samples. A BLAS call on a CPU is a kernel inside its module.
Result<void> Paths::add_ranges() {
  LLMPROF_TRY(each(R"(
WITH called AS (
  SELECT a.stage, a.module, a.range_id, k.name, k.end_ns - k.begin_ns AS ns
  FROM kernel AS k JOIN device AS d ON d.id = k.device_id LEFT JOIN attribution AS a ON a.kernel_id = k.id
  WHERE d.kind = 'cpu'),
inside AS (SELECT range_id, sum(ns) AS ns FROM called WHERE range_id IS NOT NULL GROUP BY range_id),
own AS (
  SELECT p.stage, p.module, p.range_tree_id AS tree_id, CAST(NULL AS VARCHAR) AS name,
         greatest(p.self_ns - coalesce(i.ns, 0), 0) AS ns
  FROM range_time AS p LEFT JOIN inside AS i ON i.range_id = p.range_id)
SELECT stage, module, coalesce(tree_id, 0), name, CAST(sum(ns) AS BIGINT)
FROM (
  SELECT * FROM own
  UNION ALL
  SELECT c.stage, c.module, r.range_tree_id, c.name, c.ns
  FROM called AS c LEFT JOIN range_time AS r ON r.range_id = c.range_id)
GROUP BY ALL ORDER BY ALL)",
                   [&](const trace::ChunkRow& row) {
                     Spot spot = inside(stage(row.text(0)), row.text(0), row.text(1), row[2]);
                     if (row[3] != 0) spot.node = tree_.child(spot.node, row.text(3), "kernel");
                     tree_.add(spot.node, kCpu, static_cast<double>(row[4]), spot.layer);
                   }));
  return {};
}

Result<void> Paths::add_bytes() {
  const auto take = [&](const char* what) {
    return [this, what](const trace::ChunkRow& row) {
      const std::int32_t node = stack(stage(row.text(1)), row[0]);
      const std::string name = row.text(2).empty() ? "unknown" : row.text(2);
      tree_.add(tree_.child(node, fmt::format("{} {}", what, name), "copy"), kBytes, static_cast<double>(row[3]));
    };
  };
  LLMPROF_TRY(each(
      fmt::format(
          "SELECT t.stack_id, CASE WHEN t.asked_ns <= s.step_end_ns THEN s.stage END AS stage, t.name, "
          "CAST(sum(t.bytes) AS BIGINT) FROM (SELECT stack_id, thread_id, coalesce(launch_begin_ns, "
          "begin_ns) AS asked_ns, direction || coalesce(', ' || host_memory, '') AS name, bytes FROM copy) AS t {} "
          "GROUP BY ALL ORDER BY ALL",
          kStageOfLaunch),
      take("copy")));
  return each(
      fmt::format(
          "SELECT t.stack_id, CASE WHEN t.asked_ns <= s.step_end_ns THEN s.stage END AS stage, t.name, "
          "CAST(sum(t.bytes) AS BIGINT) FROM (SELECT stack_id, coalesce(thread_id, 0) AS thread_id, begin_ns AS "
          "asked_ns, kind AS name, bytes FROM allocation WHERE kind IS DISTINCT FROM 'segment') AS t {} GROUP BY "
          "ALL ORDER BY ALL",
          kStageOfLaunch),
      take("allocation"));
}

}  // namespace

FlameTrees::FlameTrees() = default;
FlameTrees::FlameTrees(FlameTrees&&) noexcept = default;
FlameTrees& FlameTrees::operator=(FlameTrees&&) noexcept = default;
FlameTrees::~FlameTrees() = default;

Result<FlameTrees> flame_trees(const trace::Run& run) {
  LLMPROF_LET(exporters::Stacks stacks, exporters::load_stacks(run));
  LLMPROF_LET(const trace::ResultTable samples, run.query("SELECT count(*) FROM sample"));
  const bool sampled = samples.rows[0][0].as_int() > 0;
  Paths paths(run, std::move(stacks));
  LLMPROF_TRY(paths.read_ranges());
  LLMPROF_TRY(paths.add_kernels());
  LLMPROF_TRY(sampled ? paths.add_samples() : paths.add_ranges());
  LLMPROF_TRY(paths.add_bytes());
  FlameTrees trees;
  trees.wrappers = paths.tree().wrappers();
  if (trees.wrappers > 0) {
    trees.shown = std::make_unique<FlameTree>(paths.tree().without_wrappers());
    trees.with_wrappers = std::make_unique<FlameTree>(std::move(paths.tree()));
  } else {
    trees.shown = std::make_unique<FlameTree>(std::move(paths.tree()));
  }
  const std::array<double, 3> total = trees.shown->total();
  if (total[kGpu] > 0 && !paths.saw_launch_stacks())
    trees.why =
        "launches were recorded without their stacks (record --stacks python,native): GPU time stands under stage and "
        "module";
  if (!sampled && total[kCpu] > 0)
    trees.why += fmt::format("{}no stack samples were taken: CPU time is the host time of ranges",
                             trees.why.empty() ? "" : "; ");
  return trees;
}

Flame cut(const FlameTrees& trees, std::size_t most) {
  Flame flame = trees.shown->cut(most);
  flame.wrappers = trees.wrappers;
  flame.why = trees.why;
  return flame;
}

std::optional<Flame> cut_with_wrappers(const FlameTrees& trees, std::size_t most) {
  if (!trees.with_wrappers) return std::nullopt;
  Flame flame = trees.with_wrappers->cut(most);
  flame.why = trees.why;
  return flame;
}

Result<Flame> flame(const trace::Run& run, std::size_t most) {
  LLMPROF_LET(const FlameTrees trees, flame_trees(run));
  return cut(trees, most);
}

}  // namespace llmprof::pictures
