#include "host/stacks/stack_sampler.h"

#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>

#include "host/proc.h"
#include "host/stacks/address_space.h"
#include "host/stacks/module.h"
#include "host/stacks/perf.h"
#include "host/stacks/python.h"
#include "host/stacks/symbols.h"
#include "host/stacks/thinning.h"
#include "host/stacks/unwinder.h"
#include "wire/clock.h"

namespace llmprof::host {
namespace {

// Bounds for hour-long recordings of programs that never repeat themselves: about 100 MB.
constexpr std::size_t kMaxDistinctFrames = 262144, kMaxStacks = 1 << 20;

// Frames and stacks that were seen, numbered and written to the log at their first use. Stacks share their outer parts.
class StackTable {
 public:
  StackTable(HostLog& log, bool remember) : log_(log), remember_(remember) {}

  const SeenFrame* seen(std::uint32_t frame) const { return &seen_[frame - 1]; }  // if it is to remember

  std::uint32_t native(const Module& module, const NativeFunction& function) {
    const auto known = native_.find(&function);
    if (known != native_.end()) return known->second;
    return native_[&function] = define(wire::FrameKind::kNative, function.name, module.path(), 0);
  }

  std::uint32_t python(const PythonFrame& frame) {
    key_.assign(frame.function).append(1, '\0').append(frame.file).append(1, '\0').append(std::to_string(frame.line));
    const auto known = by_text_.find(key_);
    if (known != by_text_.end()) return known->second;
    return by_text_[key_] = define(wire::FrameKind::kPython, frame.function, frame.file, frame.line);
  }

  std::uint32_t kernel(const KernelSymbols::Function& function, std::uint64_t begin) {
    const auto known = kernel_.find(begin);
    if (known != kernel_.end()) return known->second;
    return kernel_[begin] = define(wire::FrameKind::kKernel, function.name, function.module, 0);
  }

  // A function that a JIT compiler named.
  std::uint32_t compiled(std::string_view name) {
    key_.assign("JIT").append(1, '\0').append(name);
    const auto known = by_text_.find(key_);
    if (known != by_text_.end()) return known->second;
    return by_text_[key_] = define(wire::FrameKind::kNative, name, "[JIT]", 0);
  }

  std::uint32_t other(wire::FrameKind kind, std::string_view name) {
    const auto known = by_text_.find(name);
    if (known != by_text_.end()) return known->second;
    return by_text_[std::string(name)] = define(kind, name, "", 0);
  }

  // Frames innermost first. 0 for an empty stack, or when there are too many different ones.
  std::uint32_t stack(std::span<const std::uint32_t> frames) {
    std::uint32_t parent = 0;
    for (std::size_t i = frames.size(); i-- > 0;) {
      if (frames[i] == 0) return 0;
      const std::uint64_t key = std::uint64_t{parent} << 32 | frames[i];
      const auto known = stacks_.find(key);
      if (known != stacks_.end()) {
        parent = known->second;
        continue;
      }
      if (stacks_.size() >= kMaxStacks) return 0;
      const auto id = static_cast<std::uint32_t>(stacks_.size() + 1);
      log_.add(wire::RecordKind::kStack).stack = {id, parent, frames[i]};
      parent = stacks_[key] = id;
    }
    return parent;
  }

 private:
  std::uint32_t define(wire::FrameKind kind, std::string_view function, std::string_view file, std::uint32_t line) {
    if (frames_ >= kMaxDistinctFrames) return 0;
    log_.add(wire::RecordKind::kFrame).frame = {++frames_, log_.name(function), log_.name(file), line, kind, 0};
    if (remember_) seen_.push_back({std::string(function), std::string(file), kind});
    return frames_;
  }

