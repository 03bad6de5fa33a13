// pprof profile: gzipped protobuf, message perftools.profiles.Profile of github.com/google/pprof.

#include <fmt/format.h>

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/version.h"
#include "exporters/exporter.h"
#include "exporters/output_file.h"
#include "exporters/proto_writer.h"
#include "exporters/stacks.h"
#include "exporters/tracks.h"

namespace llmprof::exporters {

namespace pprof {
namespace {

// Field numbers of profile.proto.
namespace profile {
constexpr std::uint32_t kSampleType = 1, kSample = 2, kMapping = 3, kLocation = 4, kFunction = 5, kText = 6, kTime = 9,
                        kDuration = 10, kComment = 13, kDefaultType = 14;
}
namespace value_type {
constexpr std::uint32_t kType = 1, kUnit = 2;
}
namespace sample {
constexpr std::uint32_t kLocation = 1, kValue = 2, kLabel = 3, kLabelKey = 1, kLabelText = 2;
}
namespace mapping {
constexpr std::uint32_t kId = 1, kFile = 5, kHasFunctions = 7, kHasFiles = 8, kHasLines = 9;
}
namespace location {
constexpr std::uint32_t kId = 1, kMapping = 2, kLine = 4, kLineFunction = 1, kLineNumber = 2;
}
namespace function {
constexpr std::uint32_t kId = 1, kName = 2, kSystemName = 3, kFile = 4;
}

constexpr auto kWeights = static_cast<std::size_t>(Weight::kCount);

// The string table; number 0 is "".
class Texts {
 public:
  Texts() { number(""); }
  std::int64_t number(std::string_view text) {
    const auto [found, is_new] = numbers_.try_emplace(std::string(text), static_cast<std::int64_t>(all_.size()));
    if (is_new) all_.emplace_back(text);
    return found->second;
  }
  const std::vector<std::string>& all() const { return all_; }

 private:
  std::map<std::string, std::int64_t, std::less<>> numbers_;
  std::vector<std::string> all_;
};

class Profile {
 public:
  // One sample; location n stands for frame n - 1.
  void add(const StackWeight& sum) {
    std::array<std::int64_t, kWeights> values{};
    values[static_cast<std::size_t>(sum.weight)] = sum.value;
    if (sum.weight == Weight::kGpuTime) values[static_cast<std::size_t>(Weight::kKernels)] = sum.kernels;
    totals_[static_cast<std::size_t>(sum.weight)] += sum.value;
    proto_.message(profile::kSample, [&] {
      proto_.message(sample::kLocation, [&] {
        for (auto frame = sum.frames.rbegin(); frame != sum.frames.rend(); ++frame) proto_.varint(*frame + 1);
      });
      proto_.message(sample::kValue, [&] {
        for (const std::int64_t value : values) proto_.varint(static_cast<std::uint64_t>(value));
      });
      label("stage", sum.stage);
      label("module", sum.module);
      label("device", sum.device);
      label("thread", sum.thread);
    });
    ++samples_;
  }

  std::string_view finish(const Frames& frames, std::string_view command, std::optional<std::int64_t> begin_ns,
                          std::int64_t duration_ns) {
    for (std::size_t i = 0; i < kWeights; ++i) {
      const WeightName name = name_of(static_cast<Weight>(i));
      texts_message(profile::kSampleType, value_type::kType, name.name, value_type::kUnit, name.unit);
    }
    proto_.message(profile::kMapping, [&] {
      proto_.integer(mapping::kId, 1);
      proto_.integer(mapping::kFile, texts_.number(command));
      for (const std::uint32_t known : {mapping::kHasFunctions, mapping::kHasFiles, mapping::kHasLines})
        proto_.integer(known, 1);
    });
    for (std::size_t i = 0; i < frames.all().size(); ++i) add_frame(static_cast<std::int64_t>(i) + 1, frames.all()[i]);
    if (begin_ns) proto_.integer(profile::kTime, *begin_ns);
    proto_.integer(profile::kDuration, duration_ns);
    proto_.integer(profile::kComment, texts_.number(fmt::format("llmprof {}", base::version())));
    proto_.integer(profile::kDefaultType, texts_.number(name_of(default_weight()).name));
    for (const std::string& text : texts_.all()) proto_.text(profile::kText, text);
    return proto_.bytes();
  }
  std::int64_t samples() const { return samples_; }

