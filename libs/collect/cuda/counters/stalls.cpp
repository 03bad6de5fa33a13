#include "collect/cuda/counters/stalls.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "collect/cuda/counters/profiler_library.h"
#include "collect/cuda/gpu.h"
#include "collect/lifecycle.h"
#include "collect/names.h"
#include "collect/os.h"

namespace llmprof::collect::counters {

namespace {

constexpr char kPrefix[] = "smsp__pcsamp_warps_issue_stalled_";
constexpr char kTwin[] = "_not_issued";

}  // namespace

ReasonName read_reason(const char* name) {
  constexpr std::size_t kPrefixLength = sizeof(kPrefix) - 1, kTwinLength = sizeof(kTwin) - 1;
  if (strncmp(name, kPrefix, kPrefixLength) == 0 && name[kPrefixLength] != '\0') name += kPrefixLength;
  const std::size_t length = strlen(name);
  const bool twin = length > kTwinLength && strcmp(name + length - kTwinLength, kTwin) == 0;
  return {name, twin ? length - kTwinLength : length, twin};
}

bool StallReasons::add(std::uint32_t index, const char* name) {
  if (numbers_count_ == kMost) return false;
  const ReasonName read = read_reason(name);
  const std::size_t length = read.length < kNameBytes ? read.length : kNameBytes - 1;
  std::size_t reason = 0;
  while (reason < count_ && (strncmp(names_[reason], read.text, length) != 0 || names_[reason][length] != '\0'))
    ++reason;
  if (reason == count_) {  // at most one a number: there is room
    memcpy(names_[reason], read.text, length);
    ++count_;
  }
  numbers_[numbers_count_++] = {index, static_cast<std::uint16_t>(reason), read.not_issued};
  return true;
}

const StallReasons::Number* StallReasons::find(std::uint32_t index) const {
  // CUPTI numbers them one after the other, so the first look is nearly always right.
  if (index < numbers_count_ && numbers_[index].index == index) return &numbers_[index];
  for (std::size_t i = 0; i < numbers_count_; ++i) {
    if (numbers_[i].index == index) return &numbers_[i];
  }
  return nullptr;
}

bool StallReasons::sort(const pc::Reason* reasons, std::size_t count, Samples* samples) const {
  memset(samples, 0, sizeof(*samples));
  for (std::size_t i = 0; i < count; ++i) {
    const Number* number = find(reasons[i].index);
    if (number == nullptr) {
      samples->unknown += reasons[i].samples;
    } else {
      (number->not_issued ? samples->not_issued : samples->issued)[number->reason] += reasons[i].samples;
    }
  }
  bool contained = true;
  for (std::size_t i = 0; i < count_; ++i) {
    const std::uint64_t all = samples->issued[i], part = samples->not_issued[i];
    contained = contained && part <= all;
    samples->issued[i] = part <= all ? all - part : 0;
  }
  return contained;
}

namespace {

// Offsets are multiples of 16 and reasons few: all bits must count.
std::uint64_t mix(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

std::uint64_t hash(const StallKey& key) {
  const std::uint64_t reason = std::uint64_t{key.reason} << 1 | (key.issued ? 1 : 0);
  return mix(mix(key.cubin ^ key.pc_offset << 20) ^ (std::uint64_t{key.function} << 24 | reason));
}

}  // namespace

bool StallTable::add(const StallKey& key, std::uint64_t samples) {
  if (samples == 0) return true;
  for (std::size_t at = hash(key) % kEntries;; at = (at + 1) % kEntries) {
    Entry& entry = entries_[at];
    if (!entry.used) {
      if (used_ == kMostUsed) return false;
      entry.key = key;
      entry.used = true;
      ++used_;
    } else if (entry.key != key) {
      continue;
    }
    if (entry.samples == 0) ++pending_;
    entry.samples += samples;
    entry.total += samples;
    return true;
  }
}

namespace {

bool lies_within(std::uint64_t offset, std::uint64_t size, std::size_t bytes) {
  return offset <= bytes && size <= bytes - offset;
}

// A copy: nothing says that the bytes are aligned.
bool read_section(const char* cubin, std::size_t bytes, const Elf64_Ehdr& header, std::size_t index, Elf64_Shdr* out) {
  const std::uint64_t offset = header.e_shoff + index * sizeof(Elf64_Shdr);
  if (header.e_shoff > bytes || !lies_within(offset, sizeof(*out), bytes)) return false;
  memcpy(out, cubin + offset, sizeof(*out));
  return true;
}

std::uint64_t slot_of(const StallKey& place) {
  std::uint64_t hash = place.cubin ^ place.pc_offset * 0x9e3779b97f4a7c15u ^ std::uint64_t{place.function} << 40;
  hash ^= hash >> 29;
  return hash * 0x9e3779b97f4a7c15u >> 32;
}

wire::StringId join(const char* folder, const char* file) {
  char path[1024];
  if (folder == nullptr || *folder == '\0' || *file == '/') return intern(file);
  snprintf(path, sizeof(path), "%s/%s", folder, file);
  return intern(path);
}

}  // namespace

bool has_lines(const char* cubin, std::size_t bytes) {
  Elf64_Ehdr header;
  Elf64_Shdr names, section;
  if (cubin == nullptr || bytes < sizeof(header)) return false;
  memcpy(&header, cubin, sizeof(header));
  if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64) return false;
  if (header.e_shentsize != sizeof(Elf64_Shdr)) return false;
  if (!read_section(cubin, bytes, header, header.e_shstrndx, &names)) return false;
  if (!lies_within(names.sh_offset, names.sh_size, bytes)) return false;
  constexpr char kLines[] = ".debug_line";
  for (std::size_t i = 0; i < header.e_shnum && read_section(cubin, bytes, header, i, &section); ++i) {
    if (!lies_within(section.sh_name, sizeof(kLines), names.sh_size)) continue;
    if (memcmp(cubin + names.sh_offset + section.sh_name, kLines, sizeof(kLines)) == 0) return true;
  }
  return false;
}

void StallSources::keep(const pc::Module& code) {
  if (!has_lines(code.cubin, code.bytes)) return;
  const KeepErrno keep;
  if (reserved_bytes_.fetch_add(code.bytes, std::memory_order_relaxed) + code.bytes > kMostBytes) {
    reserved_bytes_.fetch_sub(code.bytes, std::memory_order_relaxed);
    return;
  }
  const std::size_t index = reserved_.fetch_add(1, std::memory_order_relaxed);
  if (index >= kMostModules) return;
  void* memory = map_memory(code.bytes);
  if (memory == nullptr) return;
  memcpy(memory, code.cubin, code.bytes);
  modules_[index].bytes = code.bytes;
  modules_[index].cubin.store(static_cast<const char*>(memory), std::memory_order_release);
}

const StallSources::Module* StallSources::find(std::uint64_t checksum) {
  const std::size_t reserved = reserved_.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < reserved && i < kMostModules; ++i) {
    Module& code = modules_[i];
    const char* const cubin = code.cubin.load(std::memory_order_acquire);
    if (cubin == nullptr) continue;
    if (!code.has_checksum) {
      pc::ChecksumParams params = {sizeof(params), code.bytes, cubin, 0};
      code.has_checksum = true;
      if (library_->checksum(&params) == 0) code.checksum = params.checksum;
    }
    if (code.checksum == checksum) return &code;
  }
  return nullptr;
}