  HostLog& log_;
  bool remember_;
  std::deque<SeenFrame> seen_;  // by number less 1
  std::unordered_map<const NativeFunction*, std::uint32_t> native_;
  std::unordered_map<std::uint64_t, std::uint32_t> kernel_;  // by the function's begin
  std::map<std::string, std::uint32_t, std::less<>> by_text_;
  std::string key_;
  std::unordered_map<std::uint64_t, std::uint32_t> stacks_;  // parent and frame
  std::uint32_t frames_ = 0;
};

constexpr std::size_t kTailEvidence = 512;   // bytes of the copy that must still be there when its tail is read
constexpr std::size_t kMaxProcesses = 4096;  // known at once; ended ones leave

struct Process {
  Process(pid_t pid, ModuleCache& modules) : space(pid, modules), compiled(pid) {}
  AddressSpace space;
  PerfMap compiled;
  std::unique_ptr<PythonProcess> python;  // once its interpreter loop was seen on a stack
  bool python_read = false;               // its frames could be read at least once
};

// The cores are the program's; on a machine with many, a little more than of one hurts nobody.
double share_of(const StackOptions& options) {
  return std::max(options.cpu_share, options.share_per_cpu * static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN)));
}

// Names of kernel functions, read by a thread of its own: that takes some 50 ms of CPU time, more than the rings could
// wait for. Samples before that have the one frame [kernel].
class KernelNames {
 public:
  KernelNames() = default;
  KernelNames(const KernelNames&) = delete;
  KernelNames& operator=(const KernelNames&) = delete;
  ~KernelNames() {
    if (reader_.joinable()) reader_.join();
  }

  void begin() {
    try {
      reader_ = std::thread([this] {
        symbols_ = KernelSymbols::read();
        ready_.store(true, std::memory_order_release);
      });
    } catch (const std::system_error&) {  // too many threads: functions stay without names
    }
  }
  const KernelSymbols* get() const { return ready_.load(std::memory_order_acquire) ? &symbols_ : nullptr; }

 private:
  KernelSymbols symbols_{""};
  std::atomic<bool> ready_{false};
  std::thread reader_;
};

void note_failure(const Process& process, StackStats& stats) {
  if (process.python == nullptr || process.python_read) return;
  ++stats.python_processes_failed;
  if (!process.python->why().empty()) stats.python_why = process.python->why();
}

class PerfStackSampler final : public StackSampler {
 public:
  PerfStackSampler(PerfEvents events, const StackOptions& options, HostLog& log)
      : events_(std::move(events)),
        options_(options),
        log_(log),
        table_(log, options.seen != nullptr),
        thinning_(share_of(options)) {}

  std::vector<int> descriptors() const override { return events_.descriptors(); }
  StackStats stats() const override {
    StackStats stats = stats_;
    stats.left_out = thinning_.left_out();
    if (!events_.sees_kernel()) {
      stats.kernel_why = "time inside the kernel has no samples: kernel.perf_event_paranoid forbids it";
    } else if (kernel_nameless_) {
      stats.kernel_why = "kernel functions have no names: kernel.kptr_restrict hides the addresses of /proc/kallsyms";
    }
    for (const auto& [pid, process] : processes_) note_failure(process, stats);
    return stats;
  }

  void drain() override {
    constexpr std::uint64_t kReviewNs = 500'000'000;
    const std::uint64_t begin_cpu_ns = wire::read_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    events_.read([this](const PerfRecord& record) { take(record); });
    cpu_ns_ += wire::read_clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_cpu_ns;
    const std::uint64_t now_ns = wire::now_ns();
    if (since_ns_ != 0 && now_ns - since_ns_ < kReviewNs) return;
    // Not by the first half second: tables of libraries are read then.
    if (reviews_++ >= 2) thinning_.spent(cpu_ns_, now_ns - since_ns_);
    constexpr double kManyPerSecond = 600;
    // A stack is copied with its sample; only Python's frames have to be read before they change.
    const bool python = std::any_of(processes_.begin(), processes_.end(),
                                    [](const auto& process) { return process.second.python != nullptr; });
    const bool many = static_cast<double>(seen_) * 1e9 > kManyPerSecond * static_cast<double>(now_ns - since_ns_);
    may_gather_ = std::chrono::milliseconds(many ? 4 : python ? 0 : 20);
    since_ns_ = now_ns;
    cpu_ns_ = 0;
    seen_ = 0;
  }

  void rest(bool rests) override { events_.rest(rests); }
  std::chrono::milliseconds may_gather() const override { return may_gather_; }

 private:
  Process& process(std::uint32_t pid) {
    const auto known = processes_.find(pid);
    if (known != processes_.end()) return known->second;
    if (processes_.size() >= kMaxProcesses) end(processes_.begin()->first);
    return processes_.try_emplace(pid, static_cast<pid_t>(pid), modules_).first->second;
  }

