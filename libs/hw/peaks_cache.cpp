// The cache of measured peaks: one JSON file per machine. A damaged or foreign file reads as no file.

#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <cstdlib>
#include <ctime>

#include "base/file.h"
#include "base/json.h"
#include "hw/peaks.h"

namespace llmprof::hw {
namespace {

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
