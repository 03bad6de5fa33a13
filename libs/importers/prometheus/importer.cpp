// Prometheus' text format 0.0.4 and OpenMetrics, of any exporter; several scrapes may follow each other.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "base/numbers.h"
#include "base/strings.h"
#include "hw/telemetry/metrics.h"
#include "importers/importer.h"
#include "importers/input.h"
#include "importers/prometheus/scrape.h"
#include "importers/text.h"

namespace llmprof::importers {
namespace {

// Metrics of exporters that are readings of a GPU, as we name them: NVIDIA's DCGM exporter and Triton. From their
// documentation; not tried with a real server.
struct GpuMetric {
  std::string_view name;
  hw::MetricId metric;
  double factor = 1;  // to the unit of the metric
};

using hw::MetricId;

constexpr double kMiB = 1 << 20;

constexpr GpuMetric kMetrics[] = {
    {"DCGM_FI_DEV_SM_CLOCK", MetricId::kSmClock},
    {"DCGM_FI_DEV_MEM_CLOCK", MetricId::kMemoryClock},
    {"DCGM_FI_DEV_GPU_TEMP", MetricId::kTemperature},
    {"DCGM_FI_DEV_MEMORY_TEMP", MetricId::kMemoryTemperature},
    {"DCGM_FI_DEV_POWER_USAGE", MetricId::kPower},
    {"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", MetricId::kEnergy, 1e-3},  // mJ
    {"DCGM_FI_DEV_POWER_MGMT_LIMIT", MetricId::kPowerLimit},
    {"DCGM_FI_DEV_GPU_UTIL", MetricId::kGpuUtilization},
    {"DCGM_FI_DEV_MEM_COPY_UTIL", MetricId::kMemoryUtilization},
    {"DCGM_FI_DEV_FB_USED", MetricId::kMemoryUsed, kMiB},
    {"DCGM_FI_DEV_FB_TOTAL", MetricId::kMemoryTotal, kMiB},
    {"DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", MetricId::kClockLimits},
    {"DCGM_FI_DEV_PSTATE", MetricId::kPerformanceState},
    {"DCGM_FI_PROF_SM_ACTIVE", MetricId::kSmActive, 100},  // shares of 1
    {"DCGM_FI_PROF_SM_OCCUPANCY", MetricId::kSmOccupancy, 100},
    {"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", MetricId::kTensorActive, 100},
    {"DCGM_FI_PROF_DRAM_ACTIVE", MetricId::kDramActive, 100},
    {"DCGM_FI_PROF_PIPE_FP64_ACTIVE", MetricId::kFp64Active, 100},
    {"DCGM_FI_PROF_PIPE_FP32_ACTIVE", MetricId::kFp32Active, 100},
    {"DCGM_FI_PROF_PIPE_FP16_ACTIVE", MetricId::kFp16Active, 100},
    {"DCGM_FI_PROF_PCIE_TX_BYTES", MetricId::kPcieSent},  // bytes per second, whatever its name says
    {"DCGM_FI_PROF_PCIE_RX_BYTES", MetricId::kPcieReceived},
    {"DCGM_FI_PROF_NVLINK_TX_BYTES", MetricId::kNvlinkSent},
    {"DCGM_FI_PROF_NVLINK_RX_BYTES", MetricId::kNvlinkReceived},
    {"nv_gpu_utilization", MetricId::kGpuUtilization, 100},  // share of 1
    {"nv_gpu_memory_used_bytes", MetricId::kMemoryUsed},
    {"nv_gpu_memory_total_bytes", MetricId::kMemoryTotal},
    {"nv_gpu_power_usage", MetricId::kPower},
    {"nv_gpu_power_limit", MetricId::kPowerLimit},
    {"nv_energy_consumption", MetricId::kEnergy},  // J
};

const GpuMetric* find_gpu_metric(std::string_view name) {  // nullptr: none
  const auto* found = std::ranges::find(kMetrics, name, &GpuMetric::name);
  return found == std::end(kMetrics) ? nullptr : found;
}

using trace::Loss;

std::uint64_t hash_of(const SampleLine& sample) {
  const std::uint64_t name = std::hash<std::string_view>()(sample.name);
  return (name ^ std::hash<std::string_view>()(sample.labels) << 1) * 0x9e3779b97f4a7c15u;
}

}  // namespace

void Scrapes::line(std::string_view text, const std::string& where) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return;
  if (text[begin] == '#') return comment(text);
  SampleLine parsed;
  if (const char* wrong = base::parse_sample(text, parsed)) return sink_.lose(Loss::kInputDamaged, 1, wrong, where);
  sample(parsed, where);
}

