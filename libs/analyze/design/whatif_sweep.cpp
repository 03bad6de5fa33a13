#include "analyze/design/whatif_sweep.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/errors.h"
#include "base/suggest.h"

namespace llmprof::analyze::design {
namespace {

constexpr std::size_t kMostLeftOut = 5;

Result<void> check(const std::vector<base::Axis>& axes) {
  if (axes.empty() || axes.size() > 2) return usage_error("--sweep wants one or two settings, not {}", axes.size());
  const std::vector<std::string> keys = setting_keys();
  std::size_t points = 1;
  for (const base::Axis& axis : axes) {
    const bool known = std::ranges::find(keys, axis.name) != keys.end();
    if (!known || axis.name == "device" || axis.name.ends_with("dtype") || axis.name == "arithmetic") {
      return Error{ErrorCode::kUsage, fmt::format("--sweep: '{}' is no setting that counts", axis.name),
                   base::did_you_mean(axis.name, keys)};
    }
    points *= axis.values.size();
  }
  if (points > kMostChangePoints) return usage_error("--sweep: {} points are more than {}", points, kMostChangePoints);
  return {};
}

// A point that is to be priced.
struct Asked {
  std::size_t line = 0;
  std::int64_t value = 0;
  ModelSetup setup;
};

class Points {
 public:
  Points(ChangeSweep& sweep, const base::Axis& across) : sweep_(sweep), across_(across) {}

  void add_line(std::string name, const ModelSetup& setup) {
    for (const std::int64_t value : across_.values) {
      ModelSetup at = setup;
      const std::string setting = fmt::format("{}={}", across_.name, value);
      if (const auto done = set(at, setting); !done) {
        leave_out(setting, done.error().message);
        continue;
      }
      asked.push_back({sweep_.lines.size(), value, std::move(at)});
    }
    sweep_.lines.push_back({std::move(name), {}});
  }

  void leave_out(const std::string& setting, const std::string& why) {
    const std::string text = fmt::format("{}: {}", setting, why);
    if (std::ranges::find(sweep_.left_out, text) == sweep_.left_out.end()) sweep_.left_out.push_back(text);
  }

  std::vector<Asked> asked;

 private:
  ChangeSweep& sweep_;
  const base::Axis& across_;
};

ChangePoint point_of(std::int64_t value, const Priced& priced) {
  ChangePoint out{.value = value};
  if (const PricedStage* prefill = priced.stage("prefill"))
    out.ttft_ns = prefill->ns, out.ttft_least_ns = prefill->ns * prefill->least,
    out.ttft_most_ns = prefill->ns * prefill->most;
  if (const PricedStage* decode = priced.stage("decode"))
    out.tpot_ns = decode->ns, out.tpot_least_ns = decode->ns * decode->least,
    out.tpot_most_ns = decode->ns * decode->most;
  out.tokens_per_s = priced.tokens_per_s;
  out.memory_bytes = priced.memory_bytes;
  if (priced.device_bytes && *priced.device_bytes > 0) out.fits = priced.memory_bytes <= *priced.device_bytes;
  return out;
}

// Prices all points by the best source that knows all of them.
void price_all(Points& points, const Pricer& pricer, ChangeSweep& sweep) {
  Source source = Source::kProgram;
  std::vector<std::optional<Priced>> prices(points.asked.size());
  for (std::size_t i = 0; i < prices.size(); ++i) {
    const Asked& asked = points.asked[i];
    if (auto priced = pricer(asked.setup, source)) {
      source = std::min(source, priced->source);
      prices[i] = std::move(*priced);
    } else {
      points.leave_out(fmt::format("{}={}", sweep.axes.back().name, asked.value), priced.error().message);
    }
  }
  for (std::size_t i = 0; i < prices.size(); ++i) {
    const Asked& asked = points.asked[i];
    if (!prices[i]) continue;
    if (prices[i]->source > source) {
      auto again = pricer(asked.setup, source);
      if (!again) continue;
      prices[i] = std::move(*again);
    }
    sweep.scaled = sweep.scaled || prices[i]->scaled;
    sweep.lines[asked.line].points.push_back(point_of(asked.value, *prices[i]));
  }
  sweep.source = source;
}

}  // namespace

Result<ChangeSweep> sweep_changes(const ModelSetup& setup, const ModelSetup* changed, std::string_view changes,
                                  std::vector<base::Axis> axes, const Pricer& pricer) {
  LLMPROF_TRY(check(axes));
  ChangeSweep out{.axes = std::move(axes)};
  Points points(out, out.axes.back());
  // Sizes that are not swept stay where they are, even those that follow from another's default.
  const auto settled = [](const ModelSetup& of) -> Result<ModelSetup> {
    ModelSetup copy = of;
    LLMPROF_LET(copy.options, complete(of.options, of.subject.config));
    return copy;
  };
  LLMPROF_LET(const ModelSetup before, settled(setup));
  if (out.axes.size() == 1) {
    points.add_line("as it is", before);
    if (changed != nullptr) {
      LLMPROF_LET(const ModelSetup after, settled(*changed));
      points.add_line(std::string(changes), after);
    }
  } else {
    LLMPROF_LET(const ModelSetup base, settled(changed != nullptr ? *changed : setup));
    for (const std::int64_t value : out.axes.front().values) {
      ModelSetup line = base;
      const std::string setting = fmt::format("{}={}", out.axes.front().name, value);
      if (const auto done = set(line, setting); !done) {
        points.leave_out(setting, done.error().message);
        continue;
      }
      points.add_line(setting, line);
    }
  }
  price_all(points, pricer, out);
  std::erase_if(out.lines, [](const ChangeLine& line) { return line.points.empty(); });
  if (out.lines.empty())
    return usage_error("--sweep: none of the values can be: {}", out.left_out.empty() ? "" : out.left_out.front());
  if (out.left_out.size() > kMostLeftOut) {
    const std::size_t more = out.left_out.size() - kMostLeftOut;
    out.left_out.resize(kMostLeftOut);
    out.left_out.push_back(fmt::format("{} more values", more));
  }
  return out;
}

}  // namespace llmprof::analyze::design
