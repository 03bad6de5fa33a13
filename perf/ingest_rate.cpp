// How fast capture logs become a run: builds a log of N million events as a decode loop makes them (nested ranges
// around BLAS calls), ingests it from the page cache, prints events/s, bytes per event and peak memory.
//   ingest_rate [million events, default 10] [folder, default /tmp]

#include <fmt/format.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "record/run/capture.h"
#include "record/run/ingest.h"
#include "record/testing/log_builder.h"

namespace {

using namespace llmprof;

constexpr std::uint64_t kThreads = 2;
constexpr std::size_t kSection = 1024;      // records of one thread that a collector stores together
constexpr std::size_t kEventsPerLayer = 6;  // push, push, gemm, pop, gemm, pop

std::uint64_t random_state = 42;
std::uint64_t random_below(std::uint64_t limit) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (random_state >> 33) % limit;
}

// One thread's events, collected until a section is full.
class Source {
 public:
  Source(record::LogBuilder& log, std::uint32_t number) : log_(log), number_(number) {
    log.thread(number, 5000 + number, "worker", now_);
    for (int layer = 0; layer < 32; ++layer) modules_.push_back(log.name(fmt::format("layers.{}.mlp.up_proj", layer)));
    decode_ = log.name("decode");
    function_ = log.name("cblas_sgemm");
    library_ = log.name("/usr/lib/x86_64-linux-gnu/libopenblas.so.0");
  }

  void layer() {
    range(wire::RangeOp::kPush, decode_, 0);
    range(wire::RangeOp::kPush, modules_[random_below(modules_.size())], 1);
    gemm(4096);
    range(wire::RangeOp::kPop, 0, 1);
    gemm(11008);
    range(wire::RangeOp::kPop, 0, 0);
  }
  void flush() {
    if (!ranges_.empty()) log_.add(number_, ranges_);
    if (!gemms_.empty()) log_.add(number_, gemms_);
    ranges_.clear();
    gemms_.clear();
  }

 private:
  std::uint64_t tick(std::uint64_t about_ns) { return now_ += about_ns + random_below(about_ns); }

  void range(wire::RangeOp op, wire::StringId name, std::uint16_t level) {
    wire::Record record = record::LogBuilder::make(wire::RecordKind::kRange);
    record.range.ts_ns = tick(300);
    record.range.name = name;
    record.range.op = op;
    record.range.level = level;
    ranges_.push_back(record);
    if (ranges_.size() == kSection) flush();
  }
  void gemm(std::int64_t n) {
    wire::Record record = record::LogBuilder::make(wire::RecordKind::kGemm);
    record.gemm = {.begin_ns = tick(200),
                   .end_ns = tick(20'000),
                   .m = 1,
                   .n = n,
                   .k = 4096,
                   .batch = 1,
                   .function = function_,
                   .library = library_,
                   .type = wire::ElementType::kFloat32,
                   .layout = wire::Layout::kRowMajor,
                   .trans_a = wire::Transpose::kNo,
                   .trans_b = wire::Transpose::kYes};
    gemms_.push_back(record);
  }

  record::LogBuilder& log_;
  std::uint32_t number_;
  std::uint64_t now_ = 2'000'000;
  std::vector<wire::StringId> modules_;
  wire::StringId decode_ = 0, function_ = 0, library_ = 0;
  std::vector<wire::Record> ranges_, gemms_;
};

// Returns the number of events written.
std::uint64_t write_log(const std::string& path, std::uint64_t events) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  record::LogBuilder log;
  log.process({.ts_ns = 1'000'000, .pid = 4242, .start_ticks = 1}, "/usr/bin/python3", "python3");
  std::vector<Source> sources;
  for (std::uint32_t i = 1; i <= kThreads; ++i) sources.emplace_back(log, i);
  const std::uint64_t layers = events / kEventsPerLayer;
  for (std::uint64_t i = 0; i < layers; ++i) {
    sources[i % kThreads].layer();
    if (i % 10'000 != 0) continue;
    std::fwrite(log.bytes().data(), 1, log.bytes().size(), file);
    log.clear_bytes();
  }
  for (Source& source : sources) source.flush();
  std::fwrite(log.bytes().data(), 1, log.bytes().size(), file);
  std::fclose(file);
  return layers * kEventsPerLayer;
}

void prepare(const std::string& folder) {
  record::CaptureInfo info;
  info.root_pid = 4242;
  info.root_start_ticks = 1;
  info.begin = {1'000'000, 1'700'000'000'000'000'000, 50};
  (void)base::make_directories(record::capture_folder(folder));
  (void)record::write_capture_info(record::capture_folder(folder), info);
}

}  // namespace

int main(int argc, char** argv) {
  const double millions = argc > 1 ? std::atof(argv[1]) : 10;
  std::string folder = std::string(argc > 2 ? argv[2] : "/tmp") + "/ingest_rate_XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) return 1;
  const std::string run = folder + "/x.llmprof";
  prepare(run);
  const std::uint64_t events =
      write_log(record::capture_folder(run) + "/a.log", static_cast<std::uint64_t>(millions * 1e6));

  rusage before{}, after{};
  ::getrusage(RUSAGE_SELF, &before);
  const auto begin = std::chrono::steady_clock::now();
  const auto tally = record::ingest(run, {}, base::no_progress);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  ::getrusage(RUSAGE_SELF, &after);
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  if (!tally) {
    fmt::print(stderr, "ingest_rate: {}\n", tally.error().message);
    return 1;
  }
  const auto cpu = [](const rusage& usage) {
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
  };
  const auto count = static_cast<double>(events);
  fmt::print("events            {:.1f} M ({} kernels, {} ranges)\n", count * 1e-6, tally->kernels, tally->ranges);
  fmt::print("ingest            {:.2f} s, {:.2f} M events/s, {:.2f} s of CPU\n", seconds, count / seconds * 1e-6,
             cpu(after) - cpu(before));
  fmt::print("log               {:.2f} bytes per event\n", static_cast<double>(tally->log_bytes) / count);
  fmt::print("run               {:.2f} bytes per event\n", static_cast<double>(tally->run_bytes) / count);
  fmt::print("peak memory       {:.0f} MiB\n", static_cast<double>(after.ru_maxrss) / 1024);
  return 0;
}
