#include "base/errors.h"
#include "bench/roofline/roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/human.h"
#include "bench/cpu/blas.h"
#include "wire/clock.h"

namespace llmprof::bench {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kOneCore = ", one core", kBlas = ", OpenBLAS";

struct Effort {
  milliseconds compute;  // per instruction set
  milliseconds blas;     // per type and number of threads
  milliseconds stream;   // per stream, level and number of threads
};
Effort effort_of(bool quick) {
  if (quick) return {milliseconds(120), milliseconds(250), milliseconds(60)};
  return {milliseconds(400), milliseconds(800), milliseconds(250)};
}

hw::Peak wanted(std::string quantity, std::string type) {
  std::string unit = quantity == "flops" ? "FLOP/s" : "B/s";
  return wanted_peak(std::move(quantity), std::move(type), std::move(unit));
}

double process_cpu_seconds() { return static_cast<double>(wire::read_clock_ns(CLOCK_PROCESS_CPUTIME_ID)) * 1e-9; }

// A product of some 30 ms: large enough for any cache blocking, small enough for many rounds.
std::int64_t edge_of(std::int64_t threads, Type type) {
  const double flops = 0.03 * 60e9 * static_cast<double>(threads) / (type == Type::kFloat64 ? 2 : 1);
  const auto edge = static_cast<std::int64_t>(std::cbrt(flops / 2));
  return std::clamp<std::int64_t>(edge / 64 * 64, 256, 8192);
}

Result<hw::Peak> measure_blas(Type type, std::int64_t threads, milliseconds time, const GoOn& go_on) {
  LLMPROF_LET(const CpuBlas* blas, cpu_blas());
  const std::int64_t edge = edge_of(threads, type);
  const auto values = static_cast<std::size_t>(edge * edge);
  const auto fill = [&](auto& data) {
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i % 1021) / 1021 - 0.5f;
  };
  std::vector<float> floats(type == Type::kFloat32 ? 3 * values : 0);
  std::vector<double> doubles(type == Type::kFloat64 ? 3 * values : 0);
  fill(floats);
  fill(doubles);
  blas->set_threads(threads);
  hw::BestRound best;
  for (const auto end = hw::PeakClock::now() + time; best.rounds < 3 || hw::PeakClock::now() < end;) {
    if (!go_on()) return Error{ErrorCode::kInterrupted, "interrupted", ""};
    hw::Work work;
    const double cpu_before = process_cpu_seconds();
    work.begin = hw::PeakClock::now();
    if (type == Type::kFloat32) {
      blas->sgemm(edge, edge, edge, &floats[0], &floats[values], &floats[2 * values]);
    } else {
      blas->dgemm(edge, edge, edge, &doubles[0], &doubles[values], &doubles[2 * values]);
    }
    work.end = hw::PeakClock::now();
    work.cpu_seconds = process_cpu_seconds() - cpu_before;
    work.amount = 2 * static_cast<double>(edge) * static_cast<double>(edge) * static_cast<double>(edge);
    best.offer(work, threads, "");
  }
  return hw::measured_peak(
      "flops", std::string(type_name(type)) + std::string(kBlas), best.per_second, "FLOP/s",
      fmt::format("{} product of {}x{}x{}, {}", blas->version(), edge, edge, edge, best.text(threads, "rounds")));
}