// A family whose type is told again begins the next scrape.
void Scrapes::comment(std::string_view text) {
  const CommentLine comment = base::parse_comment(text);
  if (comment.keyword == "EOF") return;
  if (comment.keyword.empty() || comment.name.empty() || comment.keyword == "HELP") return;
  if (!families_.contains(std::string(comment.name)) && families_.size() >= kMaxFamilies) {
    return sink_.lose(Loss::kInputLimit, 1, "types of further metrics");
  }
  Family& family = families_[std::string(comment.name)];
  if (comment.keyword == "UNIT") {
    if (!comment.rest.empty()) family.unit = sink_.name(comment.rest);
    return;
  }
  if (family.typed_in == scrape_) ++scrape_;
  family.typed_in = scrape_;
  family.kind = sink_.name(base::metric_kind(comment.rest));
}

const Scrapes::Family* Scrapes::family_of(std::string_view name) const {
  const std::string_view family =
      base::metric_family(name, [&](std::string_view text) { return families_.contains(std::string(text)); });
  return family.empty() ? nullptr : &families_.find(std::string(family))->second;
}

// A series twice in one scrape, or at the same time.
bool Scrapes::repeated(const SampleLine& sample, const std::string& where) {
  const auto [place, added] = series_.try_emplace(hash_of(sample));
  Series& series = place->second;
  if (!added) {
    const bool same_time = sample.ts_ns ? series.ts_ns == sample.ts_ns : series.scrape == scrape_ && !series.ts_ns;
    if (same_time) {
      sink_.lose(Loss::kInputDamaged, 1, "lines that repeat a series", where);
      return true;
    }
    if (sample.ts_ns && series.ts_ns && *sample.ts_ns < *series.ts_ns) {
      sink_.lose(Loss::kInputRepaired, 1, "times that go backwards", where);
    }
  }
  series = {scrape_, sample.ts_ns};
  return false;
}

void Scrapes::sample(const SampleLine& sample, const std::string& where) {
  if (sample.exemplar) ++exemplars_;
  if (!std::isfinite(sample.value)) {
    return sink_.lose(Loss::kInputIgnored, 1, "values that are NaN or infinite", where);
  }
  if (series_.size() >= max_series_ && !series_.contains(hash_of(sample))) {
    return sink_.lose(Loss::kInputLimit, 1, fmt::format("series beyond {}", max_series_), where);
  }
  if (!repeated(sample, where)) write(sample);
}

void Scrapes::set_clock(bool times) {
  if (clock_set_) return;
  clock_set_ = true;
  if (times) {
    sink_.set_clock({.wall_of_zero_ns = 0, .name = "Prometheus: time since 1970"});
  } else {
    sink_.set_clock({.wall_of_zero_ns = {}, .name = "none: the metrics carry no times"});
  }
}

void Scrapes::write(const SampleLine& sample) {
  if (sample.ts_ns) set_clock(true);
  trace::MetricRow row{
      .id = sink_.new_id(), .ts_ns = sample.ts_ns, .name = sink_.name(sample.name), .value = sample.value};
  if (!sample.labels.empty()) row.labels = sink_.name(sample.labels);
  const Family* family = family_of(sample.name);
  row.kind = family != nullptr && family->kind.id != 0 ? family->kind : sink_.name("untyped");
  if (family != nullptr && family->unit.id != 0) {
    row.unit = family->unit;
  } else if (const std::string_view unit = base::metric_unit(sample.name); !unit.empty()) {
    row.unit = sink_.name(unit);
  }
  if (const GpuMetric* reading = find_gpu_metric(sample.name)) {
    row.device_id = device_of(sample);
    if (row.device_id && sample.ts_ns) {
      devices_.add(*row.device_id, *sample.ts_ns, reading->metric, sample.value * reading->factor);
    } else {
      ++untimed_readings_;
    }
  }
  sink_.add(row);
  ++values_;
}

