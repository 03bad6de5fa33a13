// Copies and communication without overlap.

#include "analyze/rules/tools.h"

namespace llmprof::analyze::missing_overlap {
namespace {

constexpr double kLeastShare = 0.02;  // of the stage's time

std::string copy_rows() {
  return "SELECT begin_ns, end_ns - begin_ns AS ns, direction, bytes, host_memory, stream FROM copy WHERE direction IN "
         "('host_to_device', 'device_to_host', 'peer') ORDER BY begin_ns";
}

std::string collective_rows() {
  return "SELECT begin_ns, end_ns - begin_ns AS ns, name, device_id, stream FROM kernel WHERE name LIKE '%nccl%' OR "
         "name LIKE '%rccl%' OR name LIKE '%all_reduce%' OR name LIKE '%cross_device_reduce%' ORDER BY begin_ns";
}

struct Kind {
  const Transfers& transfers;
  bool copies = true;
  double devices = 1;  // over which times were added up
};

double exposed(const Kind& kind) { return static_cast<double>(kind.transfers.exposed_ns) / kind.devices; }

// What could run beside it: the kernels of the stage.
double overlappable(const Kind& kind, const Stage& stage) {
  const double busy = static_cast<double>(stage.device_busy_ns) / kind.devices;
  const double own = kind.copies ? 0 : static_cast<double>(kind.transfers.time_ns) / kind.devices;
  return std::min(exposed(kind), std::max(0.0, busy - own));
}

Finding finding_of(const Kind& kind, const Stage& stage) {
  const Transfers& moved = kind.transfers;
  const double of_stage = static_cast<double>(stage.time_ns), gain = overlappable(kind, stage);
  const char* what = kind.copies ? "copies" : "collectives";
  Finding out{.stage = stage.name, .part = what};
  out.title = fmt::format("{} of {} in {} run while no kernel computes", human_ns(exposed(kind)), what, stage.name);
  out.text = fmt::format("{} take {} per device; the GPU could compute for other work in {} of that.",
                         count_of(moved.count, what), human_ns(static_cast<double>(moved.time_ns) / kind.devices),
                         human_ns(gain));
  const std::string rows = kind.copies ? copy_rows() : collective_rows();
  const std::string name = stage.name + (kind.copies ? ".exposed_copies" : ".exposed_collectives");
  out.add_time(name, fmt::format("{} with no kernel beside them, per device", what), exposed(kind), "measured", rows);
  out.add_fraction(name + "_share", "the same, of all of them",
                   ratio(moved.exposed_ns, std::max<std::int64_t>(1, moved.time_ns)),
                   human_ns(moved.time_ns) + fmt::format(" of {}", what), "measured", rows);
  if (kind.copies) out.add_number("copied_bytes", "bytes copied", moved.bytes, "B", "measured", rows);
  out.add_time("device_busy", "time of the stage with a kernel executing, per device",
               static_cast<double>(stage.device_busy_ns) / kind.devices, "measured");
  out.set_gain(
      gain, of_stage,
      fmt::format("the less of {} without a kernel beside them and {} of kernels that could run beside them: {} of {}",
                  human_ns(exposed(kind)), human_ns(static_cast<double>(stage.device_busy_ns) / kind.devices),
                  human_ns(gain), human_ns(of_stage)));
  out.lever = fmt::format("running {} beside kernels", what);
  if (kind.copies) {
    if (moved.pageable > 0)
      out.advice.push_back(fmt::format(
          "Pin the host memory first ({} of {} copies are of pageable memory): only pinned copies run beside kernels.",
          moved.pageable, moved.count));
    out.advice.emplace_back(
        "Copy what the next step needs on a stream of its own while this step computes (prefetch, non_blocking=True).");
  } else {
    out.advice.emplace_back(
        "Run collectives on a stream of their own beside the products of another micro-batch or layer.");
    out.advice.emplace_back("Cut the all-reduce into pieces that begin as soon as their part of the product is done.");
  }
  out.next = "llmprof diff RUN CHANGED_RUN";
  return out;
}

}  // namespace

RuleResult check(const RuleInput& run) {
  RuleResult out;
  if (run.facts.overlaps.empty())
    return not_applicable("0 copies between host and device and 0 collectives in steps of the model");
  const double devices = std::max<std::int64_t>(1, run.summary.busy_devices);
  for (const StageOverlap& overlap : run.facts.overlaps) {
    const Stage* stage = stage_named(run.summary, overlap.stage);
    if (stage == nullptr || stage->time_ns <= 0) continue;
    for (const Kind& kind : {Kind{overlap.copies, true, devices}, Kind{overlap.collectives, false, devices}}) {
      if (kind.transfers.count == 0) continue;
      if (overlappable(kind, *stage) >= kLeastShare * stage->time_ns) {
        out.findings.push_back(finding_of(kind, *stage));
        continue;
      }
      out.add_why(
          stage->name,
          fmt::format("{} of {} without a kernel beside them, of {}; {} could be computed meanwhile",
                      human_ns(exposed(kind)), count_of(kind.transfers.count, kind.copies ? "copies" : "collectives"),
                      human_ns(stage->time_ns), human_ns(overlappable(kind, *stage))));
    }
  }
  return out;
}

}  // namespace llmprof::analyze::missing_overlap
