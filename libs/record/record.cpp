#include "record/record.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <thread>

#include "base/file.h"
#include "base/json.h"
#include "base/strings.h"
#include "base/version.h"
#include "host/host_log.h"
#include "host/proc.h"
#include "hw/environment.h"
#include "hw/resolve.h"
#include "record/control/control.h"
#include "record/control/flight_recorder.h"
#include "record/launch/launch.h"
#include "record/run/capture.h"
#include "record/run/model_notes.h"
#include "trace/run.h"
#include "wire/clock.h"

namespace llmprof::record {
namespace {

std::string unused_folder(const std::string& name) {
  std::string folder = trace::run_folder(name);
  for (int i = 2; base::is_directory(folder); ++i) folder = trace::run_folder(fmt::format("{}-{}", name, i));
  return folder;
}

std::string absolute(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::absolute(path, ignored).lexically_normal().string();
}

// Cached peaks, or measured ones. Only Ctrl-C is an error: a run without peaks is still a run.
Result<std::vector<hw::Peak>> find_peaks(const hw::Device& cpu, const RecordOptions& options,
                                         const base::Progress& progress) {
  std::vector<hw::Peak> peaks = hw::cached_peaks(cpu);
  if (!options.peaks || hw::cpu_peaks_are_good(peaks)) return peaks;
  options.announce("measuring what this machine can do (once, at most 3 s; --no-peaks skips it)");
  auto measured = hw::measure_cpu_peaks(cpu, progress);
  if (!measured) {
    if (measured.error().code == ErrorCode::kInterrupted) return measured.error();
    options.announce("the peaks could not be measured: " + measured.error().message);
    return peaks;
  }
  peaks = hw::merged_peaks(peaks, *measured);
  if (const auto stored = hw::store_peaks(cpu, peaks); !stored) {
    options.announce("the peaks could not be kept for the next time: " + stored.error().message);
  }
  return peaks;
}

// What recording an event costs; unknown is no reason to stop.
std::optional<EventCost> find_event_cost(const hw::Device& cpu, const RecordOptions& options) {
  if (const auto cached = cached_event_cost(cpu); cached || !options.peaks) return cached;
  const auto measured = measure_event_cost(library_folder());
  if (!measured) return std::nullopt;
  (void)store_event_cost(cpu, *measured);  // else it is measured again
  return *measured;
}

std::int64_t own_cpu_ns() { return static_cast<std::int64_t>(wire::read_clock_ns(CLOCK_PROCESS_CPUTIME_ID)); }

void note(CaptureInfo& info, trace::Loss loss, const std::string& detail) { info.losses.push_back({loss, 1, detail}); }

Result<CaptureInfo> describe(const RecordOptions& options, const Target& target, const base::Progress& progress) {
  CaptureInfo info;
  info.llmprof_version = base::version();
  info.command = hw::redact(options.command);
  info.executable = target.path;
  info.environment = base::to_line(hw::environment_card());
  info.injectable = !target.not_injectable && options.pid == 0;
  info.cpu = hw::probe_cpu();
  LLMPROF_LET(info.peaks, find_peaks(info.cpu, options, progress));
  for (const hw::Device& gpu : hw::probe_gpus()) info.gpus.push_back({gpu, hw::known_peaks(gpu)});
  if (info.peaks.empty()) note(info, trace::Loss::kNoPeaks, options.peaks ? "" : "--no-peaks");
  if (const auto cost = find_event_cost(info.cpu, options)) {
    info.range_event_ns = cost->range_ns;
    info.gemm_event_ns = cost->gemm_ns;
  }
  info.window = describe(options.window);
  info.last_ns = options.window.last_ns;
  info.counters = asked(options.counters);
  info.parallel = options.parallel;
  info.range_rules = options.range_rules;
  if (!options.model.empty()) {
    LLMPROF_LET(trace::NotedModel model, given_model(options.model));
    info.models.push_back(std::move(model));
  }
  if (options.pid != 0) note(info, trace::Loss::kAttached, fmt::format("process {}", options.pid));
  if (target.not_injectable) note(info, trace::Loss::kNotInjected, *target.not_injectable);
  return info;
}

// The first comes when a short program is in its steady state already. Watching rests 2.5 % of the time, and only where
// there is a GPU: what a CPU does is told by the samples that would be missing. For those who want to know the whole
// cost, half of the time if they say how long a rest is, so that neighbours are near.
std::optional<trace::NotedRests> plan_rests(const RecordOptions& options, const CaptureInfo& info) {
  constexpr std::uint64_t kMs = 1'000'000;
  const RestOption& rests = options.rests;
  const bool everything = rests.of == RestOption::Of::kEverything;
  if (rests.of == RestOption::Of::kNone || !options.window.is_everything()) return std::nullopt;
  if (!everything && info.gpus.empty()) return std::nullopt;
  const std::uint64_t lasts_ns = rests.lasts_ns != 0 ? rests.lasts_ns : everything ? 200 * kMs : 60 * kMs;
  const std::uint64_t every_ns = !everything ? 40 * lasts_ns : rests.lasts_ns != 0 ? 2 * lasts_ns : 5 * lasts_ns;
  return trace::NotedRests{{static_cast<std::uint64_t>(info.begin.raw_ns) + 5000 * kMs, every_ns, lasts_ns},
                           everything};
}

// The launch itself, from the folder that is ready to the program that ended.
class Session {
 public:
  Session(const RecordOptions& options, const Target& target, std::string folder)
      : options_(options),
        target_(target),
        folder_(std::move(folder)),
        capture_(capture_folder(folder_)),
        ring_(capture_, options.window.last_ns.value_or(0), options.max_bytes),
        live_(folder_) {}
  ~Session() {
    if (dump_.joinable()) dump_.join();
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Result<Ended> run(CaptureInfo& info) {
    info.begin = read_clocks();
    info.rests = plan_rests(options_, info);
    LLMPROF_TRY(open_control(info.begin.raw_ns));
    const Injection injection = options_.pid != 0 ? Injection{} : inject(info);
    for (const std::string& line : injection.kept) note(info, trace::Loss::kExistingInjection, line);
    LLMPROF_TRY(write_capture_info(capture_, info));
    if (needs_plan(options_.counters)) LLMPROF_TRY(write_counter_plan(capture_, options_.counters));
    Watch watch;
    watch.forked = [&](pid_t) { info.root_begin_ns = read_clocks().raw_ns; };  // the last thing before its exec
    watch.started = [&](pid_t pid) {
      info.root_pid = pid;
      info.root_start_ticks = start_ticks(pid);
      (void)write_capture_info(capture_, info);  // written again at the end; a failure shows there
    };
    HostWatch host(options_.host, options_.telemetry, capture_, options_.counters,
                   info.rests ? info.rests->when : wire::Rests());
    host.attach(watch);
    Scraper scraper(options_.scrape, capture_);
    watch.poll = [&] {
      scraper.start();  // the program runs, and nothing is forked any more
      poll(host, info);
    };
    watch.ended = [&, next = std::move(watch.ended)](pid_t pid) {  // the first thing: what follows takes its time
      if (options_.pid == 0 || !is_alive(pid, info.root_start_ticks)) info.root_end_ns = read_clocks().raw_ns;
      next(pid);
    };
    watch.dump = [&] { dump_now(); };
    const std::int64_t cpu_before_ns = own_cpu_ns();
    LLMPROF_LET(const Ended ended, wait_for_program(injection, watch));
    info.end = read_clocks();
    if (options_.pid == 0) {
      info.exit_status = ended.exit_status;
    } else {
      info.window = attached_words(info);
    }
    if (control_ != nullptr) info.window = control_->summary(info.end->raw_ns) + " through a socket";
    control_.reset();
    host.finish(ended, info);
    scraper.finish(info);
    info.recorder_cpu_ns = own_cpu_ns() - cpu_before_ns;
    if (ring_.dropped() > 0) info.losses.push_back({trace::Loss::kSegmentsDropped, ring_.dropped(), ""});
    return ended;
  }

  Result<IngestTally> ingest(const CaptureInfo& info, const base::Progress& progress) {
    if (dump_.joinable()) dump_.join();  // it needs the logs
    return live_.finish(info, {.keep_capture = options_.keep_capture, .read_models = true}, progress);
  }

 private:
  Result<Ended> wait_for_program(const Injection& injection, const Watch& watch) const {
    if (options_.pid == 0)
      return launch_and_wait(
          {target_.path, options_.command, injection.environment, options_.program_output == ProgramOutput::kToStderr},
          watch);
    std::optional<std::chrono::nanoseconds> duration;
    if (options_.window.duration_ns) duration = std::chrono::nanoseconds(*options_.window.duration_ns);
    const auto pid = static_cast<pid_t>(options_.pid);
    LLMPROF_TRY(attach_and_wait(pid, duration, watch));
    return Ended{.pid = pid};
  }
  std::string attached_words(const CaptureInfo& info) const {
    const double seconds = static_cast<double>(info.end->raw_ns - info.begin.raw_ns) * 1e-9;
    return fmt::format("from outside, attached to the running process {} for {:.3g} s, {}", options_.pid, seconds,
                       info.root_end_ns ? "until it ended" : "and it went on");
  }
  Injection inject(const CaptureInfo& info) const {
    return child_environment(own_environment(),
                             {.library_folder = library_folder(),
                              .capture_folder = capture_,
                              .max_bytes = options_.max_bytes,
                              .window = window_variables(options_.window, info.begin.raw_ns),
                              .blas = options_.blas,
                              .nvtx = options_.nvtx,
                              .modules = options_.modules,
                              .requests = options_.requests,
                              .counters = needs_plan(options_.counters),
                              .rests = info.rests && info.rests->everything ? info.rests->when : wire::Rests(),
                              .collector = options_.collector});
  }
  void poll(HostWatch& host, const CaptureInfo& info) {
    host.poll();
    if (options_.window.last_ns) {
      // The log of the host side is not cut into pieces: half of the room is for it, then it ends.
      const std::string host_log = fmt::format("{}/{}", capture_, host::kHostLogName);
      if (base::file_bytes(host_log) > options_.max_bytes / 2) host.full();
      return ring_.poll(read_clocks().raw_ns);
    }
    limit_size(host);
    if (options_.ingest) live_.poll(info);
  }
  Result<void> open_control(std::int64_t begin_ns) {
    if (options_.window.control.empty()) return {};
    LLMPROF_LET(control_, Control::open({options_.window.control, capture_, options_.window.start_stopped, begin_ns,
                                         [this] { return dump_for_control(); }}));
    return {};
  }
  Result<std::string> dump_for_control() {
    if (dumping_.exchange(true)) return Error{ErrorCode::kUsage, "the dump before this one is not done yet", ""};
    const auto dumped = dump({.recording = folder_}, base::no_progress);
    dumping_ = false;
    if (!dumped) return dumped.error();
    return dumped->folder;
  }
  // On a thread of its own: the program's signals must still be passed on. One at a time.
  void dump_now() {
    if (dumping_.exchange(true)) return options_.announce("the dump before this one is not done yet");
    if (dump_.joinable()) dump_.join();
    dump_ = std::thread([this] {
      const auto dumped = dump({.recording = folder_}, base::no_progress);
      options_.announce(dumped ? "dumped to " + dumped->folder : "no dump: " + dumped.error().message);
      dumping_ = false;
    });
  }
  void limit_size(HostWatch& host) const {
    if (!is_full(capture_) && log_bytes(capture_) >= options_.max_bytes) mark_full(capture_);
    if (is_full(capture_)) host.full();
  }

  const RecordOptions& options_;
  const Target& target_;
  std::string folder_;
  std::string capture_;
  Ring ring_;
  LiveIngest live_;
  std::thread dump_;
  std::atomic<bool> dumping_{false};
  std::unique_ptr<Control> control_;  // last: it may dump
};

void ingest_now(Session& session, const CaptureInfo& info, Outcome& outcome, const base::Progress& progress) {
  auto tally = session.ingest(info, progress);
  if (tally) {
    outcome.tally = std::move(*tally);
    return;
  }
  outcome.problem = std::move(tally.error());
  outcome.problem->hint = fmt::format("the recording is kept: run `llmprof report {}` to finish", outcome.folder);
}

Outcome not_started(const Error& error) {
  Outcome outcome;
  outcome.exit_status = error.code == ErrorCode::kNotFound ? 127 : 126;
  outcome.problem = error;
  return outcome;
}

// A running process as a target: its program and command line, for the run's name and the report.
Result<Target> attached_target(RecordOptions& options) {
  const auto pid = static_cast<pid_t>(options.pid);
  const auto stat = host::read_stat(pid);
  if (!stat || stat->ended())
    return Error{ErrorCode::kUsage, fmt::format("there is no process {}", options.pid), "ps -e lists them"};
  if (const auto status = host::read_status(pid); status && status->process != pid)
    return Error{ErrorCode::kUsage, fmt::format("{} is a thread of process {}", pid, status->process),
                 fmt::format("--pid {}", status->process)};
  const std::string path = host::executable(pid);
  if (path.empty())
    return Error{ErrorCode::kUsage,
                 fmt::format("process {} may not be looked at: it is another user's, or the kernel's", pid),
                 "run llmprof as that user, or as root"};
  const std::string arguments = host::arguments(pid);
  for (const std::string_view word : base::split(arguments, '\0')) options.command.emplace_back(word);
  if (options.command.empty() || options.command.front().empty()) options.command = {path};
  options.host.running = true;
  return Target{path, {}};
}

Result<void> check_before(const RecordOptions& options) {
  if (options.pid != 0) return {};
  const bool hooks = options.modules || options.requests;
  if (const auto why = hooks ? why_no_python_hook(options.command) : std::nullopt) {
    options.announce(fmt::format("{} are not recorded: {}", options.modules ? "modules" : "requests", *why));
  }
  return check_libraries({.library_folder = library_folder(),
                          .blas = options.blas,
                          .nvtx = options.nvtx,
                          .modules = options.modules,
                          .requests = options.requests});
}

std::string output_folder(const RecordOptions& options) {
  if (!options.output.empty()) return absolute(trace::run_folder(options.output));
  return absolute(unused_folder(default_name(options.command.front(), read_clocks().wall_ns)));
}

}  // namespace

Result<Outcome> record(const RecordOptions& asked, const base::Progress& progress) {
  RecordOptions options = asked;
  if (options.command.empty() == (options.pid == 0))
    return Error{ErrorCode::kUsage, "a command to record, or --pid", "llmprof record -- COMMAND"};
  LLMPROF_TRY(check(options.window));
  LLMPROF_TRY(check(options.counters));
  const auto target = options.pid != 0
                          ? attached_target(options)
                          : find_target(options.command.front(), base::env_or("PATH", "/usr/local/bin:/usr/bin:/bin"));
  if (!target && options.pid != 0) return target.error();
  if (!target) return not_started(target.error());
  LLMPROF_TRY(check_before(options));
  Outcome outcome;
  outcome.folder = output_folder(options);
  outcome.not_injectable = target->not_injectable;
  LLMPROF_TRY(create_run_folder(outcome.folder, options.force));
  LLMPROF_LET(const CaptureLock lock, CaptureLock::take(capture_folder(outcome.folder)));

  if (options.counters.any()) options.announce("counters: " + describe(options.counters));
  auto info = describe(options, *target, progress);
  if (!info) {
    remove_run_folder(outcome.folder);
    return info.error();
  }
  Session session(options, *target, outcome.folder);
  const auto ended = session.run(*info);
  if (!ended) {
    remove_run_folder(outcome.folder);
    const ErrorCode code = ended.error().code;
    if (code == ErrorCode::kNotFound || code == ErrorCode::kPermission) return not_started(ended.error());
    return ended.error();
  }
  outcome.exit_status = ended->exit_status;
  outcome.elapsed_ns = info->end->raw_ns - info->begin.raw_ns;
  outcome.log_bytes = log_bytes(capture_folder(outcome.folder));
  if (const auto written = write_capture_info(capture_folder(outcome.folder), *info); !written) {
    outcome.problem = written.error();
  } else if (options.ingest) {
    ingest_now(session, *info, outcome, progress);
  }
  return outcome;
}

std::string default_name(const std::string& command, std::int64_t wall_ns) {
  std::string name = std::filesystem::path(command).filename().string();
  for (char& c : name) {
    const bool plain =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '_';
    if (!plain) c = '-';
  }
  if (name.empty() || name.starts_with('-') || name.starts_with('.')) name = "run" + name;
  const std::time_t seconds = wall_ns / 1'000'000'000;
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  char stamp[32];
  std::strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &parts);
  return fmt::format("{}-{}", name.substr(0, 60), stamp);
}

}  // namespace llmprof::record
