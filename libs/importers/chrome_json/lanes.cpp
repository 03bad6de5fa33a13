#include "importers/chrome_json/lanes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "base/numbers.h"
#include "base/strings.h"

namespace llmprof::importers::chrome_json {
namespace {

constexpr std::size_t kMaxProcesses = 10'000, kMaxThreads = 200'000, kMaxDevices = 4096, kMaxGroups = 10'000;
constexpr std::string_view kDeviceName = "/device:GPU:", kStreamName = "Stream #";

std::optional<std::int64_t> number_behind(std::string_view text, std::string_view front) {
  return text.starts_with(front) ? base::leading_number<std::int64_t>(text.substr(front.size())) : std::nullopt;
}

std::optional<std::int64_t> integer(const base::Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<std::int64_t>();
}

// "0 1 2" of "[0, 1, 2]"; "" if some are left out, as Kineto does with long lists, or it is something else.
std::string numbers_in(std::string_view list) {
  if (list.size() < 3 || list.front() != '[' || list.back() != ']') return "";
  std::string numbers;
  for (const char c : list.substr(1, list.size() - 2)) {
    if (c == ' ') continue;
    if (c != ',' && !base::is_digit(c)) return "";
    numbers += c == ',' ? ' ' : c;
  }
  return numbers;
}

// Times of day in microseconds: 2001 … 2096. Clocks that begin with the machine do not get there.
constexpr std::int64_t kEarliestNs = 1'000'000'000'000'000'000, kLatestNs = 4'000'000'000'000'000'000;

std::string kineto_tool(const base::Json& other) {
  std::string tool = "PyTorch profiler (Kineto)";
  if (const auto version = integer(other, "cuda_runtime_version"); version && *version > 0) {
    tool += fmt::format(", CUDA {}.{}", *version / 1000, *version % 1000 / 10);
  }
  if (const auto version = integer(other, "cupti_version")) tool += fmt::format(", CUPTI {}", *version);
  return tool;
}

}  // namespace

std::size_t Lanes::Hash::operator()(const Key& key) const {
  const std::uint64_t mixed = (static_cast<std::uint64_t>(key.value) * 2 + (key.is_text ? 1 : 0)) * 0x9E3779B97F4A7C15U;
  return static_cast<std::size_t>(mixed ^ (mixed >> 32));
}

std::size_t Lanes::Hash::operator()(const Pair& pair) const {
  const std::uint64_t mixed = (*this)(pair.pid) * 0xBF58476D1CE4E5B9U + (*this)(pair.tid);
  return static_cast<std::size_t>(mixed ^ (mixed >> 29));
}

Lanes::Key Lanes::key_of(const Lane& lane) const {
  if (lane.number != kUnknown || lane.text.empty()) return {false, lane.number == kUnknown ? 0 : lane.number};
  return {true, names_(lane.text).id};
}

std::int64_t Lanes::number_of(const Key& key) {
  if (!key.is_text) return key.value;
  return text_numbers_.try_emplace(key.value, -1 - static_cast<std::int64_t>(text_numbers_.size())).first->second;
}

Lanes::Known* Lanes::known(const Pair& pair) {
  const auto found = threads_.find(pair);
  if (found != threads_.end()) return &found->second;
  auto process = processes_.find(pair.pid);
  if (threads_.size() >= kMaxThreads || (process == processes_.end() && processes_.size() >= kMaxProcesses)) {
    return nullptr;
  }
  if (process == processes_.end()) process = processes_.emplace(pair.pid, Process{.id = sink_.new_id()}).first;
  return &threads_.emplace(pair, Known{.id = sink_.new_id(), .process = &process->second}).first->second;
}

Lanes::Thread Lanes::thread(const Lane& pid, const Lane& tid, std::int64_t begin_ns, std::int64_t end_ns) {
  const Pair pair{key_of(pid), key_of(tid)};
  if (last_ == nullptr || !(pair == last_pair_)) {
    last_ = known(pair);
    last_pair_ = pair;
  }
  if (last_ == nullptr) {
    sink_.lose(trace::Loss::kInputLimit, 1, "events of threads beyond the first 200000");
    return {};
  }
  last_->begin_ns = std::min(last_->begin_ns, begin_ns);
  last_->process->begin_ns = std::min(last_->process->begin_ns, begin_ns);
  last_->process->end_ns = std::max(last_->process->end_ns, end_ns);
  return {last_->id, last_->process->id};
}

trace::Id Lanes::device(std::int64_t ordinal) {
  const auto found = devices_.find(ordinal);
  if (found != devices_.end()) return found->second.id;
  if (devices_.size() >= kMaxDevices) {
    sink_.lose(trace::Loss::kInputLimit, 1, "events of devices beyond the first 4096");
    return 0;
  }
  const trace::Id id = devices_.emplace(ordinal, Device{sink_.new_id()}).first->second.id;
  // Before its first kernel, where the head of the file has told of it: then it may be one that another file knows.
  if (properties_.contains(ordinal)) add_device(ordinal);
  return id;
}

void Lanes::add_device(std::int64_t ordinal) {
  Device& device = devices_[ordinal];
  const auto found = properties_.find(ordinal);
  trace::DeviceRow row = found == properties_.end() ? trace::DeviceRow{} : found->second;
  row.id = device.id;
  row.kind = names_("gpu");
  row.ordinal = ordinal;
  sink_.add(row);
  device.added = true;
}

void Lanes::take_metadata(const Event& event) {
  if (event.args.name.empty()) return;  // labels and orders are for viewers
  if (event.name == "process_name" && process_names_.size() < kMaxProcesses) {
    process_names_.insert_or_assign(key_of(event.pid), names_(event.args.name));
  }
  if (event.name == "thread_name" && thread_names_.size() < kMaxThreads) {
    thread_names_.insert_or_assign(Pair{key_of(event.pid), key_of(event.tid)}, names_(event.args.name));
  }
}

void Lanes::take_device_properties(std::string_view json) {
  const auto parsed = base::parse_json(json, "deviceProperties");
  if (!parsed || !parsed->is_array()) return;
  for (const base::Json& one : *parsed) {
    if (!one.is_object() || properties_.size() >= kMaxDevices) continue;
    const auto ordinal = integer(one, "id");
    if (!ordinal) continue;
    trace::DeviceRow row;
    const auto name = one.find("name");
    if (name != one.end() && name->is_string()) row.name = names_(name->get_ref<const std::string&>());
    row.units = integer(one, "numSms").value_or(0);
    row.memory_bytes = integer(one, "totalGlobalMem").value_or(0);
    properties_.insert_or_assign(*ordinal, row);
  }
}

void Lanes::take_distributed_info(std::string_view json) {
  const auto parsed = base::parse_json(json, "distributedInfo");
  if (!parsed || !parsed->is_object()) return;
  rank_ = integer(*parsed, "rank");
  world_ = integer(*parsed, "world_size");
  const auto groups = parsed->find("pg_config");
  if (groups == parsed->end() || !groups->is_array()) return;
  for (const base::Json& one : *groups) {
    if (!one.is_object() || groups_.size() >= kMaxGroups) continue;
    const auto text = [&](const char* key) {
      const auto found = one.find(key);
      return found != one.end() && found->is_string() ? found->get<std::string>() : std::string();
    };
    const auto ranks = one.find("ranks");
    const bool listed = ranks != one.end() && ranks->is_array();
    Group group{.description = text("pg_desc"), .ranks = listed ? numbers_in(ranks->dump()) : ""};
    group.size = integer(one, "pg_size").value_or(listed ? static_cast<std::int64_t>(ranks->size()) : 0);
    if (group.size > 0) groups_.insert_or_assign(text("pg_name"), std::move(group));
  }
}

// Each collective says its group again.
void Lanes::take_group(const Arguments& args) {
  if (args.group_size == kUnknown || args.group_size < 1 || groups_.size() >= kMaxGroups) return;
  if (groups_.find(args.process_group) != groups_.end()) return;
  groups_.emplace(std::string(args.process_group), Group{.description = std::string(args.group_description),
                                                         .ranks = numbers_in(args.group_ranks),
                                                         .size = args.group_size});
}

void Lanes::finish_groups(trace::Id process_id) {
  for (const auto& [name, group] : groups_) {
    const auto optional = [&](const std::string& text) { return text.empty() ? trace::Name{} : names_(text); };
    sink_.add(trace::CommunicatorRow{.process_id = process_id,
                                     .name = optional(name),
                                     .description = optional(group.description),
                                     .size = group.size,
                                     .ranks = optional(group.ranks)});
  }
}

std::optional<std::int64_t> Lanes::device_of(const Lane& pid) const {
  const auto found = process_names_.find(key_of(pid));
  if (found == process_names_.end()) return std::nullopt;
  return number_behind(names_.text(found->second), kDeviceName);
}

std::optional<std::int64_t> Lanes::stream_of(const Lane& pid, const Lane& tid) const {
  const auto found = thread_names_.find(Pair{key_of(pid), key_of(tid)});
  if (found == thread_names_.end()) return std::nullopt;
  return number_behind(names_.text(found->second), kStreamName);
}

void Lanes::finish_threads() {
  for (const auto& [pair, known] : threads_) {
    trace::ThreadRow row;
    row.id = known.id;
    row.process_id = known.process->id;
    row.tid = number_of(pair.tid);
    const auto name = thread_names_.find(pair);
    if (name != thread_names_.end()) row.name = name->second;
    if (row.name.id == 0 && pair.tid.is_text) row.name = trace::Name{static_cast<std::uint32_t>(pair.tid.value)};
    row.begin_ns = known.begin_ns;
    sink_.add(row);
  }
}

void Lanes::finish() {
  for (const auto& [key, process] : processes_) {
    trace::ProcessRow row;
    row.id = process.id;
    row.pid = number_of(key);
    row.rank = rank_;
    row.world = world_;
    const auto name = process_names_.find(key);
    if (name != process_names_.end()) row.executable = name->second;
    if (row.executable.id == 0 && key.is_text) row.executable = trace::Name{static_cast<std::uint32_t>(key.value)};
    row.begin_ns = process.begin_ns;
    row.end_ns = process.end_ns;
    sink_.add(row);
    if (!key.is_text) finish_groups(row.id);
  }
  finish_threads();
  // Those that did something: Kineto lists all of the machine.
  for (const auto& [ordinal, device] : devices_) {
    if (!device.added) add_device(ordinal);
  }
}

void take(const Header& header, Origin& origin) {
  if (header.base_time_ns) origin.base_time_ns = header.base_time_ns;
  const auto other = base::parse_json(header.other, "header");
  if (!other || !other->is_object()) return;
  origin.kineto = origin.kineto || header.base_time_ns || !header.device_properties.empty() ||
                  !header.distributed_info.empty() || integer(*other, "schemaVersion").has_value();
  if (!origin.kineto) return;
  origin.with_stack = origin.with_stack || integer(*other, "with_stack").value_or(0) != 0;
  origin.tool = kineto_tool(*other);
}

FileClock clock_of(const Origin& origin, std::int64_t first_ns) {
  if (origin.base_time_ns) return {origin.base_time_ns, "Kineto: microseconds since baseTimeNanoseconds"};
  if (first_ns > kEarliestNs && first_ns < kLatestNs) return {0, "microseconds since 1970"};
  return {std::nullopt, "microseconds of the writer's clock"};
}

}  // namespace llmprof::importers::chrome_json
