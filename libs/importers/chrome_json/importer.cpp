// PyTorch profiler (Kineto) or Chrome trace, JSON. Events become rows: processes, threads, devices, ranges, operators,
// API calls, kernels, copies, graph launches and nodes, products and attention by their shapes, stacks, allocations;
// launches are joined to what they launched.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/strings.h"
#include "importers/chrome_json/event.h"
#include "importers/chrome_json/lanes.h"
#include "importers/chrome_json/lookup.h"
#include "importers/chrome_json/named_ranges.h"
#include "importers/chrome_json/operators.h"
#include "importers/chrome_json/reader.h"
#include "importers/chrome_json/stacks.h"
#include "importers/chrome_json/work.h"
#include "importers/cuda_calls.h"
#include "importers/importer.h"
#include "importers/sink.h"

namespace llmprof::importers {
namespace chrome_json {
namespace {

using trace::Loss;

// What complete events are, by their category.
enum class Category : std::uint8_t {
  kOther,
  kOp,
  kAnnotation,
  kGpuAnnotation,
  kPython,
  kKernel,
  kCopy,
  kCall,
  kOverhead,
  kSync,
  kSpan,
};

// As Kineto writes them now, and as PyTorch 1.8 to 1.11 did.
Category category_of(std::string_view text) {
  struct Known {
    std::string_view text;
    Category category;
  };
  using enum Category;
  static constexpr Known kKnown[] = {{"cpu_op", kOp},
                                     {"python_function", kPython},
                                     {"kernel", kKernel},
                                     {"gpu_memcpy", kCopy},
                                     {"gpu_memset", kCopy},
                                     {"user_annotation", kAnnotation},
                                     {"gpu_user_annotation", kGpuAnnotation},
                                     {"overhead", kOverhead},
                                     {"cuda_sync", kSync},
                                     {"Trace", kSpan},
                                     {"Operator", kOp},
                                     {"Kernel", kKernel},
                                     {"Memcpy", kCopy},
                                     {"Memset", kCopy},
                                     {"Runtime", kCall}};
  if (text.ends_with("_runtime") || text.ends_with("_driver")) return kCall;
  for (const Known& known : kKnown) {
    if (known.text == text) return known.category;
  }
  return kOther;
}

constexpr std::int64_t kMaxTimeNs = std::int64_t{1} << 62;
constexpr std::size_t kMaxAnnotations = 1'000'000;

class Rows : public EventTaker {
 public:
  explicit Rows(Sink& sink) : sink_(sink) {}

  void take_header(const Header& header) override {
    const bool had_base = origin_.base_time_ns.has_value();
    chrome_json::take(header, origin_);
    if (clock_set_ && !had_base && origin_.base_time_ns) {
      sink_.lose(Loss::kNoClock, 1, "baseTimeNanoseconds stands behind the events");
    }
    if (!header.device_properties.empty()) lanes_.take_device_properties(header.device_properties);
    if (!header.distributed_info.empty()) lanes_.take_distributed_info(header.distributed_info);
    if (lanes_.rank()) set_facts();
    if (origin_.with_stack) ops_.wait_for_stacks(), memory_.wait_for_stacks();
  }

  void take(const Event& event) override {
    const auto is_one_of = [&](std::string_view phases) { return base::contains(phases, {&event.phase, 1}); };
    if (event.phase == 'X') return take_complete(event);
    if (event.phase == 'M') return lanes_.take_metadata(event);
    if (is_one_of("stf")) return take_flow(event);
    if (is_one_of("iIR")) return take_instant(event);
    if (is_one_of("BEbenSF")) return take_open(event);
    if (event.phase != 'C') return ignore(event);
    if (timed(event)) take_counters(event);
  }

  Result<void> finish() {
    launches_.finish();
    ranges_.finish(last_ns_);
    ops_.finish();
    if (ops_.without_stack() > 0) {
      sink_.note(
          "stacks",
          fmt::format("the stacks of {} operators were not worked out; those of launches were", ops_.without_stack()),
          first_ns_);
    }
    memory_.finish();
    lanes_.finish();
    if (launches_.works() == 0) sink_.lose(Loss::kNoDeviceWork, 1, "no GPU events; was CUDA activity on?");
    if (origin_.kineto && !lanes_.rank()) sink_.lose(Loss::kNoRank, 1);
    if (first_ns_ != INT64_MAX) {
      if (overheads_ > 0) {
        sink_.note("overhead",
                   fmt::format("the profiler says that its own work took {:.3f} ms of the recording ({} events)",
                               overhead_ns_ * 1e-6, overheads_),
                   first_ns_);
      }
      if (launches_.works() > 0 && ops_.saw_products() && !ops_.saw_shapes()) {
        sink_.note("shapes", "record_shapes was off: sizes, FLOPs and rates of matrix products are not known",
                   first_ns_);
      }
    }
    if (!clock_set_) sink_.set_clock(clock_of(origin_, 0));
    set_facts();
    return {};
  }

