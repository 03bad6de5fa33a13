// How fast a log of GPU work becomes a run, and how small: an eager decode loop as transformers makes it (16 layers of
// 43 kernels a token, 7 of them matrix products), launches and kernels as CUPTI gives them, ingested from the page
// cache. Prints records/s, bytes of the log and of the kernel table per kernel, and peak memory.
//   gpu_ingest_rate [million kernels, default 1] [folder, default /tmp]

#include <fmt/format.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "record/run/capture.h"
#include "record/testing/cuda_log_builder.h"
#include "record/run/ingest.h"

namespace {

using namespace llmprof;

constexpr std::size_t kSection = 1024;
constexpr int kLayers = 16, kKernelsOfLayer = 43;

std::uint64_t random_state = 42;
std::uint64_t random_below(std::uint64_t limit) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (random_state >> 33) % limit;
}

class Source {
 public:
  explicit Source(record::LogBuilder& log) : log_(log), cuda_(log) {
    log.thread(1, 5001, "python3", now_);
    cuda_.device(0, "NVIDIA H200", 1, 2);
    for (int i = 0; i < kKernelsOfLayer; ++i) {
      shapes_.push_back(cuda_.kernel_shape(fmt::format("kernel_{}", i % 17), 16u << (i % 7)));
      durations_.push_back(1200 + 700 * static_cast<std::uint64_t>(i % 5) + (i % 6 == 0 ? 9000 : 0));
    }
    product_ = cuda_.gemm_shape();
  }

  void token() {
    for (int layer = 0; layer < kLayers; ++layer) {
      for (int i = 0; i < kKernelsOfLayer; ++i) kernel(i);
    }
  }
  void flush() {
    for (std::vector<wire::Record>* records : {&launches_, &gemms_}) {
      if (!records->empty()) log_.add(1, *records);
      records->clear();
    }
    if (!kernels_.empty()) log_.add(0, kernels_);
    kernels_.clear();
  }

 private:
  void kernel(int number) {
    const bool product = number % 6 == 0;
    const std::uint64_t call_ns = now_;
    now_ += product ? 1500 + random_below(300) : 0;
    wire::Record launch = record::LogBuilder::make(wire::RecordKind::kLaunch);
    launch.launch = {.begin_ns = now_,
                     .end_ns = now_ + 2100 + random_below(400),
                     .correlation = correlation_,
                     .op = wire::LaunchOp::kKernel};
    now_ = launch.launch.end_ns + 300;
    if (product) {
      wire::Record gemm = record::LogBuilder::make(wire::RecordKind::kGpuGemm);
      gemm.gpu_gemm = {
          .begin_ns = call_ns, .end_ns = now_, .m = 2048, .n = 1, .k = 8192, .batch = 1, .shape = product_};
      gemms_.push_back(gemm);
    }
    now_ += 5000 + random_below(random_below(20) == 0 ? 20'000 : 1500);
    const auto at = static_cast<std::size_t>(number);
    const std::uint64_t begin_ns = std::max(device_ns_ + 900 + random_below(200), launch.launch.begin_ns + 4000);
    device_ns_ = begin_ns + durations_[at] + random_below(1 + durations_[at] / 32);
    wire::Record kernel = record::LogBuilder::make(wire::RecordKind::kKernel);
    kernel.kernel = {.begin_ns = begin_ns,
                     .end_ns = device_ns_,
                     .correlation = correlation_,
                     .shape = shapes_[at],
                     .stream = 7,
                     .context = 1};
    launches_.push_back(launch);
    kernels_.push_back(kernel);
    correlation_ += 3;
    if (kernels_.size() == kSection) flush();
  }

  record::LogBuilder& log_;
  record::CudaLogBuilder cuda_;
  std::uint64_t now_ = 2'000'000, device_ns_ = 0;
  std::uint32_t correlation_ = 100;
  std::vector<wire::DefinitionId> shapes_;
  std::vector<std::uint64_t> durations_;
  wire::DefinitionId product_ = 0;
  std::vector<wire::Record> launches_, gemms_, kernels_;
};

std::uint64_t write_log(const std::string& path, std::uint64_t kernels) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  record::LogBuilder log;
  log.process({.ts_ns = 1'000'000, .pid = 4242, .start_ticks = 1}, "/usr/bin/python3", "python3");
  Source source(log);
  const std::uint64_t tokens = kernels / (kLayers * kKernelsOfLayer);
  for (std::uint64_t i = 0; i < tokens; ++i) {
    source.token();
    std::fwrite(log.bytes().data(), 1, log.bytes().size(), file);
    log.clear_bytes();
  }
  source.flush();
  std::fwrite(log.bytes().data(), 1, log.bytes().size(), file);
  std::fclose(file);
  return tokens * kLayers * kKernelsOfLayer;
}

double table_bytes(const std::string& run, const std::string& table) {
  double bytes = 0;
  for (const std::string& name : base::list_directory(run + "/tables")) {
    if (name.starts_with(table + ".")) bytes += static_cast<double>(base::file_bytes(run + "/tables/" + name));
  }
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  const double millions = argc > 1 ? std::atof(argv[1]) : 1;
  std::string folder = std::string(argc > 2 ? argv[2] : "/tmp") + "/gpu_ingest_rate_XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) return 1;
  const std::string run = folder + "/x.llmprof";
  record::CaptureInfo info;
  info.root_pid = 4242;
  info.root_start_ticks = 1;
  info.begin = {1'000'000, 1'700'000'000'000'000'000, 50};
  (void)base::make_directories(record::capture_folder(run));
  (void)record::write_capture_info(record::capture_folder(run), info);
  const auto kernels = static_cast<double>(
      write_log(record::capture_folder(run) + "/a.log", static_cast<std::uint64_t>(millions * 1e6)));
  rusage before{};
  ::getrusage(RUSAGE_SELF, &before);
  const auto begin = std::chrono::steady_clock::now();
  const auto tally = record::ingest(run, {}, base::no_progress);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto cpu_s = [](const rusage& at) {
    return static_cast<double>(at.ru_utime.tv_sec + at.ru_stime.tv_sec) +
           static_cast<double>(at.ru_utime.tv_usec + at.ru_stime.tv_usec) * 1e-6;
  };
  const double kernel_table = table_bytes(run, "kernel"), gemm_table = table_bytes(run, "gemm");
  std::error_code ignored;
  if (argc <= 3) std::filesystem::remove_all(folder, ignored);
  if (!tally) {
    fmt::print(stderr, "gpu_ingest_rate: {}\n", tally.error().message);
    return 1;
  }
  const auto records = static_cast<double>(tally->records);
  fmt::print("{:.0f} kernels, {:.0f} records in {:.2f} s: {:.2f} M records/s, {:.2f} M kernels/s\n", kernels, records,
             seconds, records / seconds / 1e6, kernels / seconds / 1e6);
  fmt::print("log {:.1f} B per kernel; kernel table {:.2f} B per kernel, product table {:.2f} B per product\n",
             static_cast<double>(tally->log_bytes) / kernels, kernel_table / kernels,
             gemm_table / static_cast<double>(tally->gemms));
  fmt::print("{:.2f} s of CPU, peak memory {} MiB\n", cpu_s(usage) - cpu_s(before), usage.ru_maxrss / 1024);
  return 0;
}
