// The fake CUPTI's PM sampling: a sample a period by the wall clock, as long as the hardware's buffer, which is never
// recycled, has room. The first sample spans the set-up.
#include "cupti_profiler.h"

#include <time.h>

#include <algorithm>

namespace fake {
namespace {

constexpr std::size_t kSampleBytesPerMetric = 550;

struct PmSampler {
  std::size_t device;
  Metrics asked, metrics;
  std::size_t asked_samples = 0, most_samples = 0;
  std::uint64_t configured_ns = 0, started_ns = 0, stopped_ns = 0, interval_ns = 0, decoded = 0;
  AppendMode append = kKeepOldest;
  bool started = false;
};

std::vector<PmSampler*>& samplers() {
  static auto* all = new std::vector<PmSampler*>;
  return *all;
}

PmSampler* find(void* object) {
  for (PmSampler* sampler : samplers()) {
    if (sampler == object) return sampler;
  }
  return nullptr;
}

std::uint64_t wall_ns() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000000000u + static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint64_t taken(const PmSampler& sampler) {
  const std::uint64_t until = sampler.started ? wall_ns() : sampler.stopped_ns;
  const std::uint64_t all = sampler.interval_ns != 0 ? (until - sampler.started_ns) / sampler.interval_ns : 0;
  return sampler.append == kKeepOldest ? std::min<std::uint64_t>(all, sampler.most_samples) : all;
}

bool add_sample(PmSampler* sampler, Image* data) {
  std::vector<double> values;
  for (const std::string& name : sampler->metrics.names) values.push_back(value_of_period(name, sampler->interval_ns));
  ImageRow* row = add_row(data, values);
  if (row == nullptr) return false;
  const std::uint64_t end_ns = sampler->started_ns + (sampler->decoded + 1) * sampler->interval_ns;
  row->begin_ns = sampler->decoded == 0 ? sampler->configured_ns : end_ns - sampler->interval_ns;
  row->end_ns = end_ns;
  ++sampler->decoded;
  note(k_pm_samples);
  return true;
}

}  // namespace
}  // namespace fake

using namespace fake;

FAKE_EXPORT int cuptiPmSamplingEnable(PmEnableParams* given) {
  BEGIN_HOST(PmEnableParams, object);
  if (given->device > 1) return kInvalidParameter;
  if (script().forbidden != 0) return kInsufficientPrivileges;
  if (script().busy != 0) return kHardwareBusy;
  for (const PmSampler* sampler : samplers()) {
    if (sampler->device == given->device) return kInvalidOperation;
  }
  auto* made = new PmSampler{};
  made->device = given->device;
  samplers().push_back(made);
  return given->object = made, kSuccess;
}

FAKE_EXPORT int cuptiPmSamplingDisable(PmParams* given) {
  BEGIN_HOST(PmParams, object);
  PmSampler* sampler = find(given->object);
  if (sampler == nullptr) return kInvalidParameter;
  std::erase(samplers(), sampler);
  delete sampler;
  return kSuccess;
}

FAKE_EXPORT int cuptiPmSamplingSetConfig(PmConfigParams* given) {
  BEGIN_HOST(PmConfigParams, append);
  PmSampler* sampler = find(given->object);
  Metrics metrics;
  if (sampler == nullptr || given->interval == 0 || given->buffer_bytes == 0) return kInvalidParameter;
  if (!read_config(given->config, given->config_bytes, &metrics)) return kInvalidParameter;
  if (metrics.count_passes() > 1) return kNotSupported;
  if (sampler->started) return kInvalidOperation;
  sampler->metrics = metrics;
  sampler->interval_ns = given->interval;
  sampler->append = given->append;
  sampler->most_samples = given->buffer_bytes / (kSampleBytesPerMetric * metrics.names.size());
  sampler->configured_ns = wall_ns();
  return kSuccess;
}

