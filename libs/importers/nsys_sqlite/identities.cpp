#include "importers/nsys_sqlite/identities.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/kernel_name.h"

namespace llmprof::importers::nsys {
namespace {

std::string_view without_version(std::string_view function) {
  const std::size_t digits = function.find_last_not_of("0123456789");
  if (digits == std::string_view::npos || digits + 1 == function.size() || digits < 2) return function;
  const bool versioned = function[digits] == 'v' && function[digits - 1] == '_';
  return versioned ? function.substr(0, digits - 1) : function;
}

constexpr int kPidShift = 24;
constexpr std::int64_t kIdMask = (1 << kPidShift) - 1;
constexpr std::size_t kMost = UINT16_MAX;
constexpr std::size_t kMostNames = 1 << 20;

constexpr std::size_t kMostDevices = 4096;

trace::DeviceRow to_row(Rows& rows, Sink& sink, const std::string& driver) {
  const auto name_of = [&](int column) { return sink.name_or_null(rows.text(column).value_or("")); };
  trace::DeviceRow row;
  row.id = sink.new_id();
  row.kind = sink.name("gpu");
  row.name = name_of(1);
  row.chip = name_of(2);
  row.units = rows.integer_or(3, 0);
  row.memory_bytes = rows.integer_or(4, 0);
  row.cache_bytes = rows.integer_or(5, 0);
  if (const auto hertz = rows.integer(6); hertz && *hertz > 0) row.clock_mhz = static_cast<double>(*hertz) / 1e6;
  row.driver = sink.name_or_null(driver);
  if (const auto uuid = rows.text(7); uuid && !uuid->empty())
    row.uuid = sink.name(uuid->starts_with("GPU-") ? std::string(*uuid) : "GPU-" + std::string(*uuid));
  row.ordinal = rows.integer(0);
  return row;
}

}  // namespace

std::string Strings::text(std::int64_t number) {
  auto text = database_.text_of(table_, "id", number, "value");
  if (text) return std::move(*text);
  database_.sink().lose(trace::Loss::kLostName, 1, "texts that table StringIds does not hold",
                        fmt::format("number {}", number));
  return fmt::format("<missing name {}>", number);
}

trace::Name Strings::name(std::int64_t number) {
  return names_.get(number, [&] { return database_.sink().name(text(number)); });
}

bool Strings::is(std::int64_t number, std::string_view text) {
  return number >= 0 && database_.sink().names().text(name(number)) == text;
}

trace::Name Strings::runtime_function(std::int64_t number) {
  return functions_.get(number, [&] { return database_.sink().name(without_version(text(number))); });
}

trace::Name Strings::kernel(std::optional<std::int64_t> mangled, std::optional<std::int64_t> demangled,
                            std::optional<std::int64_t> short_name) {
  if (mangled) return mangled_.get(*mangled, [&] { return database_.sink().name(base::kernel_name(text(*mangled))); });
  if (!demangled) return short_name ? name(*short_name) : database_.sink().name("<unnamed>");
  return demangled_.get(*demangled, [&] {
    const std::string whole = text(*demangled);
    const std::string_view bare = base::without_signature(whole);
    return database_.sink().name(bare.empty() ? std::string_view(whole) : bare);
  });
}

Actors::Index Actors::process(std::optional<std::int64_t> global) {
  if (!global) {
    if (processes_.size() == 1) return process(0);
    return 1;
  }
  const std::int64_t key = *global >> kPidShift;
  if (key == last_process_ && last_process_index_ != 0) return last_process_index_;
  auto [found, is_new] = process_index_.try_emplace(key, Index{0});
  if (is_new) {
    if (processes_.size() > kMost) {
      process_index_.erase(found);
      database_.sink().lose(trace::Loss::kInputLimit, 1, "processes beyond 65535");
      return 0;
    }
    found->second = static_cast<Index>(processes_.size());
    processes_.push_back({database_.sink().new_id(), key & kIdMask, 0, 0, false});
  }
  last_process_ = key;
  return last_process_index_ = found->second;
}

Actors::Index Actors::thread(std::int64_t global, std::int64_t begin_ns, std::int64_t end_ns) {
  Index index = last_thread_index_;
  if (global != last_thread_ || index == 0) {
    auto [found, is_new] = thread_index_.try_emplace(global, Index{0});
    if (is_new && threads_.size() > kMost) {
      thread_index_.erase(found);
      database_.sink().lose(trace::Loss::kInputLimit, 1, "threads beyond 65535");
      return 0;
    }
    if (is_new) {
      found->second = static_cast<Index>(threads_.size());
      threads_.push_back({database_.sink().new_id(), global & kIdMask, process(global), begin_ns});
    }
    last_thread_ = global;
    index = last_thread_index_ = found->second;
  }
  Thread& thread = threads_[index];
  thread.first_ns = std::min(thread.first_ns, begin_ns);
  saw(thread.process, begin_ns, end_ns);
  return index;
}

void Actors::saw(Index index, std::int64_t begin_ns, std::int64_t end_ns) {
  Process& process = processes_[index];
  process.first_ns = process.timed ? std::min(process.first_ns, begin_ns) : begin_ns;
  process.last_ns = process.timed ? std::max(process.last_ns, end_ns) : end_ns;
  process.timed = true;
}

Result<std::map<std::int64_t, trace::Name>> Actors::process_names() {
  std::map<std::int64_t, trace::Name> names;
  LLMPROF_TRY(database_.each("PROCESSES", {"globalPid", "name"}, 0, [&](Rows& rows) {
    const auto global = rows.integer(0);
    if (!global || !process_index_.contains(*global >> kPidShift)) return;
    if (const auto name = rows.text(1)) names[*global >> kPidShift] = database_.sink().name(*name);
  }));
  return names;
}

// A thread may have several names; that of the highest priority counts.
Result<std::unordered_map<std::int64_t, trace::Name>> Actors::thread_names() {
  std::unordered_map<std::int64_t, trace::Name> names;
  std::unordered_map<std::int64_t, std::int64_t> priorities;
  LLMPROF_TRY(database_.each("ThreadNames", {"nameId", "priority", "globalTid"}, 0, [&](Rows& rows) {
    const auto global = rows.integer(2), name = rows.integer(0);
    const std::int64_t priority = rows.integer_or(1, 0);
    if (!global || !name || names.size() > kMostNames || !thread_index_.contains(*global)) return;
    auto [known, is_new] = priorities.try_emplace(*global, priority);
    if (!is_new && known->second > priority) return;
    known->second = priority;
    names[*global] = strings_.name(*name);
  }));
  return names;
}

Result<void> Actors::write(const Host& host) {
  Sink& sink = database_.sink();
  LLMPROF_LET(const auto names_of_processes, process_names());
  LLMPROF_LET(const auto names_of_threads, thread_names());
  for (const auto& [key, index] : process_index_) {
    const Process& process = processes_[index];
    trace::ProcessRow row;
    row.id = process.id;
    row.pid = process.pid;
    if (!host.name.empty()) row.host = sink.name(host.name);
    row.rank = host.rank;
    const auto name = names_of_processes.find(key);
    if (name != names_of_processes.end()) row.executable = name->second;
    if (process_index_.size() == 1 && !host.arguments.empty()) row.arguments = sink.name(host.arguments);
    row.begin_ns = process.first_ns;
    sink.add(row);
  }
  for (const auto& [global, index] : thread_index_) {
    const Thread& thread = threads_[index];
    const auto name = names_of_threads.find(global);
    sink.add(trace::ThreadRow{thread.id, process_id(thread.process), thread.tid,
                              name == names_of_threads.end() ? trace::Name{} : name->second, thread.first_ns,
                              std::nullopt});
  }
  return {};
}

Result<void> Devices::read(const std::string& driver) {
  LLMPROF_TRY(database_.each(
      "TARGET_INFO_GPU",
      {"id", "name", "chipName", "smCount", "totalMemory", "l2CacheSize", "clockRate", "uuid", "cuDevice"}, 0,
      [&](Rows& gpus) {
        const auto gpu = gpus.integer(0);
        if (!gpu || by_gpu_.size() >= kMostDevices || by_gpu_.contains(*gpu)) return;
        const trace::DeviceRow row = to_row(gpus, database_.sink(), driver);
        by_gpu_[*gpu] = row.id;
        if (const auto ordinal = gpus.integer(8)) gpu_of_ordinal_.try_emplace(*ordinal, *gpu);
        database_.sink().add(row);
      }));
  return database_.each("TARGET_INFO_CUDA_DEVICE", {"gpuId", "cudaId", "pid"}, 0, [&](Rows& pairs) {
    const auto gpu = pairs.integer(0), ordinal = pairs.integer(1), pid = pairs.integer(2);
    if (gpu && ordinal && pid && gpu_of_cuda_.size() < kMostDevices) gpu_of_cuda_[{*pid, *ordinal}] = *gpu;
  });
}

trace::Id Devices::of_cuda(std::int64_t pid, std::int64_t cuda_ordinal) {
  if (pid == last_pid_ && cuda_ordinal == last_ordinal_) return last_id_;
  last_pid_ = pid;
  last_ordinal_ = cuda_ordinal;
  const auto known = gpu_of_cuda_.find({pid, cuda_ordinal});
  if (known != gpu_of_cuda_.end()) return last_id_ = of_gpu(known->second);
  const auto guessed = gpu_of_ordinal_.find(cuda_ordinal);
  return last_id_ = of_gpu(guessed != gpu_of_ordinal_.end() ? guessed->second : cuda_ordinal);
}

trace::Id Devices::of_gpu(std::int64_t gpu) {
  const auto found = by_gpu_.find(gpu);
  return found != by_gpu_.end() ? found->second : add_unknown(gpu);
}

trace::Id Devices::add_unknown(std::int64_t gpu) {
  Sink& sink = database_.sink();
  if (by_gpu_.size() >= kMostDevices) {
    sink.lose(trace::Loss::kInputLimit, 1, "devices beyond 4096");
    return by_gpu_.begin()->second;
  }
  trace::DeviceRow row;
  row.id = sink.new_id();
  row.kind = sink.name("gpu");
  row.name = sink.name(fmt::format("GPU {}", gpu));
  row.ordinal = gpu;
  sink.add(row);
  return by_gpu_[gpu] = row.id;
}

}  // namespace llmprof::importers::nsys