Source StallSources::ask(const Module& code, const StallKey& place) {
  const Shared* shared = shared_memory();
  if (shared == nullptr) return {};
  pc::SourceParams params{};
  params.size = sizeof(params);
  params.cubin = code.cubin.load(std::memory_order_relaxed);
  params.function = shared->strings.text(place.function);
  params.cubin_bytes = code.bytes;
  params.offset = place.pc_offset;
  Source source{};
  if (library_->source_of(&params) == 0 && params.file != nullptr && params.line != 0)
    source = {join(params.folder, params.file), params.line};
  free(params.file);
  free(params.folder);
  return source;
}

Source StallSources::of(const StallKey& place) {
  if (reserved_.load(std::memory_order_relaxed) == 0 || place.cubin == 0 || library_ == nullptr) return {};
  if (library_->source_of == nullptr || library_->checksum == nullptr) return {};
  const Module* code = find(place.cubin);
  if (code == nullptr) return {};
  std::size_t at = slot_of(place) % kKnown;
  for (; known_[at].used; at = (at + 1) % kKnown) {
    const Known& known = known_[at];
    if (known.cubin == place.cubin && known.pc_offset == place.pc_offset && known.function == place.function)
      return known.source;
  }
  if (questions_ == 0 || known_count_ == kKnown / 8 * 7) return {};
  --questions_;
  ++known_count_;
  known_[at] = {place.cubin, place.pc_offset, place.function, ask(*code, place), true};
  return known_[at].source;
}

