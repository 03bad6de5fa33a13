#include "hw/peaks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <ctime>

#include "base/errors.h"
#include "base/file.h"
#include "base/human.h"
#include "base/json.h"
#include "hw/cpu/cpu.h"
#include "hw/cpu/measure.h"
#include "hw/roof.h"
#include "hw/system_files.h"

namespace llmprof::hw {

namespace {

// About 2 s in all when the machine is idle, 3 s when it is not: the best of many short rounds, each part within its
// time.
constexpr auto kComputeTime = std::chrono::milliseconds(260);  // per instruction set
constexpr auto kStreamTime = std::chrono::milliseconds(400);   // each of two
constexpr double kExpectedSeconds = 2;

int rank_of(const Peak& peak) {
  if (peak.quantity == "flops") return principal(peak) ? 0 : 1;
  if (peak.quantity == "bandwidth") return peak.type == "read" ? 2 : is_memory_stream(peak.type) ? 3 : 4;
  return 5;
}

// Whether a new figure may be worse than what the device can do, for a reason that the stored one need not have.
bool doubtful(const Peak& peak) {
  return short_of_cpu(peak) || peak.method.find(kShortMeasurement) != std::string::npos;
}

bool better(const Peak& a, const Peak& b) { return a.quantity == "latency" ? a.value < b.value : a.value > b.value; }

// The cache of measured peaks: one JSON file per machine. A damaged or foreign file reads as no file.

constexpr const char* kSchema = "llmprof.peaks";
constexpr int kSchemaVersion = 1;

std::string cache_file(const Device& device) {
  const std::string folder = base::cache_folder();
  return folder.empty() ? "" : fmt::format("{}/peaks-{}.json", folder, fingerprint(device));
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

std::uint32_t fnv1a(std::string_view text) {
  std::uint32_t hash = 2166136261u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

std::string text_of(const base::Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

bool read_peak(const base::Json& json, Peak& peak) {
  if (!json.is_object() || !json.contains("value") || !json["value"].is_number()) return false;
  peak = {text_of(json, "quantity"), text_of(json, "type"),   json["value"].get<double>(),
          text_of(json, "unit"),     text_of(json, "source"), text_of(json, "method")};
  const bool known = peak.quantity == "flops" || peak.quantity == "bandwidth" || peak.quantity == "latency";
  return known && !peak.type.empty() && !peak.source.empty() && std::isfinite(peak.value) && peak.value > 0;
}

}  // namespace

Result<std::vector<Peak>> measure_cpu_peaks(const Device& device, const base::Progress& progress) {
  const CpuTeam team(device.units);
  const auto begin = PeakClock::now();
  const GoOn go_on = [&] {
    const double seconds = std::chrono::duration<double>(PeakClock::now() - begin).count();
    return progress({"measuring peaks", std::min(seconds, kExpectedSeconds), kExpectedSeconds, "s"});
  };
  LLMPROF_LET(Peak float32, measure_multiply_add(team, "float32", kComputeTime, go_on));
  LLMPROF_LET(Peak float64, measure_multiply_add(team, "float64", kComputeTime, go_on));
  const StreamLevel memory = stream_levels({}, device, team.size()).back();
  const PeakBuffer buffer(memory.bytes_per_thread * static_cast<std::size_t>(team.size()));
  if (buffer.data() == nullptr) {
    return unsupported_error("no {} of memory for the bandwidth measurement",
                             base::human_bytes(static_cast<double>(buffer.bytes())));
  }
  LLMPROF_TRY(touch(team, buffer));
  LLMPROF_LET(Peak read, measure_stream(team, Stream::kRead, memory, buffer, kStreamTime, go_on));
  LLMPROF_LET(Peak triad, measure_stream(team, Stream::kTriad, memory, buffer, kStreamTime, go_on));
  return std::vector<Peak>{std::move(float32), std::move(float64), std::move(read), std::move(triad)};
}

bool cpu_peaks_are_good(const std::vector<Peak>& peaks) {
  for (const std::string_view stream : {"read", "triad"}) {
    if (find_peak(peaks, "bandwidth", stream) == nullptr) return false;
  }
  if (!measured_while_busy(peaks)) return true;
  const std::optional<double> busy = busy_share(SystemFiles(), std::chrono::milliseconds(100));
  return !busy || *busy > kIdle;
}

bool principal(const Peak& peak) {
  if (peak.quantity == "bandwidth") return peak.type == "read" || peak.type == "triad";
  return peak.quantity == "flops" && peak.type.find(',') == std::string::npos;
}

bool short_of_cpu(const Peak& peak) { return peak.method.find(kShortOfCpu) != std::string::npos; }

bool measured_while_busy(const std::vector<Peak>& peaks) {
  return std::any_of(peaks.begin(), peaks.end(),
                     [](const Peak& peak) { return principal(peak) && short_of_cpu(peak); });
}

std::vector<Peak> merged_peaks(const std::vector<Peak>& stored, const std::vector<Peak>& fresh) {
  std::vector<Peak> all = fresh;
  for (const Peak& old : stored) {
    const auto renewed = std::find_if(all.begin(), all.end(), [&](const Peak& peak) {
      return peak.quantity == old.quantity && peak.type == old.type;
    });
    if (renewed == all.end()) {
      all.push_back(old);
    } else if (doubtful(*renewed) && old.source == "measured" && better(old, *renewed)) {
      *renewed = old;
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Peak& a, const Peak& b) { return rank_of(a) < rank_of(b); });
  return all;
}

bool is_memory_stream(std::string_view type) {
  // On a busy or an odd machine one core may reach more than all of them did.
  if (constexpr std::string_view kOneCore = ", one core"; type.ends_with(kOneCore)) type.remove_suffix(kOneCore.size());
  return type == "read" || type == "write" || type == "copy" || type == "triad";
}

const Peak* find_peak(const std::vector<Peak>& peaks, std::string_view quantity, std::string_view type) {
  if (quantity == "bandwidth" && type == kMemoryStream) {
    const Peak* best = nullptr;
    for (const Peak& peak : peaks) {
      const bool stream = peak.quantity == quantity && is_memory_stream(peak.type) && peak.value > 0;
      if (stream && (best == nullptr || better_memory_peak(peak, *best))) best = &peak;
    }
    return best;
  }
  for (const Peak& peak : peaks) {
    if (peak.quantity == quantity && (type.empty() || peak.type == peak_type(type))) return &peak;
  }
  return nullptr;
}

std::string fingerprint(const Device& device) {
  // Whole GiB: the size that the kernel reports differs a little between kernels.
  const std::int64_t gib = (device.memory_bytes + (1 << 29)) >> 30;
  const std::string identity = fmt::format("{}|{}|{}|{}|{}", device.kind, device.name, device.chip, device.units, gib);
  std::string name;
  for (const char c : device.name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  name.resize(std::min<std::size_t>(name.size(), 48));
  return fmt::format("{}-{}-{}x-{}gib-{:08x}", device.kind, name, device.units, gib, fnv1a(identity));
}

std::vector<Peak> cached_peaks(const Device& device) {
  const std::string path = cache_file(device);
  if (path.empty()) return {};
  const Result<std::string> text = base::read_file(path, 1u << 20);
  if (!text) return {};
  const base::Json json = base::Json::parse(*text, nullptr, false);  // never throws; damaged text is "discarded"
  if (!json.is_object() || text_of(json, "schema") != kSchema ||
      json.value("schema_version", base::Json()) != kSchemaVersion)
    return {};
  if (text_of(json, "fingerprint") != fingerprint(device)) return {};
  const auto rows = json.find("peaks");
  if (rows == json.end() || !rows->is_array()) return {};
  std::vector<Peak> peaks;
  for (const base::Json& row : *rows) {
    Peak peak;
    if (!read_peak(row, peak)) return {};
    peaks.push_back(std::move(peak));
  }
  return peaks;
}

Result<void> store_peaks(const Device& device, const std::vector<Peak>& peaks) {
  const std::string path = cache_file(device);
  if (path.empty()) return Error{ErrorCode::kNotFound, "no folder for the cache of peaks", "set LLMPROF_CACHE_DIR"};
  base::Json json{
      {"schema", kSchema}, {"schema_version", kSchemaVersion}, {"fingerprint", fingerprint(device)}, {"date", today()}};
  json["machine"] = {{"kind", device.kind},
                     {"name", device.name},
                     {"chip", device.chip},
                     {"units", device.units},
                     {"memory_bytes", device.memory_bytes},
                     {"cache_bytes", device.cache_bytes}};
  json["peaks"] = base::Json::array();
  for (const Peak& peak : peaks) {
    json["peaks"].push_back({{"quantity", peak.quantity},
                             {"type", peak.type},
                             {"value", peak.value},
                             {"unit", peak.unit},
                             {"source", peak.source},
                             {"method", peak.method}});
  }
  LLMPROF_TRY(base::make_directories(base::cache_folder()));
  return base::write_file(path, base::to_text(json));
}

}  // namespace llmprof::hw
