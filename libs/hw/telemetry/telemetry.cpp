#include "hw/telemetry/telemetry.h"

#include <array>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <utility>

#include "hw/system_files.h"
#include "hw/telemetry/metrics.h"
#include "wire/clock.h"

namespace llmprof::hw {

std::string_view name_of(ReadGroup group) {
  static constexpr std::array<std::string_view, kReadGroups> kNames{
      "power and energy", "clocks, temperature and utilisation", "activity", "memory of processes", "limits"};
  return kNames[static_cast<std::size_t>(group)];
}

std::uint64_t raw_now_ns() { return wire::now_ns(); }

bool parse_uuid(std::string_view text, std::uint64_t& high, std::uint64_t& low) {
  if (text.starts_with("GPU-")) text.remove_prefix(4);
  std::uint64_t halves[2] = {0, 0};
  int digits = 0;
  for (const char c : text) {
    if (c == '-') continue;
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0 || digits == 32) return false;
    std::uint64_t& half = halves[digits++ / 16];
    half = half << 4 | static_cast<std::uint64_t>(digit);
  }
  if (digits != 32) return false;
  high = halves[0];
  low = halves[1];
  return true;
}

namespace {

constexpr Metric kMetrics[] = {
#define LLMPROF_METRIC_ROW(id, its_name, its_unit, its_meaning, ...) \
  {.name = its_name, .unit = its_unit, .meaning = its_meaning __VA_OPT__(, ) __VA_ARGS__},
    LLMPROF_METRICS(LLMPROF_METRIC_ROW)
#undef LLMPROF_METRIC_ROW
};

constexpr ClockLimit kClockLimits[] = {
    {0x02, "application clocks are set"},   {0x04, "power limit"},      {0x08, "hardware slowdown"},
    {0x10, "synchronised with other GPUs"}, {0x20, "too hot"},          {0x40, "too hot, slowed down by hardware"},
    {0x80, "external power brake"},         {0x100, "display's clocks"}};

// The CPUs and the memory of this machine, read from /proc and /sys. What is not there or may not be read is left out.

// An energy counter of a CPU package. It wraps around at a range of its own.
struct Package {
  std::string folder;
  double range_uj = 0;
  std::optional<double> last_uj;
  double since_begin_uj = 0;
};

struct CpuTime {
  double busy = 0, all = 0;
};

class CpuSource final : public TelemetrySource {
 public:
  explicit CpuSource(std::string root) : files_(std::move(root)) {
    const std::string name = files_.value("proc/cpuinfo", "model name");
    devices_.push_back({0, "cpu", name.empty() ? "CPU" : name, 0, 0});
    find_packages();
    last_ = read_time();
  }

  const std::vector<TelemetryDevice>& devices() const override { return devices_; }

  void read(ReadGroup group, std::vector<Reading>& into) override {
    if (group == ReadGroup::kPower) read_power(into);
    if (group == ReadGroup::kState) read_state(into);
  }

  std::vector<std::string> take_notes() override { return std::exchange(notes_, {}); }

 private:
  std::optional<double> number(const std::string& path) const {
    const auto value = files_.number(path);
    return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
  }

  static void put(MetricId metric, double value, std::vector<Reading>& into) {
    into.push_back({metric, 0, 0, raw_now_ns(), value});
  }

  // Packages only: what their cores and memories use is a part of it.
  void find_packages() {
    bool refused = false;
    for (int i = 0; i < 64; ++i) {
      const std::string folder = "sys/class/powercap/intel-rapl:" + std::to_string(i);
      const std::string name = files_.line(folder + "/name");
      if (name.empty()) break;
      if (!name.starts_with("package")) continue;
      if (!number(folder + "/energy_uj")) {
        refused = true;
        continue;
      }
      packages_.push_back({folder, number(folder + "/max_energy_range_uj").value_or(0), {}, 0});
    }
    if (refused) notes_.emplace_back("the CPU's energy counters may be read by root only: no power and no energy");
  }

