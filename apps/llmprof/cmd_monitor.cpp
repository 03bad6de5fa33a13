// llmprof monitor: what the GPUs of this machine do now, or its CPU: power, clocks, memory, activity. Also the
// telemetry of a run in the same form.

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/json.h"
#include "given_names.h"
#include "live_verb.h"
#include "record/control/window_options.h"
#include "record/open_run.h"
#include "record/watch/telemetry.h"
#include "report/telemetry_lines.h"
#include "verb.h"

namespace llmprof::app {
namespace monitor_verb {
namespace {

using Kind = record::WatchEvent::Kind;
using report::TelemetryNow;

constexpr Option kOptions[] = {
    {"--csv", "", "", "", "", "Print CSV: a line per interval and device. The default where stdout is no terminal."},
    {"--json", "", "", "", "", "Print JSON lines: the devices first, then a line per interval and device."},
    {"--output", "-o", "", "FILE", "",
     "Write to a file, which must not be there yet: `.csv`, or `.json` or `.jsonl` for JSON lines."},
    {"--interval", "", "", "TIME", "1s", "Time between two lines: 100ms, 1s, 1m."},
    {"--duration", "", "", "TIME", "", "End after this time. Without it: at Ctrl-C."},
    {"--device", "", "", "N|cpu", "",
     "Only this GPU, as nvidia-smi counts them, or the CPU. Without it: all GPUs, or the CPU if there is none."},
    {"--from", "", "", "RUN", "", "Print what was read while a run was recorded, as CSV or JSON."},
    {"--costs", "", "", "", "", "At the end, say on stderr what the driver's calls took."},
};

constexpr std::int64_t kLeastIntervalNs = 10'000'000;
constexpr std::int64_t kPatienceNs = 10'000'000'000;  // a driver may take so long to wake up

struct Wanted {
  bool csv = false, json = false, costs = false;
  std::int64_t interval_ns = 0;
  std::optional<std::int64_t> duration_ns;
  bool cpu = false;
  std::optional<std::uint32_t> gpu;
};

base::Json devices_json(const TelemetryNow& now) {
  base::Json devices = base::Json::array();
  for (const TelemetryNow::Device& device : now.devices()) {
    devices.push_back({{"device", device.device.device}, {"kind", device.device.kind}, {"name", device.device.name}});
  }
  return devices;
}

class Printer {
 public:
  Printer(const Wanted& wanted, Lines& lines) : wanted_(wanted), lines_(lines) {}

  bool print(const TelemetryNow& now, double wall_s) {
    if (!now.any()) return true;
    std::string out = std::exchange(begun_, true) ? "" : head(now);
    if (wanted_.csv) return lines_.write(out + report::telemetry_csv(now, wall_s));
    if (wanted_.json) return lines_.write(out + report::telemetry_json(now, wall_s));
    const std::string table = report::telemetry_table(now);
    if (terminal_ && shown_ > 0) out += fmt::format("\033[{}A\033[J", shown_);
    shown_ = std::count(table.begin(), table.end(), '\n');
    return lines_.write(out + table);
  }

 private:
  std::string head(const TelemetryNow& now) const {
    if (wanted_.csv) return report::telemetry_csv_header(now);
    if (!wanted_.json) return "";
    base::Json head = json_head("llmprof.monitor");
    head["interval_ns"] = wanted_.interval_ns;
    head["devices"] = devices_json(now);
    return base::to_line(head) + "\n";
  }

  const Wanted& wanted_;
  Lines& lines_;
  bool begun_ = false;
  bool terminal_ = ::isatty(STDOUT_FILENO) == 1;
  std::ptrdiff_t shown_ = 0;
};

class Monitor {
 public:
  Monitor(const Wanted& wanted, Lines& lines) : wanted_(wanted), printer_(wanted, lines) {}

  Result<void> run() {
    LLMPROF_TRY(start(wanted_.cpu));
    if (now_.devices().empty() && !wanted_.cpu && !wanted_.gpu) LLMPROF_TRY(start(true));
    if (now_.devices().empty()) return nothing();
    loop();
    const bool answered = child_->ended() || child_->stop();
    receive();
    if (!answered) fmt::print(stderr, "llmprof: the driver does not answer; it was left alone\n");
    return {};
  }

 private:
  // Until the devices are known, or that there is none.
  Result<void> start(bool cpu) {
    record::TelemetryRates rates;
    rates.power_hz = rates.state_hz = 1e9 / static_cast<double>(wanted_.interval_ns);
    const record::TelemetryOpen cpu_source = []() -> Result<std::unique_ptr<hw::TelemetrySource>> {
      return hw::open_cpu_source();
    };
    LLMPROF_LET(child_, record::start_telemetry(cpu ? cpu_source : hw::open_nvml_source, rates));
    const std::uint64_t until = hw::raw_now_ns() + kPatienceNs;
    for (ready_ = false; !ready_ && !child_->ended(); receive()) {
      if (ended_by_signal != 0) return Error{ErrorCode::kInterrupted, "interrupted", ""};
      if (hw::raw_now_ns() < until) {
        wait(100'000'000);
        continue;
      }
      child_->stop();
      return Error{ErrorCode::kUnsupported, "the driver does not answer", "llmprof monitor --device cpu shows the CPU"};
    }
    return {};
  }

  Error nothing() const {
    if (wanted_.gpu && !all_.empty()) {
      return {ErrorCode::kNotFound, fmt::format("there is no GPU {}", *wanted_.gpu), "there are: " + all_};
    }
    return {ErrorCode::kNotFound, "no GPU to read" + (why_.empty() ? "" : ": " + why_), "llmprof monitor --device cpu"};
  }

