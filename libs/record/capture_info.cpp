#include "record/capture_info.h"

#include <ctime>

#include "base/file.h"
#include "base/json.h"
#include "record/capture_folder.h"

namespace llmprof::record {
namespace {

using base::Json;

std::int64_t now_ns(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
}

Json to_json(const ClockPair& pair) {
  return {{"raw_ns", pair.raw_ns}, {"wall_ns", pair.wall_ns}, {"error_ns", pair.error_ns}};
}

Json to_json(const hw::Device& device) {
  Json json{{"kind", device.kind},
            {"name", device.name},
            {"chip", device.chip},
            {"units", device.units},
            {"memory_bytes", device.memory_bytes},
            {"cache_bytes", device.cache_bytes},
            {"clock_mhz", nullptr},
            {"driver", device.driver},
            {"uuid", device.uuid}};
  if (device.clock_mhz) json["clock_mhz"] = *device.clock_mhz;
  return json;
}

Json to_json(const hw::Peak& peak) {
  return {{"quantity", peak.quantity}, {"type", peak.type},     {"value", peak.value},
          {"unit", peak.unit},         {"source", peak.source}, {"method", peak.method}};
}

Json to_json(const std::vector<hw::Peak>& peaks) {
  Json json = Json::array();
  for (const hw::Peak& peak : peaks) json.push_back(to_json(peak));
  return json;
}

// Members of the wrong type read as absent: record.json may come from a stranger's folder.
std::string text(const Json& json, const char* key) {
  const auto at = json.find(key);
  return at != json.end() && at->is_string() ? at->get<std::string>() : "";
}
std::int64_t integer(const Json& json, const char* key) {
  const auto at = json.find(key);
  return at != json.end() && at->is_number_integer() ? at->get<std::int64_t>() : 0;
}
double real(const Json& json, const char* key) {
  const auto at = json.find(key);
  return at != json.end() && at->is_number() ? at->get<double>() : 0;
}
const Json& child(const Json& json, const char* key) {
  static const Json nothing;
  const auto at = json.find(key);
  return at != json.end() ? *at : nothing;
}

ClockPair to_pair(const Json& json) {
  return {integer(json, "raw_ns"), integer(json, "wall_ns"), integer(json, "error_ns")};
}

hw::Device to_device(const Json& json) {
  hw::Device device;
  device.kind = text(json, "kind");
  device.name = text(json, "name");
  device.chip = text(json, "chip");
  device.units = integer(json, "units");
  device.memory_bytes = integer(json, "memory_bytes");
  device.cache_bytes = integer(json, "cache_bytes");
  if (child(json, "clock_mhz").is_number()) device.clock_mhz = real(json, "clock_mhz");
  device.driver = text(json, "driver");
  device.uuid = text(json, "uuid");
  return device;
}

hw::Peak to_peak(const Json& json) {
  return {text(json, "quantity"), text(json, "type"),   real(json, "value"),
          text(json, "unit"),     text(json, "source"), text(json, "method")};
}

std::vector<hw::Peak> to_peaks(const Json& json) {
  std::vector<hw::Peak> peaks;
  for (const Json& peak : json) peaks.push_back(to_peak(peak));
  return peaks;
}

NotedLoss to_loss(const Json& json) {
  NotedLoss noted{.count = integer(json, "count"), .detail = text(json, "detail")};
  const std::string name = text(json, "name");
  for (std::size_t i = 0; i < trace::kLossInfo.size(); ++i) {
    if (trace::kLossInfo[i].name == name) noted.loss = static_cast<trace::Loss>(i);
  }
  return noted;
}

}  // namespace

ClockPair read_clocks() {
  const std::int64_t before = now_ns(CLOCK_MONOTONIC_RAW);
  const std::int64_t wall = now_ns(CLOCK_REALTIME);
  const std::int64_t after = now_ns(CLOCK_MONOTONIC_RAW);
  return {before + (after - before) / 2, wall, (after - before + 1) / 2};
}

Result<void> write_capture_info(const std::string& capture_folder, const CaptureInfo& info) {
  Json json;
  json["llmprof_version"] = info.llmprof_version;
  json["command"] = info.command;
  json["executable"] = info.executable;
  json["environment"] = info.environment;
  json["root_pid"] = info.root_pid;
  json["root_start_ticks"] = info.root_start_ticks;
  const auto maybe = [](const auto& value) { return value ? Json(*value) : Json(nullptr); };
  json["root_begin_ns"] = maybe(info.root_begin_ns);
  json["root_end_ns"] = maybe(info.root_end_ns);
  json["begin"] = to_json(info.begin);
  json["end"] = info.end ? to_json(*info.end) : Json(nullptr);
  json["exit_status"] = info.exit_status ? Json(*info.exit_status) : Json(nullptr);
  json["injectable"] = info.injectable;
  json["cpu"] = to_json(info.cpu);
  json["peaks"] = to_json(info.peaks);
  json["gpus"] = Json::array();
  for (const DevicePeaks& gpu : info.gpus) {
    json["gpus"].push_back({{"device", to_json(gpu.device)}, {"peaks", to_json(gpu.peaks)}});
  }
  json["losses"] = Json::array();
  for (const NotedLoss& loss : info.losses) {
    json["losses"].push_back(
        {{"name", trace::info_of(loss.loss).name}, {"count", loss.count}, {"detail", loss.detail}});
  }
  json["notes"] = Json::array();
  for (const NotedText& note : info.notes) json["notes"].push_back({{"subject", note.subject}, {"text", note.text}});
  json["window"] = info.window;
  json["last_ns"] = maybe(info.last_ns);
  json["range_event_ns"] = maybe(info.range_event_ns);
  json["gemm_event_ns"] = maybe(info.gemm_event_ns);
  json["counters"] = trace::counters_to_json(info.counters);
  json["rests"] = trace::rests_to_json(info.rests);
  json["models"] = trace::models_to_json(info.models);
  json["parallel"] = info.parallel;
  json["range_rules"] = trace::rules_to_json(info.range_rules);
  json["recorder_cpu_ns"] = maybe(info.recorder_cpu_ns);
  return base::write_file(record_json(capture_folder), base::to_text(json));
}

Result<CaptureInfo> read_capture_info(const std::string& capture_folder) {
  const std::string path = record_json(capture_folder);
  LLMPROF_LET(const Json json, base::read_json(path));
  if (!json.is_object()) return Error{ErrorCode::kCorruptInput, path + ": not a JSON object", ""};
  CaptureInfo info;
  info.llmprof_version = text(json, "llmprof_version");
  for (const Json& word : child(json, "command")) {
    if (word.is_string()) info.command.push_back(word.get<std::string>());
  }
  info.executable = text(json, "executable");
  info.environment = text(json, "environment");
  info.root_pid = integer(json, "root_pid");
  info.root_start_ticks = integer(json, "root_start_ticks");
  if (child(json, "root_begin_ns").is_number_integer()) info.root_begin_ns = integer(json, "root_begin_ns");
  if (child(json, "root_end_ns").is_number_integer()) info.root_end_ns = integer(json, "root_end_ns");
  info.begin = to_pair(child(json, "begin"));
  if (child(json, "end").is_object()) info.end = to_pair(child(json, "end"));
  if (child(json, "exit_status").is_number_integer()) info.exit_status = static_cast<int>(integer(json, "exit_status"));
  info.injectable = !child(json, "injectable").is_boolean() || child(json, "injectable").get<bool>();
  info.cpu = to_device(child(json, "cpu"));
  info.peaks = to_peaks(child(json, "peaks"));
  for (const Json& gpu : child(json, "gpus")) {
    info.gpus.push_back({to_device(child(gpu, "device")), to_peaks(child(gpu, "peaks"))});
  }
  for (const Json& loss : child(json, "losses")) info.losses.push_back(to_loss(loss));
  for (const Json& note : child(json, "notes")) info.notes.push_back({text(note, "subject"), text(note, "text")});
  info.window = text(json, "window");
  if (child(json, "last_ns").is_number_integer()) info.last_ns = integer(json, "last_ns");
  if (child(json, "range_event_ns").is_number()) info.range_event_ns = real(json, "range_event_ns");
  if (child(json, "gemm_event_ns").is_number()) info.gemm_event_ns = real(json, "gemm_event_ns");
  info.counters = trace::counters_from_json(child(json, "counters"));
  info.rests = trace::rests_from_json(child(json, "rests"));
  info.models = trace::models_from_json(child(json, "models"));
  info.parallel = text(json, "parallel");
  info.range_rules = trace::rules_from_json(child(json, "range_rules"));
  if (child(json, "recorder_cpu_ns").is_number_integer()) info.recorder_cpu_ns = integer(json, "recorder_cpu_ns");
  return info;
}

std::string iso_time(std::int64_t wall_ns) {
  const std::time_t seconds = wall_ns / 1'000'000'000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char buffer[32];
  std::strftime(buffer, sizeof buffer, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return buffer;
}

}  // namespace llmprof::record
