// llmprof top: what running programs do now: CPU, memory, functions, what their threads wait for, memory on GPUs.

#include <fmt/format.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/human.h"
#include "base/json.h"
#include "base/text_table.h"
#include "host/live.h"
#include "live_verb.h"
#include "record/control/window_options.h"
#include "record/watch/telemetry.h"
#include "report/telemetry_lines.h"
#include "report_verb.h"
#include "verb.h"

namespace llmprof::app {
namespace top_verb {
namespace {

using base::Align;
using base::Json;

constexpr Option kOptions[] = {
    {"--pid", "", "", "PID", "",
     "This process and its children, with the functions they are in and what their threads wait for. Without it: the "
     "processes of this user (of root: all) that use a CPU or a GPU."},
    {"--interval", "", "", "TIME", "1s", "Time between two refreshes: 500ms, 1s, 10s."},
    {"--count", "", "", "N", "", "End after so many. Without it: at `q` or Ctrl-C, or with the process."},
    {"--top", "", "", "N", "10", "Rows of each table."},
    {"--sample-hz", "", "LLMPROF_SAMPLE_HZ", "N", "99", "Stack samples per second of CPU time of a thread."},
    {"--json", "", "", "", "", "Print JSON lines: one per interval, after a head."},
};

constexpr std::int64_t kLeastIntervalNs = 100'000'000;

struct Wanted {
  std::optional<pid_t> pid;
  std::int64_t interval_ns = 0;
  std::optional<std::int64_t> count;
  std::size_t top = 10;
  std::uint32_t sample_hz = 99;
  bool json = false;
};

// Keys come one by one while this lives; only on a terminal.
class Keys {
 public:
  Keys() {
    if (::isatty(STDIN_FILENO) == 0 || ::isatty(STDOUT_FILENO) == 0 || ::tcgetattr(STDIN_FILENO, &found_) != 0) return;
    termios now = found_;
    now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    on_ = ::tcsetattr(STDIN_FILENO, TCSANOW, &now) == 0;
  }
  ~Keys() {
    if (on_) ::tcsetattr(STDIN_FILENO, TCSANOW, &found_);
  }
  Keys(const Keys&) = delete;
  Keys& operator=(const Keys&) = delete;

  bool quit() const {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    char key = 0;
    if (!on_ || ::poll(&input, 1, 0) <= 0 || ::read(STDIN_FILENO, &key, 1) != 1) return false;
    return key == 'q' || key == 'Q';
  }

 private:
  termios found_{};
  bool on_ = false;
};

// The GPUs, read by a child as `monitor` does; a machine without one has none.
class Gpus {
 public:
  Gpus() {
    record::TelemetryRates rates;
    rates.power_hz = rates.state_hz = 1;
    if (auto child = record::start_telemetry(hw::open_nvml_source, rates)) child_ = std::move(*child);
  }
  ~Gpus() {
    if (child_ && !child_->ended()) child_->stop();
  }
  Gpus(const Gpus&) = delete;
  Gpus& operator=(const Gpus&) = delete;

  const report::TelemetryNow& read() {
    using Kind = record::WatchEvent::Kind;
    if (!child_) return now_;
    for (const record::WatchEvent& event : child_->receive()) {
      if (event.kind == Kind::kDevice)
        now_.add({event.device, event.is_gpu ? "gpu" : "cpu", event.text, event.uuid_high, event.uuid_low});
      if (event.kind == Kind::kReading) now_.take(event.reading);
    }
    return now_;
  }

