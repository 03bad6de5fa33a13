#include "predict/implementation/price.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/human.h"
#include "base/kernel_name.h"

namespace llmprof::predict {
namespace {

// How far times of kernels may be off, by what they stand on: shares of the time. See docs/verified.md for how often it
// held.
constexpr double kOff[kBases] = {0.04, 0.08, 0.2, 1, 1};
// In a step, kernels find other data in the caches and other clocks than in the sequence they were measured in.
constexpr double kContextOff = 0.03;

StepSize size_of(const Batch& batch) {
  StepSize size{batch.requests(), std::max<std::int64_t>(1, batch.tokens()), 0};
  for (const Chunk& chunk : batch.chunks) size.contexts += chunk.tokens + chunk.computed;
  for (const std::int64_t context : batch.contexts) size.contexts += context;
  return size;
}

const StageSteps* stage_for(const Implementation& implementation, const Batch& batch) {
  return implementation.stage(batch.chunks.empty() ? "decode" : "prefill");
}

std::string part_of(const StepKernel& kernel) { return kernel.op.empty() ? "other kernels" : kernel.op; }

class ProgramPricer final : public StepPricer {
 public:
  ProgramPricer(const ProgramCost& cost, const TableStepCost* best) : cost_(cost), best_(best) {
    for (const StageSteps& stage : cost.implementation().stages) {
      firsts_.push_back(static_cast<std::uint32_t>(places_.size()));
      for (const StepKernel& kernel : stage.kernels)
        places_.push_back({.module = kernel.module, .kernel = base::short_kernel_name(kernel.name)});
    }
  }

  const std::vector<Place>& places() const override { return places_; }

  PricedStep price(const Batch& batch) const override {
    PricedStep out;
    const StageSteps* stage = stage_for(cost_.implementation(), batch);
    if (stage == nullptr) return out;
    const ProgramStep step = cost_.step(*stage, size_of(batch));
    out.ops = parts(*stage, step);
    out.host_ns = step.waits_ns + step.around_ns;
    out.step_ns = step.total_ns();
    const std::uint32_t first = firsts_[static_cast<std::size_t>(stage - cost_.implementation().stages.data())];
    for (std::size_t i = 0; i < step.kernels.size(); ++i) {
      const KernelTime& kernel = step.kernels[i];
      if (kernel.ns > 0) out.work.push_back({first + static_cast<std::uint32_t>(i), kernel.begin_ns, kernel.ns});
    }
    return out;
  }

  std::vector<Variant> variants(const Batch& batch) const override {
    std::vector<Variant> out;
    const StageSteps* stage = stage_for(cost_.implementation(), batch);
    if (stage == nullptr) return out;
    const ProgramStep step = cost_.step(*stage, size_of(batch));
    const auto kernels = static_cast<std::int64_t>(stage->kernels.size());
    out.push_back({.name = stage->graph ? "as recorded, graph" : "as recorded, eager",
                   .meaning = "its kernels, launched as the program does",
                   .kernels = kernels,
                   .ns = step.total_ns(),
                   .why = {}});
    Variant graph{.name = "its kernels as a graph",
                  .meaning = "the same kernels as one CUDA graph",
                  .kernels = kernels,
                  .ns = {},
                  .why = {}};
    if (cost_.rows().graph_gap_ns > 0) {
      graph.ns = step.kernels_ns + static_cast<double>(kernels) * cost_.rows().graph_gap_ns;
    } else {
      graph.why = "gaps inside of graphs were not measured";
    }
    if (!stage->graph) out.push_back(std::move(graph));
    if (best_ == nullptr) return out;
    Variant best{.name = "best implementation",
                 .meaning = "the fewest and fastest kernels that llmprof bench --for MODEL found, as one CUDA graph",
                 .kernels = 0,
                 .ns = 0,
                 .why = {}};
    for (const OpTime& op : best_->explain(batch)) *best.ns += op.ns, best.kernels += op.calls;
    out.push_back(std::move(best));
    return out;
  }

  std::string source() const override {
    return fmt::format(
        "Kernels as in a recorded step of {}, at times measured on this device ({} {}); the host's time as in that "
        "run.",
        cost_.implementation().run, cost_.rows().framework, cost_.rows().version);
  }

 private:
  // By operator of the model, in the order of their first kernel, and what is between kernels.
  static std::vector<OpTime> parts(const StageSteps& stage, const ProgramStep& step) {
    std::vector<OpTime> rows;
    std::map<std::string, std::size_t> places;
    for (std::size_t i = 0; i < step.kernels.size(); ++i) {
      const std::string name = part_of(stage.kernels[i]);
      const auto [place, fresh] = places.try_emplace(name, rows.size());
      if (fresh) rows.push_back({.op = name, .basis = Basis::kMeasured, .source = "kernels measured"});
      OpTime& row = rows[place->second];
      row.calls += 1;
      row.ns += step.kernels[i].ns;
      row.basis = std::max(row.basis, step.kernels[i].basis);
    }
    rows.push_back({.op = "gaps between kernels",
                    .calls = 1,
                    .ns = step.gaps_ns,
                    .basis = Basis::kMeasured,
                    .source = "measured"});
    return rows;
  }

  const ProgramCost& cost_;
  const TableStepCost* best_;
  std::vector<Place> places_;
  std::vector<std::uint32_t> firsts_;
};

}  // namespace

StepError stage_error(const ProgramCost& cost, const StageSteps& stage, const StepSize& size) {
  const ProgramStep step = cost.step(stage, size);
  double off_ns = step.kernels_ns * kContextOff;
  for (const KernelTime& kernel : step.kernels) off_ns += kernel.ns * kOff[static_cast<std::size_t>(kernel.basis)];
  const auto end = [&](bool low) {
    HostTerms host = stage.host;
    for (Calibrated* term : {&host.launch_ns, &host.latency_ns, &host.around_ns})
      term->value = low ? term->low : term->high;
    const double total = cost.step(stage, size, host).total_ns();
    return total + (low ? -1 : 1) * std::min(off_ns, total * 0.5);
  };
  const double total = step.total_ns();
  if (!(total > 0)) return {};
  return {.least = std::min(1.0, end(true) / total), .most = std::max(1.0, end(false) / total), .why = ""};
}

std::unique_ptr<StepPricer> price_program(const ProgramCost& cost, const TableStepCost* best) {
  return std::make_unique<ProgramPricer>(cost, best);
}

StepError program_error(const ProgramCost& cost, const StepsInput& input) {
  StepError error{.why =
                      "what kernels' times stand on (measured 4 %, between sizes 8 %, beyond them 20 %, unknown "
                      "kernels twice), 3 % for what is in "
                      "the caches, and the middle four fifths of the recorded host times"};
  for (const StageSteps& stage : cost.implementation().stages) {
    const bool decode = stage.stage == "decode";
    if (!decode && (stage.stage != "prefill" || input.prompt == 0)) continue;
    const std::int64_t context = input.context > 0 ? input.context : input.prompt + 1;
    const StepSize size = decode ? StepSize{input.batch, input.batch, input.batch * context}
                                 : StepSize{input.batch, input.batch * input.prompt, input.batch * input.prompt};
    const StepError off = stage_error(cost, stage, size);
    error.least = std::min(error.least, off.least), error.most = std::max(error.most, off.most);
  }
  return error;
}

}  // namespace llmprof::predict
