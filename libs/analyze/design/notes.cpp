#include "analyze/design/notes.h"

#include <fmt/format.h>

#include "base/human.h"

namespace llmprof::analyze::design {
namespace {

void add_model_caveats(const Design& design, std::vector<std::string>& out) {
  for (const model::Caveat& caveat : design.config.caveats) {
    out.push_back(caveat.field.empty() ? caveat.meaning : caveat.field + ": " + caveat.meaning);
  }
  const std::int64_t longest = std::max(design.options.prompt, design.options.context);
  if (design.config.positions > 0 && longest > design.config.positions) {
    out.push_back(fmt::format("{} tokens are more than the {} positions this model was made for", longest,
                              design.config.positions));
  }
}

void add_device_caveats(const Design& design, const Ruler& ruler, double weights_read_bytes,
                        std::vector<std::string>& out) {
  const Roof& roof = design.roof;
  if (!roof.known()) {
    out.push_back(roof.why.empty() ? "no device: no floors" : roof.why);
    return;
  }
  for (const UsedPeak& peak : ruler.peaks()) {
    if (!peak.note.empty()) out.push_back(peak.note);
    if (peak.method.find(hw::kShortOfCpu) != std::string::npos) {
      out.push_back("the peaks were measured on a busy machine and are too low: " + peak.method);
    }
  }
  for (const std::string& type : ruler.unknown_types()) {
    out.push_back(fmt::format("{} has no peak for {}, nor for a type that could stand in: floors are unknown",
                              roof.device, type));
  }
  if (!ruler.bandwidth()) out.push_back(roof.device + " has no memory bandwidth: floors are unknown");
  if (roof.on_chip_bytes > 0 && weights_read_bytes <= static_cast<double>(roof.on_chip_bytes)) {
    out.push_back(
        fmt::format("the weights ({}) fit the last-level cache ({}): a run may read them faster than memory, "
                    "so times bound by memory are no floors",
                    base::human_bytes(weights_read_bytes), base::human_bytes(static_cast<double>(roof.on_chip_bytes))));
  }
}

}  // namespace

std::vector<std::string> caveats_of(const Design& design, const Ruler& ruler, double weights_read_bytes) {
  std::vector<std::string> out;
  add_model_caveats(design, out);
  add_device_caveats(design, ruler, weights_read_bytes, out);
  return out;
}

std::vector<std::string> notes_of(const Design& design) {
  std::vector<std::string> out;
  out.push_back(
      "Analytic lower bounds: matrix products only (2MNK), attention causal, logits for sampled positions, each byte "
      "moved once. A real run needs more.");
  if (design.roof.on_chip_bytes > 0) {
    out.push_back(fmt::format("Activations of an operator count as moved where they exceed the {} on chip.",
                              base::human_bytes(static_cast<double>(design.roof.on_chip_bytes))));
  } else {
    out.push_back("On-chip memory is unknown: every activation counts as moved, so bytes of activations are no bound.");
  }
  if (design.devices > 1) {
    out.push_back(
        fmt::format("{} devices: costs, memory and floors are those of the one with most; communication is "
                    "not in the floors.",
                    design.devices));
  }
  if (design.options.parallel.pipeline > 1) {
    out.push_back(
        "Costs are added over the stages of the pipeline, which one pass goes through one after the other; tokens/s in "
        "total are with a batch in every stage, and memory is that of one batch.");
  }
  if (design.groups > 1) {
    out.push_back(
        fmt::format("The batch is that of each of the {} groups of devices that share the experts.", design.groups));
  }
  for (const model::Caveat& left_out : design.config.notes) out.push_back(left_out.field + ": " + left_out.meaning);
  return out;
}

}  // namespace llmprof::analyze::design