 private:
  std::unique_ptr<record::WatchChild> child_;
  report::TelemetryNow now_;
};

// Memory of these processes on one GPU; nothing if they have none there.
std::optional<double> memory_on(const report::TelemetryNow::Device& gpu, const std::vector<host::LiveProcess>& of) {
  std::optional<double> sum;
  for (const host::LiveProcess& process : of) {
    const auto found = gpu.process_memory.find(static_cast<std::uint32_t>(process.pid));
    if (found != gpu.process_memory.end()) sum = sum.value_or(0) + found->second;
  }
  return sum;
}

double share(std::uint64_t part, std::uint64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}
std::string percent(double fraction) { return fmt::format("{:.1f}", fraction * 100); }
std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }
std::uint64_t sum_of(const std::array<std::uint64_t, host::kThreadStates>& states) {
  std::uint64_t all = 0;
  for (const std::uint64_t ns : states) all += ns;
  return all;
}
std::string_view kind_word(wire::FrameKind kind) {
  constexpr std::string_view kWords[] = {"native", "python", "kernel", "unknown"};
  return kWords[static_cast<std::size_t>(kind)];
}

std::string process_table(const std::vector<host::LiveProcess>& processes, const report::TelemetryNow& gpus,
                          std::uint64_t ns, std::size_t top) {
  const bool gpu = !gpus.devices().empty();
  std::vector<base::TextTable::Column> columns{{"pid"},     {"CPU %"},  {"sys %"},
                                               {"threads"}, {"memory"}, {"command", Align::kLeft, true}};
  if (gpu) columns.insert(columns.begin() + 5, {"GPU memory"});
  base::TextTable table(columns);
  for (const host::LiveProcess& process : processes) {
    double on_gpu = 0;
    for (const auto& device : gpus.devices()) on_gpu += memory_on(device, {process}).value_or(0);
    if (process.cpu_ns() == 0 && on_gpu == 0 && processes.size() > 1) continue;
    if (table.rows() == top) break;
    const std::string& command = process.arguments.empty() ? process.name : process.arguments;
    std::vector<std::string> cells{std::to_string(process.pid),
                                   percent(share(process.cpu_ns(), ns)),
                                   percent(share(process.system_ns, process.cpu_ns())),
                                   std::to_string(process.threads),
                                   base::human_bytes(static_cast<double>(process.rss_bytes)),
                                   base::printable(command.substr(0, 200))};
    if (gpu) cells.insert(cells.begin() + 5, on_gpu > 0 ? base::human_bytes(on_gpu) : "-");
    table.add(cells);
  }
  return table.rows() == 0 ? "  no process used a CPU or a GPU\n" : table.render();
}

std::string function_table(const std::string& title, const std::vector<host::LiveFunction>& functions,
                           std::uint64_t sampled_ns, std::size_t top) {
  base::TextTable table(
      {{title, Align::kLeft, true}, {"in", Align::kLeft, true}, {"kind", Align::kLeft}, {"self %"}, {"total %"}});
  for (const host::LiveFunction& function : functions) {
    if (table.rows() == top) break;
    table.add({base::printable(function.name), base::printable(file_name(function.file)),
               std::string(kind_word(function.kind)), percent(share(function.self_ns, sampled_ns)),
               percent(share(function.total_ns, sampled_ns))});
  }
  return table.rows() == 0 ? "" : "\n" + table.render();
}

std::string state_table(const host::LiveInterval& now) {
  struct Row {
    std::size_t state;
    double all, main;
  };
  std::vector<Row> rows;
  for (std::size_t i = 0; i < host::kThreadStates; ++i) {
    const Row row{i, share(now.states[i], sum_of(now.states)), share(now.main_states[i], sum_of(now.main_states))};
    if (row.all >= 0.001 || row.main >= 0.001) rows.push_back(row);
  }
  if (rows.empty()) return "";
  std::ranges::stable_sort(rows, std::greater{}, &Row::main);
  base::TextTable table({{"threads are in", Align::kLeft}, {"main %"}, {"all %"}});
  for (const Row& row : rows) table.add({host::kThreadStateNames[row.state], percent(row.main), percent(row.all)});
  return "\n" + table.render();
}

std::string gpu_lines(const report::TelemetryNow& gpus, const std::vector<host::LiveProcess>& processes) {
  std::string out;
  for (const auto& device : gpus.devices()) {
    const auto memory = memory_on(device, processes);
    const auto busy = device.value(hw::MetricId::kGpuUtilization);
    out += fmt::format("  GPU {} {}: {} of this program{}\n", device.device.device, base::printable(device.device.name),
                       memory ? base::human_bytes(*memory) : "nothing",
                       busy ? fmt::format("; busy {:.0f} % (all programs)", *busy) : "");
  }
  return out;
}

std::string clock_text() {
  const std::time_t now = ::time(nullptr);
  std::tm parts{};
  ::localtime_r(&now, &parts);
  char text[16];
  std::strftime(text, sizeof text, "%H:%M:%S", &parts);
  return text;
}

Json processes_json(const std::vector<host::LiveProcess>& processes, const report::TelemetryNow& gpus,
                    std::uint64_t ns) {
  Json out = Json::array();
  for (const host::LiveProcess& process : processes) {
    Json memory = Json::array();
    for (const auto& device : gpus.devices()) {
      if (const auto bytes = memory_on(device, {process}))
        memory.push_back({{"device", device.device.device}, {"bytes", *bytes}});
    }
    out.push_back({{"pid", process.pid},
                   {"name", process.name},
                   {"cpu_share", share(process.cpu_ns(), ns)},
                   {"system_share", share(process.system_ns, ns)},
                   {"threads", process.threads},
                   {"rss_bytes", process.rss_bytes},
                   {"gpu_memory", std::move(memory)}});
  }
  return out;
}

Json functions_json(const std::vector<host::LiveFunction>& functions, std::uint64_t sampled_ns, std::size_t top) {
  Json out = Json::array();
  for (const host::LiveFunction& function : functions) {
    if (out.size() == top) break;
    out.push_back({{"name", base::printable(function.name)},
                   {"file", base::printable(function.file)},
                   {"kind", kind_word(function.kind)},
                   {"self_share", share(function.self_ns, sampled_ns)},
                   {"total_share", share(function.total_ns, sampled_ns)}});
  }
  return out;
}

class Screen {
 public:
  Screen(const Wanted& wanted, Lines& lines) : wanted_(wanted), lines_(lines) {}