namespace {

using wire::ProfilerCall;

constexpr std::uint32_t kOutOfMemory = 8;  // of the device's buffer: what there is comes all the same

// A buffer as CUPTI wants it: places, and room for all reasons at each. Null: no memory.
pc::Data* map_data(std::size_t places, std::size_t reasons) {
  const std::size_t bytes = sizeof(pc::Data) + places * (sizeof(pc::Place) + reasons * sizeof(pc::Reason));
  auto* data = static_cast<pc::Data*>(map_memory(bytes));
  if (data == nullptr) return nullptr;
  data->size = sizeof(pc::Data);
  data->capacity = places;
  data->places = reinterpret_cast<pc::Place*>(data + 1);
  auto* room = reinterpret_cast<pc::Reason*>(data->places + places);
  for (std::size_t i = 0; i < places; ++i, room += reasons) {
    data->places[i].size = sizeof(pc::Place);
    data->places[i].reason_count = reasons;
    data->places[i].reasons = room;
  }
  return data;
}

pc::Attribute attribute(pc::AttributeType type, std::uint32_t number) {
  pc::Attribute attribute{};
  attribute.type = type;
  attribute.value.number = number;
  return attribute;
}

}  // namespace

bool PcSampler::load() {
  const char* missing = nullptr;
#define LLMPROF_PC_LOAD(member, call, needed, params)                                                            \
  library_.member =                                                                                              \
      reinterpret_cast<decltype(library_.member)>(dlsym(gpu.library.handle, wire::name_of(ProfilerCall::call))); \
  if ((needed) && library_.member == nullptr) missing = wire::name_of(ProfilerCall::call);
  LLMPROF_PC_FUNCTIONS(LLMPROF_PC_LOAD)
#undef LLMPROF_PC_LOAD
  if (missing == nullptr) return true;
  count_loss_about(wire::LossKind::kCountersFailed, 1, static_cast<std::uint64_t>(ProfilerCall::kSamplingLoad) << 32);
  note("counters", "reasons of stalls cannot be read: CUPTI lacks %s.", missing);
  return false;
}

bool PcSampler::read_reasons() {
  std::size_t count = 0;
  pc::CountReasonsParams counted = {sizeof(counted), nullptr, context_, &count};
  if (!cupti::succeeded(ProfilerCall::kCountReasons, library_.count_reasons(&counted))) return false;
  if (count > StallReasons::kMost) count = StallReasons::kMost;
  static char names[StallReasons::kMost][pc::kReasonNameBytes];  // by one thread, once
  static char* pointers[StallReasons::kMost];
  for (std::size_t i = 0; i < count; ++i) pointers[i] = names[i];
  pc::GetReasonsParams params = {sizeof(params), nullptr, context_, count, indexes_, pointers};
  if (!cupti::succeeded(ProfilerCall::kGetReasons, library_.get_reasons(&params))) return false;
  for (std::size_t i = 0; i < count; ++i) {
    names[i][pc::kReasonNameBytes - 1] = '\0';
    reasons_.add(indexes_[i], names[i]);
  }
  index_count_ = count;
  return true;
}