  void set_facts() {
    sink_.set_facts({.tool = origin_.tool, .rank = lanes_.rank() ? std::to_string(*lanes_.rank()) : ""});
  }

 private:
  // Counter events (phase C): a name, and any number of series with their values in "args".
  void take_counters(const Event& event) {
    const auto args = base::parse_json(event.args.raw, "args");
    if (!args || !args->is_object()) return sink_.lose(Loss::kInputDamaged, 1, "counters without values");
    constexpr std::size_t kMaxSeries = 64;
    std::size_t series = 0;
    for (const auto& [key, value] : args->items()) {
      if (!value.is_number() || ++series > kMaxSeries) {
        sink_.lose(Loss::kInputIgnored, 1, "series of counters that are no numbers");
        continue;
      }
      trace::MetricRow row;
      row.id = sink_.new_id();
      row.ts_ns = event.ts_ns;
      row.name = names_(event.name);
      row.labels = names_(key);
      row.value = value.get<double>();
      row.kind = names_("gauge");
      sink_.add(row);
    }
  }

  void take_complete(const Event& event) {
    const Category category = category_of(event.category);
    if (category == Category::kSpan && event.pid.number == kUnknown) return;  // of the profiler itself
    if (!timed(event)) return;
    if (event.dur_ns == kUnknown || event.dur_ns < 0 || event.dur_ns > kMaxTimeNs - event.ts_ns)
      return sink_.lose(Loss::kBadTime, 1, "events without a duration that can be one",
                        fmt::format("byte {}", event.offset));
    const std::int64_t end_ns = event.ts_ns + event.dur_ns;
    last_ns_ = std::max(last_ns_, end_ns);
    if (category == Category::kOp) {
      if (!event.args.collective.empty()) lanes_.take_group(event.args);
      return ops_.take(event, lanes_.thread(event.pid, event.tid, event.ts_ns, end_ns).id, end_ns);
    }
    if (category == Category::kKernel)
      return launches_.executed(kernel_of(event, end_ns, lanes_, names_, sink_.new_id()), event.args.correlation);
    if (category == Category::kCopy)
      return launches_.executed(copy_of(event, end_ns, lanes_, names_, sink_.new_id()), event.args.correlation);
    if (category == Category::kPython) return take_python(event, end_ns);
    if (category == Category::kCall) return take_call(event, end_ns);
    if (category == Category::kAnnotation) return take_annotation(event, end_ns);
    if (category == Category::kGpuAnnotation) return take_gpu_annotation(event, end_ns);
    if (category == Category::kSync)
      return sink_.lose(Loss::kInputIgnored, 1, "cuda_sync: waits of streams and of the host");
    if (category != Category::kOverhead) return take_other(event, end_ns);
    ++overheads_, overhead_ns_ += static_cast<double>(event.dur_ns);
  }

  void take_flow(const Event& event) {
    // Kineto's flows say what correlations and sequence numbers say already.
    if (event.category == "ac2g" || event.category == "fwdbwd" || event.category == "async_cpu_to_gpu") return;
    sink_.lose(Loss::kInputIgnored, 1, "flows");
  }

  void take_instant(const Event& event) {
    // Where the recording began and ended stands in the times of the process.
    if (event.name.starts_with("Iteration Start: ") || event.name == "Record Window End") return;
    if (!timed(event)) return;
    if (event.name == "[memory]") {
      memory_.take(event, lanes_.thread(event.pid, event.tid, event.ts_ns, event.ts_ns));
      return;
    }
    Range mark = range_of(event, event.ts_ns);
    mark.kind = RangeKind::kMark;
    mark.category = names_(event.category);
    ranges_.add(mark);
  }