  bool print(const std::string& text) {
    return lines_.write(terminal_ ? "\033[H\033[J" + text + "\n  q or Ctrl-C ends.\n" : text + "\n");
  }
  bool print(Json json) {
    if (!std::exchange(begun_, true)) {
      Json head = json_head("llmprof.top");
      head["interval_ns"] = wanted_.interval_ns;
      head["pid"] = wanted_.pid ? Json(*wanted_.pid) : Json(nullptr);
      if (!lines_.write(base::to_line(head) + "\n")) return false;
    }
    json["ts"] = wall_now();
    return lines_.write(base::to_line(json) + "\n");
  }

 private:
  const Wanted& wanted_;
  Lines& lines_;
  bool begun_ = false;
  bool terminal_ = ::isatty(STDOUT_FILENO) == 1;
};

Json program_json(const host::LiveProgram& program, const host::LiveInterval& now, const report::TelemetryNow& gpus,
                  std::size_t top) {
  Json states = Json::object(), main = Json::object();
  for (std::size_t i = 0; i < host::kThreadStates; ++i) {
    states[host::kThreadStateNames[i]] = share(now.states[i], sum_of(now.states));
    main[host::kThreadStateNames[i]] = share(now.main_states[i], sum_of(now.main_states));
  }
  return {{"interval_ns", now.ns},
          {"processes", processes_json(now.processes, gpus, now.ns)},
          {"sampled_ns", now.sampled_ns},
          {"functions", functions_json(now.functions, now.sampled_ns, top)},
          {"python_functions", functions_json(now.python_functions, now.sampled_ns, top)},
          {"thread_states", std::move(states)},
          {"main_thread_states", std::move(main)},
          {"no_stacks", program.no_stacks().empty() ? Json(nullptr) : Json(program.no_stacks())},
          {"limits", program.limits().empty() ? Json(nullptr) : Json(program.limits())}};
}

std::string program_text(const host::LiveProgram& program, const host::LiveInterval& now,
                         const report::TelemetryNow& gpus, const Wanted& wanted) {
  std::string out =
      fmt::format("{}  process {} over {}\n", clock_text(), *wanted.pid, base::human_ns(static_cast<double>(now.ns)));
  out += process_table(now.processes, gpus, now.ns, wanted.top) + gpu_lines(gpus, now.processes);
  out += function_table("Python function", now.python_functions, now.sampled_ns, wanted.top);
  out += function_table("function", now.functions, now.sampled_ns, wanted.top) + state_table(now);
  out +=
      "\n  CPU %: of one core. self %, total %: of the CPU time sampled. main %, all %: of the time of the main "
      "thread, of all "
      "threads.\n";
  if (!program.no_stacks().empty()) out += fmt::format("  No functions: {}.\n", program.no_stacks());
  if (const std::string limits = program.limits(); !limits.empty()) out += fmt::format("  Not seen: {}.\n", limits);
  return out + "  Seen from outside: kernels, ranges and shapes are not.\n";
}

Result<void> show_program(const Wanted& wanted, Screen& screen) {
  LLMPROF_LET(const auto program, host::LiveProgram::open(*wanted.pid, wanted.sample_hz));
  Gpus gpus;
  const Keys keys;
  bool quit = false;
  const auto stop = [&] { return ended_by_signal != 0 || quit || (quit = keys.quit()); };
  for (std::int64_t shown = 0; !wanted.count || shown < *wanted.count; ++shown) {
    const host::LiveInterval now = program->watch(static_cast<std::uint64_t>(wanted.interval_ns), stop);
    if (stop() || (now.ended && now.processes.empty() && now.sampled_ns == 0)) break;
    const report::TelemetryNow& devices = gpus.read();
    const bool read = wanted.json ? screen.print(program_json(*program, now, devices, wanted.top))
                                  : screen.print(program_text(*program, now, devices, wanted));
    if (!read || now.ended) break;
  }
  return {};
}

void wait_for(std::int64_t ns, const std::function<bool()>& stop) {
  constexpr std::int64_t kSliceNs = 50'000'000;
  for (; ns > 0 && !stop(); ns -= kSliceNs) ::usleep(static_cast<useconds_t>(std::min(ns, kSliceNs) / 1000));
}

Result<void> show_all(const Wanted& wanted, Screen& screen) {
  host::LiveProcesses processes;
  Gpus gpus;
  const Keys keys;
  bool quit = false;
  const std::function<bool()> stop = [&] { return ended_by_signal != 0 || quit || (quit = keys.quit()); };
  (void)processes.read(host::own_processes());
  std::uint64_t before = hw::raw_now_ns();
  for (std::int64_t shown = 0; !wanted.count || shown < *wanted.count; ++shown) {
    wait_for(wanted.interval_ns, stop);
    if (stop()) break;
    std::vector<host::LiveProcess> now = processes.read(host::own_processes());
    const std::uint64_t at = hw::raw_now_ns(), ns = at - std::exchange(before, at);
    const report::TelemetryNow& devices = gpus.read();
    const bool read =
        wanted.json
            ? screen.print(Json{{"interval_ns", ns}, {"processes", processes_json(now, devices, ns)}})
            : screen.print(fmt::format("{}  processes over {}\n{}  CPU %: of one core. llmprof top --pid PID: its "
                                       "functions and waits.\n",
                                       clock_text(), base::human_ns(static_cast<double>(ns)),
                                       process_table(now, devices, ns, wanted.top)));
    if (!read) break;
  }
  return {};
}

Result<Wanted> wanted_of(const Arguments& arguments) {
  Wanted wanted{.json = arguments.on("--json")};
  if (!arguments.get("--pid").empty()) {
    LLMPROF_LET(wanted.pid, number_in<pid_t>(arguments, "--pid", "a process id", 1));
  }
  if (!arguments.get("--count").empty()) {
    LLMPROF_LET(wanted.count, number_in<std::int64_t>(arguments, "--count", "a number of refreshes", 1));
  }
  LLMPROF_LET(wanted.top, top_in(arguments));
  LLMPROF_LET(wanted.sample_hz,
              number_in<std::uint32_t>(arguments, "--sample-hz", "a number from 1 to 10000", 1, 10'000));
  LLMPROF_LET(wanted.interval_ns, record::parse_duration(arguments.get("--interval")));
  if (wanted.interval_ns < kLeastIntervalNs)
    return Error{ErrorCode::kUsage, fmt::format("--interval {}: 100ms is the least", arguments.get("--interval")), ""};
  return wanted;
}

Result<int> run(const Arguments& arguments) {
  LLMPROF_LET(const Wanted wanted, wanted_of(arguments));
  LLMPROF_LET(Lines lines, Lines::open(""));
  end_at_signals();
  Screen screen(wanted, lines);
  LLMPROF_TRY(wanted.pid ? show_program(wanted, screen) : show_all(wanted, screen));
  return 0;
}

}  // namespace
}  // namespace top_verb

extern const Verb kTop;
const Verb kTop{"top", "show what running programs do now", top_verb::kOptions, {}, false, top_verb::run};

}  // namespace llmprof::app
