#include "bench/cuda/activity.h"

#include <fmt/format.h>

#include <cxxabi.h>
#include <sys/mman.h>
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "base/errors.h"

namespace llmprof::bench::cuda {

namespace {

std::string readable(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                    std::free);
  return status == 0 && text != nullptr ? text.get() : name;
}

// Nanoseconds in which any of them ran. Sorts by begin.
std::uint64_t busy_ns(std::span<Activity> call) {
  std::sort(call.begin(), call.end(), [](const Activity& a, const Activity& b) { return a.begin_ns < b.begin_ns; });
  std::uint64_t busy = 0, until = 0;
  for (const Activity& activity : call) {
    const std::uint64_t begin = std::max(activity.begin_ns, until);
    if (activity.end_ns > begin) busy += activity.end_ns - begin;
    until = std::max(until, activity.end_ns);
  }
  return busy;
}

bool is_service(const Activity& activity) { return activity.name.starts_with(kServicePrefix); }

Result<TimedCall> timed(std::span<Activity> call, std::size_t index) {
  if (call.empty()) return unsupported_error("CUPTI saw no kernel in call {} of a batch", index + 1);
  TimedCall result;
  for (const Activity& activity : call) {
    if (activity.begin_ns == 0 || activity.end_ns <= activity.begin_ns) {
      return Error{ErrorCode::kUnsupported, "CUPTI lost the times of " + readable(activity.name), ""};
    }
    result.kernels.push_back(readable(activity.name));
  }
  result.seconds = static_cast<double>(busy_ns(call)) * 1e-9;
  return result;
}

struct Pool {
  std::mutex mutex;
  std::size_t made = 0;
  std::vector<std::uint8_t*> free;
  std::vector<FilledBuffer> filled;
};

Pool& pool() {
  static Pool& leaked = *new Pool;  // callbacks may come after static destructors
  return leaked;
}

}  // namespace

Result<std::vector<TimedCall>> calls_of(std::vector<Activity> activities, std::size_t calls) {
  std::stable_sort(activities.begin(), activities.end(),
                   [](const Activity& a, const Activity& b) { return a.correlation < b.correlation; });
  std::vector<TimedCall> found;
  for (std::size_t at = 0; at < activities.size(); ++at) {
    if (activities[at].name != kMarkerKernel) continue;
    std::size_t end = at + 1;
    while (end < activities.size() && !is_service(activities[end])) ++end;
    LLMPROF_LET(TimedCall call, timed(std::span(activities).subspan(at + 1, end - at - 1), found.size()));
    found.push_back(std::move(call));
    at = end - 1;
  }
  if (found.size() != calls) return unsupported_error("CUPTI saw {} of {} calls", found.size(), calls);
  return found;
}

std::uint8_t* request_cupti_buffer() {
  Pool& p = pool();
  const std::lock_guard lock(p.mutex);
  if (!p.free.empty()) {
    std::uint8_t* data = p.free.back();
    p.free.pop_back();
    return data;
  }
  if (p.made == kMostCuptiBuffers) return nullptr;
  void* memory = ::mmap(nullptr, kCuptiBufferBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  ++p.made;
  return static_cast<std::uint8_t*>(memory);
}

void complete_cupti_buffer(std::uint8_t* data, std::size_t valid_bytes) {
  const std::lock_guard lock(pool().mutex);
  pool().filled.push_back({data, valid_bytes});
}

std::vector<FilledBuffer> take_cupti_buffers() {
  const std::lock_guard lock(pool().mutex);
  return std::exchange(pool().filled, {});
}

void recycle_cupti_buffer(const FilledBuffer& buffer) {
  std::memset(buffer.data, 0, kCuptiBufferBytes);
  const std::lock_guard lock(pool().mutex);
  pool().free.push_back(buffer.data);
}

}  // namespace llmprof::bench::cuda