void add_flops(std::vector<RooflineStep>& steps, Type type, const hw::Device& device, const Effort& effort) {
  const std::string name(type_name(type));
  const double loop_seconds = 2.2 * std::chrono::duration<double>(effort.compute).count();
  const double blas_seconds = std::chrono::duration<double>(effort.blas).count();
  for (const bool one : {false, true}) {
    const std::int64_t threads = one ? 1 : std::max<std::int64_t>(1, device.units);
    const std::string suffix(one ? kOneCore : "");
    const auto renamed = [suffix](Result<hw::Peak> peak) {
      if (peak) peak->type += suffix;
      return peak;
    };
    steps.push_back({name + " multiply-adds" + suffix, loop_seconds, wanted("flops", name + suffix),
                     one_peak([=](const GoOn& go_on) {
                       return renamed(hw::measure_multiply_add(hw::CpuTeam(threads), name, effort.compute, go_on));
                     })});
    steps.push_back(
        {name + " products" + suffix, blas_seconds, wanted("flops", name + std::string(kBlas) + suffix),
         one_peak([=](const GoOn& go_on) { return renamed(measure_blas(type, threads, effort.blas, go_on)); })});
  }
}

// All streams of one level; the buffer is made, touched and gone with it.
Result<std::vector<hw::PeakRow>> measure_level(const hw::StreamLevel& level, std::int64_t threads, bool one_core,
                                               milliseconds time, const GoOn& go_on) {
  std::vector<hw::PeakRow> rows;
  const hw::CpuTeam team(threads);
  const hw::PeakBuffer buffer(std::max<std::size_t>(1, level.bytes_per_thread * static_cast<std::size_t>(team.size())));
  if (buffer.data() == nullptr) {
    return unsupported_error("no {} of memory", base::human_bytes(static_cast<double>(buffer.bytes())));
  }
  if (level.bytes_per_thread > 0) LLMPROF_TRY(hw::touch(team, buffer));
  for (const hw::Stream stream : hw::kAllStreams) {
    Result<hw::Peak> peak = hw::measure_stream(team, stream, level, buffer, time, go_on);
    if (!peak && peak.error().code == ErrorCode::kInterrupted) return peak.error();
    hw::PeakRow row{wanted("bandwidth", hw::stream_type(stream, level, one_core)), ""};
    if (peak) {
      const std::string type = row.peak.type;
      row.peak = std::move(*peak);
      row.peak.type = type;
    } else {
      row.why = peak.error().message;
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

void add_streams(std::vector<RooflineStep>& steps, const hw::Device& device, const Effort& effort) {
  const hw::Cpu cpu = hw::read_cpu(hw::SystemFiles());
  for (const bool one : {false, true}) {
    const std::int64_t threads = one ? 1 : std::max<std::int64_t>(1, device.units);
    std::vector<hw::StreamLevel> levels = hw::stream_levels(cpu, device, threads);
    std::reverse(levels.begin(), levels.end());  // memory first: it is what all percentages need
    for (const hw::StreamLevel& level : levels) {
      const bool memory = level.name.empty();
      const double seconds = 4 * std::chrono::duration<double>(effort.stream).count() + (memory ? 0.8 : 0.05);
      steps.push_back({fmt::format("streams in {}{}", memory ? "memory" : level.name, one ? kOneCore : ""), seconds,
                       wanted("bandwidth", hw::stream_type(hw::Stream::kRead, level, one)),
                       [=](const GoOn& go_on) { return measure_level(level, threads, one, effort.stream, go_on); }});
    }
  }
}

}  // namespace

std::vector<RooflineStep> cpu_steps(const hw::Device& device, const RooflineOptions& options) {
  const Effort effort = effort_of(options.quick);
  std::vector<RooflineStep> steps;
  std::vector<Type> types = options.types;
  if (types.empty()) types = {Type::kFloat32, Type::kFloat64};
  for (const Type type : types) {
    if (type == Type::kFloat32 || type == Type::kFloat64) {
      add_flops(steps, type, device, effort);
      continue;
    }
    const std::string name(type_name(type));
    steps.push_back({name, 0, wanted("flops", name), [name](const GoOn&) -> Result<std::vector<hw::PeakRow>> {
                       return unsupported_error(
                           "{} is not measured on a CPU: neither the multiply-add loop nor "
                           "OpenBLAS computes in it",
                           name);
                     }});
  }
  add_streams(steps, device, effort);
  return steps;
}

}  // namespace llmprof::bench