  void take_open(const Event& event) {
    if (!timed(event)) return;
    if (event.phase == 'E')
      return ranges_.end(lanes_.thread(event.pid, event.tid, event.ts_ns, event.ts_ns).id, event.ts_ns);
    const trace::Name category = names_(event.category);
    if (event.phase == 'e' || event.phase == 'F') return ranges_.end_async(event.id, category, event.ts_ns);
    Range range = range_of(event, event.ts_ns);
    range.category = category;
    if (event.phase == 'B') return ranges_.begin(range);
    range.kind = event.phase == 'n' ? RangeKind::kMark : RangeKind::kStartEnd;
    if (event.phase == 'n') return ranges_.add(range);
    ranges_.begin_async(range, event.id);
  }

  void take_call(const Event& event, std::int64_t end_ns) {
    const Lanes::Thread thread = lanes_.thread(event.pid, event.tid, event.ts_ns, end_ns);
    trace::ApiRow row;
    row.id = sink_.new_id();
    row.begin_ns = event.ts_ns;
    row.end_ns = end_ns;
    row.name = names_(event.name);
    row.thread_id = thread.id;
    if (event.args.correlation != kUnknown) row.correlation = event.args.correlation;
    if (event.args.stream >= 0) row.stream = event.args.stream;
    const CudaCall& kind = calls_.of(row.name);
    row.waits = kind.waits;
    sink_.add(row);
    using Does = CudaCall::Does;
    if (kind.does == Does::kBeginsCapture) graphs_.begin_capture(thread.id);
    if (kind.does == Does::kEndsCapture) graphs_.end_capture(thread.id);
    const bool launches = kind.does == Does::kLaunches || kind.does == Does::kLaunchesGraph;
    if (!launches && !launches_.waits_for(event.args.correlation)) return;
    const Launch launch{{thread.id, event.ts_ns, end_ns, stacks_.at(thread.id, event.ts_ns).value_or(0)},
                        kind.does == CudaCall::Does::kLaunchesGraph};
    if (graphs_.capturing() && kind.does == Does::kLaunches && !launches_.waits_for(event.args.correlation)) {
      graphs_.call_while_capturing(launch, kind.work, event.args.external_id);
    }
    launches_.called(launch, event.args.correlation);
  }

  void take_annotation(const Event& event, std::int64_t end_ns) {
    annotations_.insert(event.args.external_id, 1);
    ranges_.add(range_of(event, end_ns));
  }

  // The time on the device of a range of the host: kernels say it themselves. Only where the host's is missing it is
  // one.
  void take_gpu_annotation(const Event& event, std::int64_t end_ns) {
    if (annotations_.find(event.args.external_id) != nullptr) return;
    Range range;
    range.begin_ns = event.ts_ns;
    range.end_ns = end_ns;
    range.name = names_(event.name);
    range.kind = RangeKind::kStartEnd;
    range.on_gpu = true;
    ranges_.add(range);
  }

  void take_python(const Event& event, std::int64_t end_ns) {
    const Lanes::Thread thread = lanes_.thread(event.pid, event.tid, event.ts_ns, end_ns);
    if (!event.name.starts_with(Modules::kFront)) return stacks_.add(thread.id, event.ts_ns, end_ns, event.name);
    Range range;
    range.begin_ns = event.ts_ns;
    range.end_ns = end_ns;
    range.thread = thread;
    ranges_.add_module(range, event.name);
  }

  void take_other(const Event& event, std::int64_t end_ns) {
    if (take_xla(event, end_ns)) return;
    Range range = range_of(event, end_ns);
    range.category = names_(event.category);
    ranges_.add(range);
    const std::int64_t correlation = integer_in(event.args.raw, "correlation_id\"");
    if (correlation == kUnknown) return;
    launches_.called({{range.thread.id, event.ts_ns, end_ns, 0}, false}, correlation);
  }

  // Devices are processes in traces of XLA, and their streams threads. Its other threads there show the same time
  // again.
  bool take_xla(const Event& event, std::int64_t end_ns) {
    const auto device = lanes_.device_of(event.pid);
    const auto stream = device ? lanes_.stream_of(event.pid, event.tid) : std::nullopt;
    if (!device || !stream) return false;
    origin_.tool = "XLA profiler (JAX, TensorFlow), Chrome trace";
    Event known = event;
    known.args.device = *device;
    known.args.stream = *stream;
    known.args.graph_id = known.args.graph_node_id = kUnknown;
    Work work = event.name.starts_with("Memcpy") || event.name.starts_with("Memset")
                    ? copy_of(known, end_ns, lanes_, names_, sink_.new_id())
                    : kernel_of(known, end_ns, lanes_, names_, sink_.new_id());
    take_xla_details(event.args.raw, work);
    launches_.executed(std::move(work), integer_in(event.args.raw, "correlation_id\""));
    return true;
  }