// DCGM: gpu, UUID, modelName; Triton: gpu_uuid.
std::optional<trace::Id> Scrapes::device_of(const SampleLine& sample) {
  std::string uuid = base::label_value(sample.labels, "UUID");
  if (uuid.empty()) uuid = base::label_value(sample.labels, "gpu_uuid");
  const std::string name = base::label_value(sample.labels, "modelName"), number = base::label_value(sample.labels, "gpu");
  DeviceReadings::Known known{.uuid = uuid, .name = name, .driver = "", .ordinal = {}};
  const auto ordinal = base::leading_number<std::int64_t>(number);
  if (ordinal && *ordinal >= 0) known.ordinal = ordinal;
  if (uuid.empty() && !known.ordinal) return std::nullopt;
  return devices_.device(known);
}

void Scrapes::finish() {
  set_clock(false);
  sink_.lose(Loss::kInputIgnored, exemplars_, "exemplars");
  sink_.lose(Loss::kInputIgnored, untimed_readings_,
             "readings of GPUs without a time: they stand in the table metric only");
}

namespace prometheus {
namespace {

constexpr std::string_view kHint = "curl -s http://HOST:PORT/metrics > FILE writes what can be read";

bool is_html(std::string_view head) {
  const std::size_t begin = head.find_first_not_of(" \t\r\n");
  return begin != std::string_view::npos && head[begin] == '<';
}

std::string title_of(std::string_view html) {
  const std::size_t begin = html.find("<title>"), end = html.find("</title>");
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return "";
  std::string title(html.substr(begin + 7, std::min<std::size_t>(end - begin - 7, 80)));
  for (char& c : title) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return title;
}

int sniff(std::string_view head) {
  int lines = 0, comments = 0, samples = 0;
  while (!head.empty() && lines < 40) {
    const std::size_t end = head.find('\n');
    std::string_view line = head.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    const bool whole = end != std::string_view::npos || lines == 0;
    head = end == std::string_view::npos ? std::string_view() : head.substr(end + 1);
    if (line.empty() || !whole) continue;
    ++lines;
    SampleLine sample;
    if (line.starts_with("# ") && !base::parse_comment(line).keyword.empty()) {
      ++comments;
    } else if (!line.starts_with('#') && base::parse_sample(line, sample) == nullptr) {
      ++samples;
    }
  }
  if (comments > 0 && samples > 0) return 90;
  return samples > 0 && 2 * samples > lines ? 30 : 0;
}

Result<void> parse(Input& input, Sink& sink) {
  LLMPROF_LET(const std::string_view head, input.head());
  if (is_html(head)) {
    const std::string title = title_of(head);
    return Error{ErrorCode::kCorruptInput,
                 "line 1: an HTML page, no metrics" + (title.empty() ? "" : " (\"" + title + "\")"),
                 std::string(kHint)};
  }
  sink.set_facts({.tool = "Prometheus text"});
  Lines lines(input, sink);
  Scrapes scrapes(sink);
  LLMPROF_TRY(lines.each([&](std::string_view line) { scrapes.line(line, lines.where()); }));
  scrapes.finish();
  if (scrapes.values() == 0) {
    return Error{ErrorCode::kCorruptInput, "line 1: no metric can be read from it", std::string(kHint)};
  }
  return {};
}

}  // namespace
}  // namespace prometheus

extern const Importer kPrometheus;
const Importer kPrometheus{"prometheus", "Prometheus text", Role::kReadings, prometheus::sniff, prometheus::parse};

}  // namespace llmprof::importers