  void take(const PerfRecord& record) {
    if (const auto* sample = std::get_if<PerfSample>(&record.content)) {
      add_sample(record, *sample);
    } else if (const auto* mapping = std::get_if<PerfMapping>(&record.content)) {
      process(record.pid).space.add(mapping->mapping);
    } else if (const auto* fork = std::get_if<PerfFork>(&record.content)) {
      if (fork->parent_pid == record.pid) return;  // a thread
      const auto parent = processes_.find(fork->parent_pid);
      if (parent != processes_.end()) {
        const AddressSpace& space = parent->second.space;  // process() may let go of it
        AddressSpace copy = space;
        process(record.pid).space.inherit(copy);
      }
    } else if (std::holds_alternative<PerfExec>(record.content)) {
      end(record.pid);
    } else if (const auto* exit = std::get_if<PerfExit>(&record.content)) {
      if (exit->process) end(record.pid);
    } else if (const auto* lost = std::get_if<PerfLost>(&record.content)) {
      stats_.lost += lost->records;
    }
  }

  void add_sample(const PerfRecord& record, const PerfSample& sample) {
    ++seen_;
    const std::uint32_t stands_for = thinning_.take(record.pid == record.tid);
    if (stands_for == 0) return;
    Process& of = process(record.pid);
    if (of.python != nullptr) of.python->begin_sample();
    ++stats_.samples;
    wire::SampleRecord out = {.ts_ns = record.ts_ns,
                              .weight_ns = sample.period_ns * stands_for,
                              .pid = record.pid,
                              .tid = record.tid,
                              .stack = 0,
                              .truncated = 1};
    if (sample.registers.has(kRip)) {
      const std::uint64_t begin = sample.registers.value[kRsp];
      const std::size_t copied = sample.stack.size(), wanted = std::max<std::size_t>(copied, options_.stack_bytes);
      StackTail tail(of.space.pid(), begin + copied, wanted - copied,
                     sample.stack.last(std::min(copied, kTailEvidence)));
      const StackMemory stack(begin, sample.stack, &tail);
      unwind(sample.registers, stack, of.space, record.ts_ns, native_);
      name_kernel(sample);
      name_frames(of, stack, record.ts_ns);
      out.stack = table_.stack(frames_);
      out.truncated = native_.truncated ? 1 : 0;
    }
    stats_.truncated += out.truncated;
    if (options_.seen && out.stack != 0) show(out);
    log_.add(wire::RecordKind::kSample).sample = out;
  }

  void show(const wire::SampleRecord& sample) {
    shown_.clear();
    for (const std::uint32_t frame : frames_) shown_.push_back(table_.seen(frame));
    options_.seen({sample.pid, sample.tid, sample.weight_ns, shown_});
  }

  // Begins the stack with what the kernel was doing for the program.
  void name_kernel(const PerfSample& sample) {
    constexpr std::size_t kMostFrames = 64;
    frames_.clear();
    if (!sample.in_kernel) return;
    constexpr std::uint64_t kWorthNames = 5;  // of many programs nothing but their start is in the kernel
    if (++kernel_samples_ == kWorthNames) kernel_names_.begin();
    const KernelSymbols* symbols = kernel_names_.get();
    for (std::size_t at = 0;
         symbols != nullptr && at + sizeof(std::uint64_t) <= sample.chain.size() && frames_.size() < kMostFrames;
         at += sizeof(std::uint64_t)) {
      std::uint64_t address = 0, begin = 0;
      std::memcpy(&address, sample.chain.data() + at, sizeof address);
      if (is_context_marker(address)) continue;
      // All but the innermost are return addresses, which may lie behind the end of their function.
      const auto* function = symbols->containing(frames_.empty() ? address : address - 1, begin);
      if (function != nullptr) frames_.push_back(table_.kernel(*function, begin));
    }
    if (!frames_.empty()) return;
    kernel_nameless_ = kernel_nameless_ || (symbols != nullptr && !symbols->known());
    frames_.push_back(table_.other(wire::FrameKind::kKernel, "[kernel]"));
  }