  void read_power(std::vector<Reading>& into) {
    if (packages_.empty()) return;
    double joules = 0;
    for (Package& package : packages_) {
      const auto now = number(package.folder + "/energy_uj");
      if (!now) return;
      if (package.last_uj) {
        const double step = *now - *package.last_uj;
        package.since_begin_uj += step >= 0 ? step : step + package.range_uj;  // wrapped around
      }
      package.last_uj = now;
      joules += package.since_begin_uj * 1e-6;
    }
    const std::uint64_t now_ns = raw_now_ns();
    put(MetricId::kEnergy, joules, into);
    if (power_ns_ != 0 && now_ns > power_ns_) {
      put(MetricId::kPower, (joules - power_j_) / (static_cast<double>(now_ns - power_ns_) * 1e-9), into);
    }
    power_ns_ = now_ns;
    power_j_ = joules;
  }

  void read_state(std::vector<Reading>& into) {
    const CpuTime now = read_time();
    if (now.all > last_.all) {
      put(MetricId::kCpuUtilization, 100 * (now.busy - last_.busy) / (now.all - last_.all), into);
      last_ = now;
    }
    read_clock(into);
    read_temperature(into);
    read_memory(into);
  }

  // "cpu  user nice system idle iowait …": the first line is of all CPUs.
  CpuTime read_time() const {
    std::istringstream line(files_.line("proc/stat"));
    std::string word;
    line >> word;
    CpuTime time;
    double value = 0;
    for (int field = 0; field < 8 && line >> value; ++field) {  // what follows is counted in user already
      time.all += value;
      if (field != 3 && field != 4) time.busy += value;
    }
    return time;
  }

  void read_clock(std::vector<Reading>& into) {
    double sum = 0;
    int count = 0;
    std::istringstream lines(files_.text("proc/cpuinfo"));
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("cpu MHz")) continue;
      const std::size_t colon = line.find(':');
      const double mhz = colon == std::string::npos ? 0 : std::strtod(line.c_str() + colon + 1, nullptr);
      if (mhz > 0) sum += mhz, ++count;
    }
    if (count > 0) put(MetricId::kCpuClock, sum / count, into);
  }

  void read_temperature(std::vector<Reading>& into) {
    for (int i = 0; i < 64; ++i) {
      const std::string zone = "sys/class/thermal/thermal_zone" + std::to_string(i);
      const std::string type = files_.line(zone + "/type");
      if (type.empty()) return;
      if (!type.starts_with("x86_pkg_temp")) continue;
      if (const auto millis = number(zone + "/temp")) put(MetricId::kTemperature, *millis * 1e-3, into);
      return;
    }
  }

  void read_memory(std::vector<Reading>& into) {
    const double total = 1024 * std::strtod(files_.value("proc/meminfo", "MemTotal").c_str(), nullptr);
    const double available = 1024 * std::strtod(files_.value("proc/meminfo", "MemAvailable").c_str(), nullptr);
    if (total <= 0) return;
    put(MetricId::kMemoryUsed, total - available, into);
    put(MetricId::kMemoryTotal, total, into);
  }

  SystemFiles files_;
  std::vector<TelemetryDevice> devices_;
  std::vector<Package> packages_;
  std::vector<std::string> notes_;
  CpuTime last_;
  std::uint64_t power_ns_ = 0;
  double power_j_ = 0;
};

}  // namespace

const Metric& info_of(MetricId id) { return kMetrics[static_cast<std::size_t>(id)]; }
std::span<const Metric> metrics() { return kMetrics; }

const Metric* find_metric(std::string_view name) {
  for (const Metric& metric : kMetrics) {
    if (metric.name == name) return &metric;
  }
  return nullptr;
}

std::span<const ClockLimit> clock_limits() { return kClockLimits; }

std::unique_ptr<TelemetrySource> open_cpu_source(std::string root) {
  return std::make_unique<CpuSource>(std::move(root));
}

}  // namespace llmprof::hw
