#pragma once
// Writes rows of a run with few words: one process, CPU device 1, ids counted up.

#include <string>
#include <string_view>

#include "trace/run_writer.h"

namespace llmprof::traces {

struct Gemm {
  std::int64_t m = 0, n = 0, k = 0;
};

class Builder {
 public:
  Builder(trace::RunWriter& writer, std::int64_t end_ns) : writer_(writer) {
    writer_.add(trace::ProcessRow{.id = 1,
                                  .pid = 100,
                                  .executable = name("/bin/tiny"),
                                  .begin_ns = 0,
                                  .end_ns = end_ns,
                                  .exit_status = 0,
                                  .injected = true});
    writer_.add(trace::DeviceRow{.id = 1,
                                 .kind = name("cpu"),
                                 .name = name("Toy CPU"),
                                 .chip = name("x86-64-v3"),
                                 .units = 2,
                                 .memory_bytes = 1'000'000'000,
                                 .cache_bytes = 1024});
  }

  trace::Name name(std::string_view text) { return text.empty() ? trace::Name{} : writer_.strings().intern(text); }

  void thread(std::int64_t id) { writer_.add(trace::ThreadRow{.id = id, .process_id = 1, .tid = 100 + id}); }

  void peak(std::string_view quantity, std::string_view type, double value, std::string_view unit,
            std::int64_t device_id = 1) {
    writer_.add(trace::PeakRow{.device_id = device_id,
                               .quantity = name(quantity),
                               .type = name(type),
                               .value = value,
                               .unit = name(unit),
                               .source = name("measured"),
                               .method = name("by hand")});
  }

  void range(std::string_view category, std::string_view text, std::int64_t begin, std::int64_t end,
             std::int64_t payload = 0, std::int64_t thread_id = 1) {
    trace::RangeRow row{.id = next_id_++,
                        .begin_ns = begin,
                        .end_ns = end,
                        .name = name(text),
                        .kind = name("push_pop"),
                        .process_id = 1,
                        .thread_id = thread_id,
                        .domain = name(category.empty() ? "" : "llmprof"),
                        .category = name(category)};
    if (payload != 0) row.payload = payload;
    if (begin == end) row.kind = name("mark");
    row.source = name("nvtx");
    writer_.add(row);
  }

  void cost(trace::CollectorCostRow row) {
    row.process_id = 1;
    row.range_event_ns = 10;
    row.gemm_event_ns = 50;
    writer_.add(row);
  }

  void kernel(std::string_view text, std::int64_t begin, std::int64_t end, std::int64_t thread_id = 1) {
    writer_.add(trace::KernelRow{.id = next_id_++,
                                 .begin_ns = begin,
                                 .end_ns = end,
                                 .name = name(text),
                                 .device_id = 1,
                                 .thread_id = thread_id});
  }

  void gemm(std::int64_t begin, std::int64_t end, Gemm shape) {
    const std::int64_t kernel_id = next_id_;
    kernel("cblas_sgemm", begin, end);
    trace::GemmRow row{.id = next_id_++,
                       .begin_ns = begin,
                       .end_ns = end,
                       .kernel_id = kernel_id,
                       .thread_id = 1,
                       .library = name("openblas"),
                       .function = name("cblas_sgemm"),
                       .m = shape.m,
                       .n = shape.n,
                       .k = shape.k};
    row.type_a = row.type_b = row.type_c = name("float32");
    writer_.add(row);
  }

  // A module range with one product in it, which leaves 100 ns at each side.
  void product(std::string_view module, std::int64_t begin, std::int64_t end, Gemm shape) {
    range("module", module, begin, end);
    gemm(begin + 100, end - 100, shape);
  }

 private:
  trace::RunWriter& writer_;
  std::int64_t next_id_ = 1;
};

inline trace::RunInfo run_info(std::vector<std::string> command) {
  trace::RunInfo info;
  info.llmprof_version = "0.0.0";
  info.created = "2026-01-02T03:04:05Z";
  info.command = std::move(command);
  info.environment = R"({"system": {"distribution": "Toy Linux", "kernel": "6.0"}})";
  info.source = "synthetic";
  return info;
}

}  // namespace llmprof::traces
