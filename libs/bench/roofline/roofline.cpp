#include "bench/roofline/roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>

#include "bench/cuda/context.h"
#include "bench/roofline/cuda.h"
#include "hw/cpu/cpu.h"
#include "hw/gpu/usage.h"
#include "hw/resolve.h"

namespace llmprof::bench {

namespace {

using Clock = std::chrono::steady_clock;

std::optional<int> number_in(std::string_view text) {
  int value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || problem != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

void append(std::vector<RooflineStep>& steps, std::vector<RooflineStep> more) {
  std::move(more.begin(), more.end(), std::back_inserter(steps));
}

Result<Roofline> measure_cpu(const RooflineOptions& options, const base::Progress& progress) {
  Roofline out{.device = hw::probe_cpu()};
  const std::optional<double> busy = hw::busy_share(hw::SystemFiles(), std::chrono::milliseconds(100));
  if (busy && *busy > hw::kIdle) {
    out.notes.push_back(
        fmt::format("other programs used {:.0f} % of the CPUs just before: the figures may be too low", *busy * 100));
  }
  LLMPROF_LET(out.rows, run_steps(cpu_steps(out.device, options), progress));
  settle_cpu(out.rows);
  return out;
}

Result<Roofline> measure_gpu(int index, const RooflineOptions& options, const base::Progress& progress) {
  LLMPROF_LET(const std::unique_ptr<cuda::Context> context, cuda::Context::open(index));
  Roofline out{.device = device_of(context->properties())};
  out.notes = hw::gpu_notes(context->properties().bus_id, true);
  std::vector<RooflineStep> steps = cuda_memory_steps(*context, options);
  append(steps, cuda_transfer_steps(*context, options));
  append(steps, cuda_launch_steps(*context));
  append(steps, cuda_vector_steps(*context, options));
  append(steps, cuda_product_steps(*context, options));  // last: they heat the device most
  LLMPROF_LET(out.rows, run_steps(steps, progress));
  const hw::DeviceSpec* spec = hw::find_device(out.device.name);
  for (hw::PeakRow& row : out.rows) {
    if (row.why.empty()) row.why = hw::above_spec(row.peak, spec, out.device);
    if (!row.why.empty()) row.peak.value = 0;
  }
  return out;
}

int gpu_count() {
  const Result<int> count = cuda::Context::device_count();
  return count ? *count : 0;
}

std::string reason(const Error& error) {
  return error.hint.empty() ? error.message : error.message + "; " + error.hint;
}

}  // namespace

void settle_cpu(std::vector<hw::PeakRow>& rows) {
  const auto raise = [&](hw::PeakRow& row, const std::string& type, const std::string& remark) {
    for (const hw::PeakRow& other : rows) {
      if (other.peak.quantity != row.peak.quantity || other.peak.type != type) continue;
      if (!other.why.empty() || other.peak.value <= row.peak.value) continue;
      row.peak.value = other.peak.value;
      row.peak.source = other.peak.source;
      row.peak.method = other.peak.method + remark;
      row.why.clear();
    }
  };
  for (const std::string type : {"float32", "float64"}) {
    for (hw::PeakRow& row : rows) {
      if (row.peak.type == type + ", one core") raise(row, type + ", OpenBLAS, one core", "");
      if (row.peak.type == type) raise(row, type + ", OpenBLAS", "");
    }
    for (hw::PeakRow& row : rows) {
      if (row.peak.type == type) raise(row, type + ", one core", "; all cores less: " + row.peak.method);
    }
  }
}

Result<RooflineTarget> parse_roofline_target(std::string_view name, int gpus) {
  if (name == "cpu" || (name.empty() && gpus == 0)) return RooflineTarget{.cpu = true};
  std::optional<int> index;
  if (name.empty() || name == "cuda" || name == "gpu") index = 0;
  if (name.starts_with("cuda:")) index = number_in(name.substr(5));
  if (!index) index = number_in(name);
  if (!index) {
    return Error{ErrorCode::kUsage, fmt::format("unknown device {}", name),
                 "cpu, cuda or cuda:N; `llmprof devices` lists this machine's"};
  }
  // Without a GPU the driver's own reason is better than a count: Context::open gives it.
  if (gpus > 0 && *index >= gpus) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("no device cuda:{}: this machine has {}, counted from 0", *index, gpus),
                 "`llmprof devices` lists them"};
  }
  return RooflineTarget{.cpu = false, .index = *index};
}

