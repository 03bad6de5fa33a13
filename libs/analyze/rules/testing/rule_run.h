#pragma once
// For tests of rules: a small run of a GPU, written row by row, and what the diagnosis says of it. Times are in ns.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyze/rules/rule.h"
#include "analyze/summary.h"
#include "trace/run.h"
#include "trace/run_writer.h"
#include "trace/test_run.h"

namespace llmprof::analyze {

inline constexpr std::int64_t kGpu = 9;

struct StepSizes {
  std::int64_t batch = 0, tokens = 0, context = 0;
};

class RuleRun {
 public:
  explicit RuleRun(std::int64_t end_ns = 1'000'000, std::optional<std::int64_t> rank = {})
      : writer_(std::move(*trace::RunWriter::create(folder_ / "x.llmprof"))) {
    process(1, end_ns, rank);
    thread(1);
    gpu(kGpu);
  }

  trace::Name name(std::string_view text) { return text.empty() ? trace::Name{} : writer_.strings().intern(text); }
  template <class Row>
  void add(const Row& row) {
    writer_.add(row);
  }
  std::int64_t next_id() { return ++last_id_; }

  void process(std::int64_t id, std::int64_t end_ns, std::optional<std::int64_t> rank = {}) {
    trace::ProcessRow row{.id = id, .pid = 100 + id, .executable = name("/bin/serve"), .begin_ns = 0, .end_ns = end_ns};
    row.injected = true;
    if (rank) row.rank = *rank;
    add(row);
  }
  void thread(std::int64_t id, std::int64_t process_id = 1) {
    add(trace::ThreadRow{.id = id, .process_id = process_id, .tid = 100 + id});
  }
  // Ten multiprocessors of an H100, at most 2 GHz.
  void gpu(std::int64_t id) {
    trace::DeviceRow row{.id = id, .kind = name("gpu"), .name = name("Toy GPU"), .chip = name("sm_90"), .units = 10};
    row.memory_bytes = 1'000'000'000, row.cache_bytes = 1024, row.clock_mhz = 2000;
    row.uuid = name("GPU-" + std::to_string(id));
    add(row);
  }
  void peak(std::string_view quantity, std::string_view type, double value, std::int64_t device_id = kGpu) {
    add(trace::PeakRow{.device_id = device_id,
                       .quantity = name(quantity),
                       .type = name(type),
                       .value = value,
                       .unit = name(quantity == "flops" ? "FLOP/s" : "B/s"),
                       .source = name("measured"),
                       .method = name("by hand")});
  }

  void range(std::string_view category, std::string_view text, std::int64_t begin, std::int64_t end,
             StepSizes size = {}, std::int64_t thread_id = 1) {
    trace::RangeRow row{.id = next_id(),
                        .begin_ns = begin,
                        .end_ns = end,
                        .name = name(text),
                        .kind = name("push_pop"),
                        .process_id = thread_id <= 1 ? 1 : process_of(thread_id),
                        .thread_id = thread_id};
    row.domain = name("llmprof"), row.category = name(category), row.source = name("nvtx");
    const std::int64_t payload = size.batch | size.tokens << 16 | size.context << 40;
    if (payload != 0) row.payload = payload;
    add(row);
  }
  void step(std::string_view stage, std::int64_t begin, std::int64_t end, StepSizes size = {},
            std::int64_t thread_id = 1) {
    range("step", stage, begin, end, size, thread_id);
  }