  // A function of anonymous memory: named by its compiler, or not at all. `python`: its frames were just read.
  void name_compiled(Process& process, std::uint64_t address, std::uint64_t now_ns, bool python) {
    const std::string* name = process.compiled.containing(address, now_ns);
    PerfMapPython written;
    if (name == nullptr) {
      frames_.push_back(table_.other(wire::FrameKind::kUnknown, "[unknown]"));
    } else if (!parse_python_symbol(*name, written)) {
      frames_.push_back(table_.compiled(*name));
    } else if (!python) {  // else it stands there already, with its line
      frames_.push_back(table_.python({std::string(written.function), std::string(written.file), 0}));
    }
  }

  void name_frames(Process& process, const StackMemory& stack, std::uint64_t now_ns) {
    bool python = false;
    std::size_t loops = 0, read = 0;
    for (std::size_t i = 0; i < native_.frames.size(); ++i) {
      const AddressSpace::Place& place = native_.frames[i].place;
      if (place.module == nullptr) {
        name_compiled(process, native_.frames[i].pc, now_ns, std::exchange(python, false));
        continue;
      }
      python = false;
      const NativeFunction& function = place.module->function(place.address);
      if (options_.python && function.python_loop) {
        ++loops;
        const PythonProcess::Answer answer = add_python(process, i, stack);
        using Answer = PythonProcess::Answer;
        if (answer == Answer::kFrames || answer == Answer::kNone) ++read;
        python = answer == Answer::kFrames;
        if (python) continue;  // else the loop stands for the frames that are not known
      }
      frames_.push_back(table_.native(*place.module, function));
    }
    if (read > 0) process.python_read = true;
    if (loops > 0) ++(read == loops ? stats_.python_samples : stats_.python_failed);
  }

  // Adds the Python frames of one call of the interpreter loop, if they are known for certain.
  PythonProcess::Answer add_python(Process& process, std::size_t index, const StackMemory& stack) {
    if (process.python == nullptr) {
      process.python = std::make_unique<PythonProcess>(process.space.pid(), native_.frames[index].place);
    }
    python_.clear();
    if (!process.python->why().empty()) return PythonProcess::Answer::kMovedOn;
    const PythonProcess::Answer answer = process.python->frames_of(native_.frames, index, stack, python_);
    for (const PythonFrame& frame : python_) frames_.push_back(table_.python(frame));
    return answer;
  }

  void end(std::uint32_t pid) {
    const auto known = processes_.find(pid);
    if (known == processes_.end()) return;
    note_failure(known->second, stats_);
    processes_.erase(known);
  }

  PerfEvents events_;
  StackOptions options_;
  HostLog& log_;
  ModuleCache modules_;
  StackTable table_;
  std::map<std::uint32_t, Process> processes_;
  NativeStack native_;                   // reused
  std::vector<std::uint32_t> frames_;    // reused
  std::vector<PythonFrame> python_;      // reused
  std::vector<const SeenFrame*> shown_;  // reused
  StackStats stats_;
  KernelNames kernel_names_;
  std::uint64_t kernel_samples_ = 0;
  bool kernel_nameless_ = false;  // their names are hidden from us
  Thinning thinning_;
  std::uint64_t cpu_ns_ = 0;    // spent since then
  std::uint64_t since_ns_ = 0;  // 0: not begun
  std::uint64_t reviews_ = 0;
  std::uint64_t seen_ = 0;  // samples since then, also those left out
  std::chrono::milliseconds may_gather_{0};
};

}  // namespace

Result<std::unique_ptr<StackSampler>> StackSampler::open(pid_t root, const StackOptions& options, HostLog& log) {
  PerfOptions perf{options.hz, options.stack_bytes, {}};
  if (options.running) {
    for (const pid_t pid : ProcessTree(root, "").look()) {
      const std::vector<pid_t> own = threads(pid);
      perf.threads.insert(perf.threads.end(), own.begin(), own.end());
    }
    if (perf.threads.empty()) return Error{ErrorCode::kNotFound, "the process has ended", ""};
  }
  LLMPROF_LET(PerfEvents events, PerfEvents::open(root, perf));
  return std::unique_ptr<StackSampler>(std::make_unique<PerfStackSampler>(std::move(events), options, log));
}

}  // namespace llmprof::host
