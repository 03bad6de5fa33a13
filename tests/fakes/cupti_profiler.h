#pragma once
// What the fake CUPTI's profilers share: the rules of their calls, metrics, images, and the values they give.
//
// Values can be predicted. The weight of a metric is 1 + the sum of the bytes of its name modulo 97. Over kernels that
// took N ns in all
//   gpu__time_duration.*        is N
//   names with "pct", ".ratio"  are the weight, where anything ran
//   names with "__sass_"        are weight * the ns of kernels that were not in graphs
//   any other                   is weight * N
// A pass reads eight metrics, in their order; instrumented ones ("__sass_") have passes of their own, the last.

#include <string>
#include <vector>

#include "cupti_state.h"
#include "profiler_abi.h"

namespace fake {

inline constexpr std::size_t kMetricsPerPass = 8, kMetricBytes = 160, kRangeNameBytes = 128;

struct Totals {  // of what the device did inside a range
  std::uint64_t kernels = 0, kernel_ns = 0, eager_ns = 0, graphs = 0;
};
Totals totals_of(const Work& work);

// Both kinds of images begin with this; then the metrics, then, in counter data, rows of values.
struct Image {
  std::uint64_t magic;
  std::uint32_t metrics, passes, most_rows, rows;
};
struct ImageMetric {
  char name[kMetricBytes];
  std::uint32_t pass;
};
struct ImageRow {
  char name[kRangeNameBytes];
  std::uint64_t begin_ns, end_ns;
};
inline constexpr std::uint64_t kConfigMagic = 0x6769666e6f63, kDataMagic = 0x61746164;

struct Metrics {
  std::vector<std::string> names;
  std::vector<std::uint32_t> passes;  // in which each is read
  std::uint32_t count_passes() const;
};

bool is_metric(const std::string& name, ProfilerType type);
double weight_of(const std::string& name);
double value_of(const std::string& name, const Totals& totals);
double value_of_period(const std::string& name, std::uint64_t period_ns);  // of a PM sample

// A list as a configuration reads it.
Metrics schedule(std::vector<std::string> names);
// False: that is no image, or not one of this size.
bool read_config(const std::uint8_t* image, std::size_t bytes, Metrics* metrics);

std::size_t data_bytes(std::size_t metrics, std::size_t most_rows);
// An empty image: room for `most_rows` rows of these metrics.
bool make_data(std::uint8_t* image, std::size_t bytes, const Metrics& metrics, std::size_t most_rows);
Image* data_of(const std::uint8_t* image, std::size_t bytes);       // null: it is none
void set_metrics(Image* data, const Metrics& metrics);              // as many as it has room for
ImageRow* add_row(Image* data, const std::vector<double>& values);  // null: it is full
ImageRow* row_of(Image* data, std::size_t index);

// ---- rules of calls ------------------------------------------------------------------------------------------------
// After begin_call, with CUPTI's lock held: what a call that has to do with the device answers before it does anything.
int begin_on_device(const Context* context = nullptr);

// ---- what the driver tells the profilers ---------------------------------------------------------------------------
// True: the work was executed again for its passes.
bool ranges_see(const Work& work);
void pc_sampling_sees(const Work& work);

}  // namespace fake

// Of a host function, which touches nothing but memory; and of one that uses the device.
#define BEGIN_HOST(type, last)                                                 \
  if (const int error = begin_call(__func__); error != kSuccess) return error; \
  const std::lock_guard hold(cupti().lock);                                    \
  note(k_profiler_calls);                                                      \
  if (given == nullptr || given->params.struct_size != FAKE_PARAMS_BYTES(type, last)) return kInvalidParameter
#define BEGIN_ON_DEVICE(type, last, context) \
  BEGIN_HOST(type, last);                    \
  if (const int error = begin_on_device(context); error != kSuccess) return error
