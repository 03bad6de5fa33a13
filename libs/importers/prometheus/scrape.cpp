#include "importers/prometheus/scrape.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "importers/prometheus/gpu_metrics.h"

namespace llmprof::importers {
namespace {

using trace::Loss;

constexpr std::string_view kUnits[] = {"seconds", "milliseconds", "microseconds", "bytes", "ratio", "percent", "tokens",
                                       "joules",  "watts",        "celsius",      "hertz", "volts", "amperes", "flops"};

bool strip(std::string_view& name, std::string_view suffix) {
  if (!name.ends_with(suffix)) return false;
  name.remove_suffix(suffix.size());
  return true;
}

// From the end of the name; values of buckets and counts are plain numbers.
std::string_view unit_of(std::string_view name) {
  if (name.ends_with("_bucket") || name.ends_with("_count")) return {};
  if (!strip(name, "_total")) strip(name, "_sum");
  for (const std::string_view unit : kUnits) {
    if (name.ends_with(unit) && name.size() > unit.size() && name[name.size() - unit.size() - 1] == '_') return unit;
  }
  return {};
}

std::string_view kind_word(std::string_view kind) {
  for (const std::string_view known : {"counter", "gauge", "histogram", "summary"}) {
    if (kind == known) return known;
  }
  return kind == "gaugehistogram" ? "histogram" : "untyped";
}

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
  if (const char* wrong = parse_sample(text, parsed)) return sink_.lose(Loss::kInputDamaged, 1, wrong, where);
  sample(parsed, where);
}

// A family whose type is told again begins the next scrape.
void Scrapes::comment(std::string_view text) {
  const CommentLine comment = parse_comment(text);
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
  family.kind = sink_.name(kind_word(comment.rest));
}

const Scrapes::Family* Scrapes::family_of(std::string_view name) const {
  const auto find = [&](std::string_view text) -> const Family* {
    const auto found = families_.find(std::string(text));
    return found == families_.end() ? nullptr : &found->second;
  };
  if (const Family* family = find(name)) return family;
  for (const std::string_view suffix : {"_bucket", "_sum", "_count", "_total", "_created", "_info"}) {
    std::string_view base = name;
    if (!strip(base, suffix)) continue;
    if (const Family* family = find(base)) return family;
  }
  return nullptr;
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
  } else if (const std::string_view unit = unit_of(sample.name); !unit.empty()) {
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
  std::string uuid = label_value(sample.labels, "UUID");
  if (uuid.empty()) uuid = label_value(sample.labels, "gpu_uuid");
  const std::string name = label_value(sample.labels, "modelName"), number = label_value(sample.labels, "gpu");
  DeviceReadings::Known known{.uuid = uuid, .name = name, .driver = "", .ordinal = {}};
  std::int64_t ordinal = 0;
  if (std::from_chars(number.data(), number.data() + number.size(), ordinal).ec == std::errc{} && ordinal >= 0) {
    known.ordinal = ordinal;
  }
  if (uuid.empty() && !known.ordinal) return std::nullopt;
  return devices_.device(known);
}

void Scrapes::finish() {
  set_clock(false);
  sink_.lose(Loss::kInputIgnored, exemplars_, "exemplars");
  sink_.lose(Loss::kInputIgnored, untimed_readings_,
             "readings of GPUs without a time: they stand in the table metric only");
}

}  // namespace llmprof::importers