hw::Device device_of(const cuda::Properties& properties) {
  for (hw::Device& device : hw::probe_gpus()) {
    // Two GPUs of one machine with one name are of one kind: they share a fingerprint.
    if (device.name == properties.name) {
      if (device.cache_bytes == 0) device.cache_bytes = properties.l2_bytes;
      return device;
    }
  }
  hw::Device device{.kind = "gpu", .name = properties.name, .chip = fmt::format("sm_{}", properties.capability())};
  device.units = properties.multiprocessors;
  device.memory_bytes = properties.memory_bytes;
  device.cache_bytes = properties.l2_bytes;
  if (properties.clock_mhz > 0) device.clock_mhz = properties.clock_mhz;
  return device;
}

Result<hw::Device> roofline_device(const std::string& name) {
  LLMPROF_LET(const RooflineTarget target, parse_roofline_target(name, gpu_count()));
  if (target.cpu) return hw::probe_cpu();
  LLMPROF_LET(const std::unique_ptr<cuda::Context> context, cuda::Context::open(target.index));
  return device_of(context->properties());
}

Result<Roofline> measure_roofline(const std::string& name, const RooflineOptions& options,
                                  const base::Progress& progress) {
  const auto begin = Clock::now();
  LLMPROF_LET(const RooflineTarget target, parse_roofline_target(name, gpu_count()));
  LLMPROF_LET(Roofline out, target.cpu ? measure_cpu(options, progress) : measure_gpu(target.index, options, progress));
  for (hw::PeakRow& row : out.rows) {
    if (options.quick && row.why.empty()) row.peak.method += fmt::format(", {}", hw::kShortMeasurement);
  }
  out.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return out;
}

Result<std::vector<hw::PeakRow>> run_steps(const std::vector<RooflineStep>& steps, const base::Progress& progress) {
  double total = 0, done = 0;
  for (const RooflineStep& step : steps) total += step.seconds;
  std::vector<hw::PeakRow> rows;
  for (const RooflineStep& step : steps) {
    const auto begin = Clock::now();
    const GoOn go_on = [&] {
      const double spent = std::chrono::duration<double>(Clock::now() - begin).count();
      return progress({step.name, done + std::min(spent, step.seconds), total, "s"});
    };
    if (!go_on()) return Error{ErrorCode::kInterrupted, "interrupted; the stored peaks are as they were", ""};
    Result<std::vector<hw::PeakRow>> measured = step.run(go_on);
    if (measured) {
      std::move(measured->begin(), measured->end(), std::back_inserter(rows));
    } else if (measured.error().code == ErrorCode::kInterrupted) {
      return Error{ErrorCode::kInterrupted, "interrupted; the stored peaks are as they were", ""};
    } else {
      rows.push_back({step.wanted, reason(measured.error())});
    }
    done += step.seconds;
  }
  return rows;
}

hw::Peak wanted_peak(std::string quantity, std::string type, std::string unit) {
  hw::Peak peak;
  peak.quantity = std::move(quantity);
  peak.type = std::move(type);
  peak.unit = std::move(unit);
  return peak;
}

std::function<Result<std::vector<hw::PeakRow>>(const GoOn&)> one_peak(
    std::function<Result<hw::Peak>(const GoOn&)> run) {
  return [run = std::move(run)](const GoOn& go_on) -> Result<std::vector<hw::PeakRow>> {
    LLMPROF_LET(hw::Peak peak, run(go_on));
    return std::vector<hw::PeakRow>{{std::move(peak), ""}};
  };
}

}  // namespace llmprof::bench