  void loop() {
    const std::uint64_t begin = hw::raw_now_ns();
    const auto interval = static_cast<std::uint64_t>(wanted_.interval_ns);
    for (std::uint64_t next = begin + interval;; next += interval) {
      for (std::uint64_t now = hw::raw_now_ns(); now < next && ended_by_signal == 0; now = hw::raw_now_ns()) {
        wait(next - now);
        receive();
      }
      if (ended_by_signal != 0 || !printer_.print(now_, wall_now())) return;
      if (wanted_.duration_ns && next + interval > begin + static_cast<std::uint64_t>(*wanted_.duration_ns)) return;
      if (child_->ended()) return;
    }
  }

  void wait(std::uint64_t ns) const {
    pollfd descriptor{child_->ended() ? -1 : child_->descriptor(), POLLIN, 0};
    ::poll(&descriptor, 1, static_cast<int>(std::min<std::uint64_t>(ns / 1'000'000 + 1, 1000)));
  }

  void receive() {
    for (const record::WatchEvent& event : child_->receive()) take(event);
  }

  void take(const record::WatchEvent& event) {
    switch (event.kind) {
      case Kind::kDevice:
        all_ += fmt::format("{}{} ({})", all_.empty() ? "" : ", ", event.device, event.text);
        if (!wanted_.gpu || *wanted_.gpu == event.device)
          now_.add({event.device, event.is_gpu ? "gpu" : "cpu", event.text, event.uuid_high, event.uuid_low});
        break;
      case Kind::kReady:
        ready_ = true;
        break;
      case Kind::kReading:
        now_.take(event.reading);
        break;
      case Kind::kCost:
        if (wanted_.costs) fmt::print(stderr, "{}\n", event.text);
        break;
      case Kind::kNone:
        why_ = event.text;
        break;
      case Kind::kNote:
      case Kind::kSlowed:
        fmt::print(stderr, "llmprof: {}\n", event.text);
        break;
      case Kind::kLoss:
      case Kind::kMetric:
      case Kind::kSample:
        break;
    }
  }

  const Wanted& wanted_;
  Printer printer_;
  std::unique_ptr<record::WatchChild> child_;
  TelemetryNow now_;
  bool ready_ = false;
  std::string why_;  // there is no device
  std::string all_;  // devices
};

Result<void> print_run(const std::string& name, Wanted wanted, Lines& lines) {
  LLMPROF_LET(const trace::Run run, record::open_run(name, progress_line()));
  Printer printer(wanted, lines);
  return report::replay_telemetry(run, {wanted.gpu, {}, {}},
                                  [&](const TelemetryNow& now, double wall_s) { return printer.print(now, wall_s); });
}

Result<std::int64_t> duration_of(const Arguments& arguments, std::string_view flag) {
  auto parsed = record::parse_duration(arguments.get(flag));
  if (!parsed) parsed.error().message = fmt::format("{}: {}", flag, parsed.error().message);
  return parsed;
}

// What is not said follows from the name of the file; what no person reads is CSV.
Result<void> choose_form(const Arguments& arguments, Wanted& wanted) {
  const std::string file = arguments.get("--output");
  if (!file.empty()) {
    using Endings = std::vector<std::string_view>;
    LLMPROF_TRY(check_ending("-o", file,
                             wanted.csv    ? Endings{".csv"}
                             : wanted.json ? Endings{".json", ".jsonl"}
                                           : Endings{".csv", ".json", ".jsonl"}));
    wanted.json = wanted.json || (!wanted.csv && !file.ends_with(".csv"));
  }
  const bool table = file.empty() && !arguments.given("--from") && ::isatty(STDOUT_FILENO) == 1;
  wanted.csv = wanted.csv || (!wanted.json && !table);
  return {};
}

Result<Wanted> wanted_of(const Arguments& arguments) {
  Wanted wanted{.csv = arguments.on("--csv"), .json = arguments.on("--json"), .costs = arguments.on("--costs")};
  if (wanted.csv && wanted.json) return Error{ErrorCode::kUsage, "--csv or --json, not both", ""};
  LLMPROF_TRY(choose_form(arguments, wanted));
  LLMPROF_LET(wanted.interval_ns, duration_of(arguments, "--interval"));
  if (wanted.interval_ns < kLeastIntervalNs) {
    return Error{ErrorCode::kUsage, fmt::format("--interval {}: 10ms is the least", arguments.get("--interval")), ""};
  }
  if (arguments.given("--duration")) {
    LLMPROF_LET(wanted.duration_ns, duration_of(arguments, "--duration"));
  }
  const std::string device = arguments.get("--device");
  wanted.cpu = device == "cpu";
  if (device.empty() || wanted.cpu) return wanted;
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(device.data(), device.data() + device.size(), number);
  if (error != std::errc{} || end != device.data() + device.size()) {
    return Error{ErrorCode::kUsage, fmt::format("--device {}: neither a number nor cpu", device), ""};
  }
  wanted.gpu = number;
  return wanted;
}

Result<int> run(const Arguments& arguments) {
  LLMPROF_LET(const Wanted wanted, wanted_of(arguments));
  LLMPROF_LET(Lines lines, Lines::open(arguments.get("--output")));
  if (const std::string name = arguments.get("--from"); !name.empty()) {
    LLMPROF_TRY(print_run(name, wanted, lines));
    return 0;
  }
  end_at_signals();
  LLMPROF_TRY(Monitor(wanted, lines).run());
  return 0;
}

}  // namespace
}  // namespace monitor_verb

extern const Verb kMonitor;
const Verb kMonitor{"monitor",        "show what the GPUs, or the CPU, do now", monitor_verb::kOptions, {}, false,
                    monitor_verb::run};

}  // namespace llmprof::app