 private:
  // A message of two texts.
  void texts_message(std::uint32_t field, std::uint32_t first, std::string_view a, std::uint32_t second,
                     std::string_view b) {
    proto_.message(field, [&] {
      proto_.integer(first, texts_.number(a));
      proto_.integer(second, texts_.number(b));
    });
  }
  void label(std::string_view key, std::string_view text) {
    if (!text.empty()) texts_message(sample::kLabel, sample::kLabelKey, key, sample::kLabelText, text);
  }
  void add_frame(std::int64_t number, const Frame& frame) {
    proto_.message(profile::kLocation, [&] {
      proto_.integer(location::kId, number);
      proto_.integer(location::kMapping, 1);
      proto_.message(location::kLine, [&] {
        proto_.integer(location::kLineFunction, number);
        if (frame.line > 0) proto_.integer(location::kLineNumber, frame.line);
      });
    });
    proto_.message(profile::kFunction, [&] {
      proto_.integer(function::kId, number);
      proto_.integer(function::kName, texts_.number(frame.name));
      proto_.integer(function::kSystemName, texts_.number(frame.name));
      if (!frame.file.empty()) proto_.integer(function::kFile, texts_.number(frame.file));
    });
  }
  // What a viewer shows first: the first that there is anything of, GPU time before all.
  Weight default_weight() const {
    for (const Weight weight :
         {Weight::kGpuTime, Weight::kCpuTime, Weight::kCpuKernelTime, Weight::kAllocated, Weight::kCopied})
      if (totals_[static_cast<std::size_t>(weight)] > 0) return weight;
    return Weight::kGpuTime;
  }

  ProtoWriter proto_;
  Texts texts_;
  std::array<std::int64_t, kWeights> totals_{};
  std::int64_t samples_ = 0;
};

Result<Written> write(const Request& request) {
  Frames frames;
  Profile built;
  LLMPROF_TRY(each_stack(request, frames, [&](const StackWeight& sum) { built.add(sum); }));
  LLMPROF_LET(const std::optional<std::int64_t> wall_of_zero, wall_of_zero_ns(request.run));
  LLMPROF_LET(
      const trace::ResultTable ends,
      request.run.query("SELECT min(b), max(e) FROM (SELECT min(begin_ns) AS b, max(end_ns) AS e FROM kernel UNION "
                        "ALL SELECT min(begin_ns), max(end_ns) FROM graph_launch UNION ALL SELECT min(ts_ns), "
                        "max(ts_ns) FROM sample UNION ALL SELECT min(begin_ns), max(end_ns) FROM \"range\")"));
  const std::int64_t begin_ns = request.selection.begin_ns.value_or(ends.rows[0][0].as_int());
  const std::int64_t end_ns = request.selection.end_ns.value_or(ends.rows[0][1].as_int());
  const auto& command = request.run.info().command;
  const std::string_view bytes =
      built.finish(frames, command.empty() ? "llmprof" : command.front(),
                   wall_of_zero ? std::optional(*wall_of_zero + begin_ns) : std::nullopt, end_ns - begin_ns);
  LLMPROF_LET(OutputFile out, OutputFile::create(request.output, OutputFile::Packing::kGzip));
  out.write(bytes);
  LLMPROF_TRY(out.finish());
  return Written{{request.output}, built.samples(), {}};
}

}  // namespace
}  // namespace pprof

extern const Exporter kPprof;
const Exporter kPprof{"pprof",  "pprof profile, gzipped protobuf: go tool pprof, Parca, Pyroscope",
                      ".pb.gz", pprof::write,
                      false,    ".pprof .pprof.gz"};

}  // namespace llmprof::exporters