bool PcSampler::map_buffers() {
  kept_ = map_data(kMostPlaces, index_count_);
  read_ = map_data(kMostPlaces, index_count_);
  if (kept_ != nullptr && read_ != nullptr) return true;
  return cupti::succeeded(ProfilerCall::kSamplingMemory, errno != 0 ? static_cast<std::uint32_t>(errno) : ENOMEM);
}

std::uint32_t PcSampler::configure_with(std::uint32_t exponent) {
  pc::Attribute attributes[] = {
      attribute(pc::kCollectionMode, pc::kContinuous),
      attribute(pc::kStartStopControl, 1),
      attribute(pc::kDataFormat, pc::kParsed),
      attribute(pc::kDataBuffer, 0),
      attribute(pc::kStallReasons, 0),
      attribute(pc::kSamplingPeriod, exponent),
  };
  attributes[3].value.buffer = kept_;
  attributes[4].value.reasons = {index_count_, indexes_};
  constexpr std::size_t kAll = sizeof(attributes) / sizeof(attributes[0]);
  pc::ConfigureParams params = {sizeof(params), nullptr, context_, exponent != 0 ? kAll : kAll - 1, attributes};
  return library_.configure(&params);
}

// A period that is refused leaves CUPTI's own.
bool PcSampler::configure() {
  period_exponent_ = kPeriodExponent;
  if (configure_with(kPeriodExponent) == cupti::kSuccess) return true;
  period_exponent_ = 0;
  return cupti::succeeded(ProfilerCall::kSamplingConfigure, configure_with(0));
}

bool PcSampler::start(void* context) {
  context_ = context;
  if (!load()) return false;
  pc::ContextParams params = {sizeof(params), nullptr, context_};
  if (!cupti::succeeded(ProfilerCall::kSamplingEnable, library_.enable(&params))) return false;
  // In this order: the reasons are known once it is enabled.
  if (read_reasons() && map_buffers() && configure() &&
      cupti::succeeded(ProfilerCall::kSamplingStart, library_.start(&params)))
    return true;
  library_.disable(&params);
  return false;
}

bool PcSampler::fetch(Fetched* fetched) {
  for (std::size_t i = 0; i < filled_; ++i) read_->places[i].reason_count = index_count_;  // it is the room, when asked
  read_->total_samples = read_->dropped_samples = read_->unknown_samples = 0;
  read_->count = read_->remaining = 0;
  read_->buffer_full = 0;
  pc::GetDataParams params = {sizeof(params), nullptr, context_, read_};
  const std::uint32_t result = library_.get_data(&params);
  if (result != kOutOfMemory && !cupti::succeeded(ProfilerCall::kSamplingGetData, result)) return false;
  filled_ = read_->count < kMostPlaces ? read_->count : kMostPlaces;
  *fetched = {read_->places,
              filled_,
              read_->total_samples,
              read_->dropped_samples,
              read_->unknown_samples,
              result == kOutOfMemory || read_->buffer_full != 0,
              filled_ > 0 && read_->remaining > 0};
  for (std::size_t i = 0; i < filled_; ++i) {
    pc::Place& place = read_->places[i];
    if (place.reason_count > index_count_) place.reason_count = index_count_;
  }
  return true;
}

bool PcSampler::stop() {
  pc::ContextParams params = {sizeof(params), nullptr, context_};
  return cupti::succeeded(ProfilerCall::kSamplingStop, library_.stop(&params));
}

}  // namespace llmprof::collect::counters
