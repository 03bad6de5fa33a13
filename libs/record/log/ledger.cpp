#include "record/log/ledger.h"

#include <fmt/format.h>

#include <cstring>
#include <string_view>

#include "trace/run_writer.h"
#include "wire/cupti_calls.h"

namespace llmprof::record {

namespace {

constexpr std::size_t kMaxRows = 100'000;  // a hostile log cannot fill memory with details
constexpr std::int64_t kWholeRun = -1;

// A log may claim any loss: sums stop at the largest number instead of wrapping.
void add_up(std::int64_t& total, std::int64_t count) {
  if (__builtin_add_overflow(total, count, &total)) total = INT64_MAX;
}

}  // namespace

void Ledger::add(trace::Loss loss, std::int64_t count, trace::OptionalId process_id, const std::string& detail) {
  if (count <= 0) return;
  const Key key{loss, process_id.value_or(kWholeRun), counts_.size() < kMaxRows ? detail : ""};
  add_up(counts_[key], count);
}

std::vector<LossTotal> Ledger::write(trace::RunWriter& writer, trace::Id& next_id) const {
  std::vector<LossTotal> totals;
  trace::Strings& strings = writer.strings();
  const auto optional_text = [&](std::string_view text) { return text.empty() ? trace::Name{} : strings.intern(text); };
  for (const auto& [key, count] : counts_) {
    const auto& [loss, process, detail] = key;
    const trace::LossInfo& info = trace::info_of(loss);
    trace::LossRow row;
    row.id = next_id++;
    if (process != kWholeRun) row.process_id = process;
    row.name = strings.intern(info.name);
    row.severity = strings.intern(trace::name_of(info.severity));
    row.count = count;
    row.unit = strings.intern(info.unit);
    row.meaning = strings.intern(info.meaning);
    row.remedy = optional_text(info.remedy);
    row.detail = optional_text(detail);
    writer.add(row);
    if (totals.empty() || totals.back().loss != loss || totals.back().detail != detail) {
      totals.push_back({loss, 0, detail});
    }
    add_up(totals.back().count, count);
  }
  return totals;
}

namespace {

// CUPTI's results that its callers meet, in our words.
constexpr std::pair<std::uint32_t, std::string_view> kResults[] = {
    {1, "invalid parameter"},
    {2, "invalid device"},
    {3, "invalid context"},
    {7, "invalid operation"},
    {8, "out of memory"},
    {9, "hardware error"},
    {10, "parameter too small"},
    {11, "not implemented"},
    {12, "limit reached"},
    {13, "not ready"},
    {14, "not compatible"},
    {15, "not initialised"},
    {19, "invalid handle"},
    {20, "invalid stream"},
    {21, "invalid kind of activity"},
    {23, "disabled"},
    {26, "hardware busy"},
    {27, "not supported"},
    {33, "not supported on a virtual device"},
    {35, "insufficient privileges"},
    {36, "the older profiler interface is in use"},
    {39, "another profiler is subscribed"},
    {40, "insufficient privileges on a virtual device"},
    {41, "not supported with confidential computing"},
    {43, "not supported with MIG"},
    {45, "not supported on WSL"},
    {999, "unknown"},
};

std::string error_number(std::uint32_t error) {
  for (const auto& [number, meaning] : kResults) {
    if (number == error) return fmt::format("error {} ({})", error, meaning);
  }
  return fmt::format("error {}", error);
}

std::string failed(const char* call, std::string_view otherwise, std::uint32_t error) {
  return fmt::format("{} failed with {}", call != nullptr ? call : otherwise, error_number(error));
}

std::string no_memory(std::string_view purpose, std::uint32_t error) {
  return fmt::format("no memory for {}: {}", purpose, std::strerror(static_cast<int>(error & 0xfff)));
}

}  // namespace

std::string cupti_error_text(std::uint64_t detail) {
  const auto error = static_cast<std::uint32_t>(detail);
  const auto call = static_cast<wire::CuptiCall>(detail >> 32);
  if (call == wire::CuptiCall::kBufferPool) return no_memory("buffers", error);
  if (call == wire::CuptiCall::kFatal) return "CUPTI reported a fatal " + error_number(error);
  return failed(wire::name_of(call), "a call of CUPTI", error);
}

std::string profiler_error_text(std::uint64_t detail) {
  using wire::ProfilerCall;
  const auto error = static_cast<std::uint32_t>(detail);
  const auto call = static_cast<ProfilerCall>(detail >> 32);
  if (call == ProfilerCall::kSamplingLoad) return "CUPTI has no PC sampling: a function is missing";
  if (call == ProfilerCall::kMemory || call == ProfilerCall::kSamplingMemory) return no_memory("counters", error);
  return failed(wire::name_of(call), "a call of CUPTI's profilers", error);
}

}  // namespace llmprof::record