  trace::KernelRow kernel_row(std::string_view text, std::int64_t launched, std::int64_t begin, std::int64_t end) {
    trace::KernelRow row{.id = next_id(),
                         .begin_ns = begin,
                         .end_ns = end,
                         .name = name(text),
                         .device_id = kGpu,
                         .stream = 7,
                         .thread_id = 1};
    row.launch_begin_ns = launched, row.launch_end_ns = launched + 1;
    return row;
  }
  void kernel(std::string_view text, std::int64_t launched, std::int64_t begin, std::int64_t end) {
    add(kernel_row(text, launched, begin, end));
  }
  trace::GemmRow gemm_row(std::int64_t begin, std::int64_t m, std::int64_t n, std::int64_t k) {
    trace::GemmRow row{.id = next_id(),
                       .begin_ns = begin,
                       .end_ns = begin + 2,
                       .thread_id = 1,
                       .library = name("libcublas.so.13"),
                       .function = name("cublasGemmEx"),
                       .m = m,
                       .n = n,
                       .k = k};
    row.type_a = row.type_b = row.type_c = name("bfloat16");
    row.layout = name("column");
    return row;
  }
  // A product and the kernel that executes it; the call is made at `launched`.
  std::int64_t product(std::string_view text, std::int64_t launched, std::int64_t begin, std::int64_t end,
                       std::array<std::int64_t, 3> mnk, std::int64_t device_id = kGpu) {
    trace::KernelRow kernel = kernel_row(text, launched + 1, begin, end);
    trace::GemmRow gemm = gemm_row(launched, mnk[0], mnk[1], mnk[2]);
    gemm.end_ns = launched + 3;
    kernel.gemm_id = gemm.id, gemm.kernel_id = kernel.id, kernel.device_id = device_id;
    add(kernel);
    add(gemm);
    return kernel.id;
  }
  void copy(std::string_view direction, std::int64_t launched, std::int64_t begin, std::int64_t end, std::int64_t bytes,
            std::string_view memory = "pinned") {
    trace::CopyRow row{.id = next_id(),
                       .begin_ns = begin,
                       .end_ns = end,
                       .direction = name(direction),
                       .bytes = bytes,
                       .host_memory = name(memory),
                       .device_id = kGpu,
                       .stream = 8,
                       .thread_id = 1};
    row.launch_begin_ns = launched, row.launch_end_ns = launched + 1;
    add(row);
  }
  void counter(std::int64_t kernel_id, std::string_view metric, double value) {
    add(trace::CounterRow{.id = next_id(),
                          .scope = name("kernel"),
                          .scope_id = kernel_id,
                          .metric = name(metric),
                          .value = value,
                          .unit = name(""),
                          .method = name("ncu"),
                          .passes = 1});
  }
  // A window that counters were read over, with its values; of several passes the first has them.
  struct Counted {
    std::string_view scope = "range", name;
    std::int64_t begin_ns = 0, end_ns = 0, thread_id = 1;
    std::int32_t pass = 0, passes = 1;
    std::int64_t measurement = 0;  // of an earlier pass; 0: the first
    std::optional<std::int64_t> graph_launch_id, kernel_id;
    std::int64_t cost_ns = 0;
    std::vector<std::pair<std::string_view, double>> values;
  };
  std::int64_t counted(const Counted& of) {
    const bool sample = of.scope == "sample";
    const std::string_view method = sample ? "sampled" : of.scope == "kernel" ? "kernel" : "range";
    trace::CounterWindowRow row{.id = next_id(),
                                .scope = name(of.scope),
                                .method = name(method),
                                .begin_ns = of.begin_ns,
                                .end_ns = of.end_ns,
                                .device_id = kGpu,
                                .name = name(of.name),
                                .pass = of.pass,
                                .passes = of.passes,
                                .cost_ns = of.cost_ns};
    row.counter_window_id = of.measurement != 0 ? of.measurement : row.id;
    if (!sample) row.process_id = 1, row.thread_id = of.thread_id;
    if (of.graph_launch_id) row.graph_launch_id = *of.graph_launch_id;
    if (of.kernel_id) row.kernel_id = *of.kernel_id;
    add(row);
    for (const auto& [metric, value] : of.values) {
      trace::CounterRow counter{.id = next_id(), .scope = name(of.scope), .scope_id = row.id, .metric = name(metric)};
      if (of.kernel_id) counter.scope_id = *of.kernel_id;
      counter.value = value, counter.method = name(method), counter.passes = of.passes, counter.unit = name("");
      add(counter);
    }
    return row.id;
  }
  void reading(std::int64_t ts_ns, std::string_view metric, double value) {
    add(trace::TelemetryRow{
        .ts_ns = ts_ns, .device_id = kGpu, .metric = name(metric), .value = value, .unit = name("")});
  }
  void usage(std::int64_t ts_ns, std::int64_t cpu_ns, std::int64_t read_bytes) {
    trace::ProcessUsageRow row{.ts_ns = ts_ns, .process_id = 1, .threads = 1, .user_ns = cpu_ns};
    row.read_bytes = read_bytes;
    add(row);
  }

  // Writes the run and asks for its diagnosis, or all of its summary.
  Diagnosis diagnosis() { return summary().diagnosis; }
  Summary summary(const Options& options = {}) {
    trace::RunInfo info;
    info.llmprof_version = "0.0.0", info.created = "2026-01-02T03:04:05Z";
    info.source = "synthetic", info.environment = "{}";
    const auto written = writer_.finish(info);
    EXPECT_TRUE(written) << written.error().message;
    Result<trace::Run> run = trace::Run::open(folder_ / "x.llmprof");
    EXPECT_TRUE(run) << run.error().message;
    if (!run) return {};
    auto summary = summarise(*run, options);
    EXPECT_TRUE(summary) << (summary ? "" : summary.error().message);
    if (!summary) return {};
    for (const Finding& finding : summary->diagnosis.findings) {
      for (const Evidence& evidence : finding.evidence) {  // every link to rows is a statement that a user can run
        if (evidence.rows.empty()) continue;
        const auto rows = run->user_query(evidence.rows);
        EXPECT_TRUE(rows) << evidence.name << ": " << (rows ? "" : rows.error().message);
        if (rows) {
          EXPECT_FALSE(rows->rows.empty()) << evidence.name << ": " << evidence.rows;
        }
      }
    }
    return std::move(*summary);
  }

  std::string path() const { return folder_ / "x.llmprof"; }  // of what summary() wrote

 private:
  // Threads 1 … 9 belong to process 1, 10 … 19 to process 2, and so on.
  static std::int64_t process_of(std::int64_t thread_id) { return 1 + thread_id / 10; }

  trace::TestFolder folder_;
  trace::RunWriter writer_;
  std::int64_t last_id_ = 1000;
};

inline const Finding* find(const Diagnosis& diagnosis, std::string_view rule) {
  const auto found = std::ranges::find(diagnosis.findings, rule, &Finding::rule);
  return found == diagnosis.findings.end() ? nullptr : &*found;
}

inline RuleOutcome outcome(const Diagnosis& diagnosis, std::string_view rule) {
  const auto found = std::ranges::find(diagnosis.rules, rule, &RuleOutcome::rule);
  return found == diagnosis.rules.end() ? RuleOutcome{} : *found;
}

// A rule that found nothing says why, with numbers.
inline void expect_nothing(const Diagnosis& diagnosis, std::string_view rule, std::string_view wanted = "not found") {
  const RuleOutcome seen = outcome(diagnosis, rule);
  EXPECT_EQ(seen.outcome, wanted) << seen.why;
  EXPECT_NE(seen.why.find_first_of("0123456789"), std::string::npos) << rule << ": " << seen.why;
}

inline double evidence(const Finding& finding, std::string_view name) {
  const auto found = std::ranges::find(finding.evidence, name, &Evidence::name);
  EXPECT_NE(found, finding.evidence.end()) << name;
  return found == finding.evidence.end() ? -1 : found->value.value_or(-1);
}

}  // namespace llmprof::analyze