  void ignore(const Event& event) {
    if (event.name.empty() && event.ts_ns == kUnknown) return;  // XLA ends its files with an empty one
    const std::string phase = event.phase >= ' ' && event.phase < 127 ? std::string(1, event.phase) : "?";
    sink_.lose(Loss::kInputIgnored, 1, "events of phases that a run has no table for: " + phase);
  }

  // Whether it has a time that can be one. The clock is told before the first row that has one.
  bool timed(const Event& event) {
    const bool zero = origin_.kineto && event.ts_ns == 0;  // CUPTI had lost it
    if (event.ts_ns == kUnknown || event.ts_ns < 0 || event.ts_ns > kMaxTimeNs || zero) {
      sink_.lose(Loss::kBadTime, 1, "events without a time that can be one", fmt::format("byte {}", event.offset));
      return false;
    }
    if (!clock_set_) {
      clock_set_ = true;
      sink_.set_clock(clock_of(origin_, event.ts_ns));
    }
    first_ns_ = std::min(first_ns_, event.ts_ns);
    last_ns_ = std::max(last_ns_, event.ts_ns);
    return true;
  }

  Range range_of(const Event& event, std::int64_t end_ns) {
    Range range;
    range.begin_ns = event.ts_ns;
    range.end_ns = end_ns;
    range.thread = lanes_.thread(event.pid, event.tid, event.ts_ns, end_ns);
    range.name = names_(event.name);
    return range;
  }

  Sink& sink_;
  Origin origin_;
  Names names_{sink_};
  Lanes lanes_{sink_, names_};
  Stacks stacks_{sink_, names_};
  Ops ops_{sink_, names_, stacks_};
  Graphs graphs_{sink_, names_, ops_};
  Launches launches_{sink_, ops_, graphs_};
  Ranges ranges_{sink_, names_};
  Memory memory_{sink_, names_, lanes_, stacks_};
  CudaCalls calls_{sink_};
  IdMap<char> annotations_{kMaxAnnotations};
  bool clock_set_ = false;
  std::int64_t first_ns_ = INT64_MAX, last_ns_ = INT64_MIN;
  std::int64_t overheads_ = 0;
  double overhead_ns_ = 0;  // a sum of what a damaged file says
};

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF", kBlanks = " \t\r\n";

bool has(std::string_view head, std::string_view part) { return base::contains(head, part); }

// Wide text that would be a trace if it were UTF-8: the reader says so.
bool is_wide(std::string_view head) {
  return head.starts_with("\xFF\xFE") || head.starts_with("\xFE\xFF") ||
         (head.size() > 3 &&
          (head.substr(0, 2) == std::string_view("{\0", 2) || head.substr(0, 2) == std::string_view("\0{", 2)));
}

int sniff(std::string_view head) {
  if (is_wide(head)) return has(head, std::string_view("t\0r\0a\0c\0e\0E", 11)) ? 60 : 0;
  if (head.starts_with(kByteOrderMark)) head.remove_prefix(kByteOrderMark.size());
  const std::size_t first = head.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return 0;
  head.remove_prefix(first);
  const bool event = has(head, "\"ph\"") && (has(head, "\"ts\"") || has(head, "\"name\""));
  if (head.front() == '{') {
    if (has(head, "\"traceEvents\"")) return 95;
    if (has(head, "\"baseTimeNanoseconds\"") || has(head, "\"deviceProperties\"")) return 90;
    return event ? 40 : 0;  // events one after the other, without brackets
  }
  return head.front() == '[' && event ? 85 : 0;
}

Result<void> parse(Input& input, Sink& sink) {
  Rows rows(sink);
  LLMPROF_TRY(read_events(input, sink, rows));
  return rows.finish();
}

}  // namespace
}  // namespace chrome_json

extern const Importer kKineto;
const Importer kKineto{"kineto", "PyTorch profiler (Kineto) or Chrome trace, JSON", Role::kTrace, chrome_json::sniff,
                       chrome_json::parse};

}  // namespace llmprof::importers