FAKE_EXPORT int cuptiPmSamplingStart(PmParams* given) {
  BEGIN_HOST(PmParams, object);
  PmSampler* sampler = find(given->object);
  if (sampler == nullptr) return kInvalidParameter;
  if (sampler->started || sampler->interval_ns == 0) return kInvalidOperation;
  sampler->started = true;
  sampler->decoded = 0;
  sampler->started_ns = wall_ns();
  note(k_profiler_starts);
  return kSuccess;
}

FAKE_EXPORT int cuptiPmSamplingStop(PmParams* given) {
  BEGIN_HOST(PmParams, object);
  PmSampler* sampler = find(given->object);
  if (sampler == nullptr) return kInvalidParameter;
  if (!sampler->started) return kInvalidOperation;
  sampler->stopped_ns = wall_ns();
  return sampler->started = false, kSuccess;
}

FAKE_EXPORT int cuptiPmSamplingGetCounterAvailability(PmAvailabilityParams* given) {
  BEGIN_HOST(PmAvailabilityParams, image);
  if (script().forbidden != 0) return kInsufficientPrivileges;
  if (given->image != nullptr)
    std::fill_n(given->image, std::min<std::size_t>(given->image_bytes, 64), std::uint8_t{1});
  return given->image_bytes = 64, kSuccess;
}

FAKE_EXPORT int cuptiPmSamplingGetCounterDataSize(PmDataSizeParams* given) {
  BEGIN_HOST(PmDataSizeParams, bytes);
  PmSampler* sampler = find(given->object);
  if (sampler == nullptr || given->metric_count == 0 || given->most_samples == 0) return kInvalidParameter;
  std::vector<std::string> names(given->metrics, given->metrics + given->metric_count);
  for (const std::string& name : names) {
    if (!is_metric(name, kPmSampling)) return kInvalidMetricName;
  }
  sampler->asked = schedule(std::move(names));
  sampler->asked_samples = given->most_samples;
  return given->bytes = data_bytes(given->metric_count, given->most_samples), kSuccess;
}

FAKE_EXPORT int cuptiPmSamplingCounterDataImageInitialize(DataInitializeParams* given) {
  BEGIN_HOST(DataInitializeParams, image);
  PmSampler* sampler = find(given->object);
  if (sampler == nullptr || sampler->asked.names.empty()) return kInvalidParameter;
  return make_data(given->image, given->bytes, sampler->asked, sampler->asked_samples) ? kSuccess : kInvalidParameter;
}

FAKE_EXPORT int cuptiPmSamplingDecodeData(PmDecodeParams* given) {
  BEGIN_HOST(PmDecodeParams, overflow);
  PmSampler* sampler = find(given->object);
  Image* data = data_of(given->image, given->image_bytes);
  if (sampler == nullptr || data == nullptr) return kInvalidParameter;
  if (script().pm_overflow != 0) return given->overflow = 1, kOutOfMemory;
  const std::uint64_t all = taken(*sampler);
  if (sampler->append == kKeepLatest && all - sampler->decoded > sampler->most_samples) {
    sampler->decoded = all - sampler->most_samples;
  }
  set_metrics(data, sampler->metrics);
  given->why = kEndOfRecords;
  given->overflow = 0;
  while (sampler->decoded < all) {
    if (!add_sample(sampler, data)) return given->why = kImageFull, kSuccess;
  }
  return kSuccess;
}

FAKE_EXPORT int cuptiPmSamplingGetCounterDataInfo(PmDataInfoParams* given) {
  BEGIN_HOST(PmDataInfoParams, completed);
  const Image* data = data_of(given->image, given->image_bytes);
  if (data == nullptr) return kInvalidParameter;
  given->total = data->most_rows;
  return given->populated = given->completed = data->rows, kSuccess;
}

FAKE_EXPORT int cuptiPmSamplingCounterDataGetSampleInfo(PmSampleInfoParams* given) {
  BEGIN_HOST(PmSampleInfoParams, end);
  Image* data = data_of(given->image, given->image_bytes);
  if (data == nullptr || given->sample >= data->rows) return kInvalidParameter;
  const ImageRow* row = row_of(data, given->sample);
  given->begin = row->begin_ns;
  return given->end = row->end_ns, kSuccess;
}
