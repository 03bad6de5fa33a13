// Decode on a GPU with hardware counters. What the golden files expect, derived by hand:
//
// Model and costs as in tiny_decode; four decode steps of 2 sequences with a context of 4 begin at 1000, 11000, 21000
// and 31000. Each needs 1568 FLOPs and must move 1744 B; it takes 9500, with gemm 1000…5000 and norm 5000…9000 after
// its begin. The second and the fourth are measured: windows of 9800 around them, each of which took 300 from the
// program.
//   DRAM   1990 and 2010 B read, 180 B written both: 2180 B, 1.25 of 1744. Spread of what was read: 0.5 % as of all,
//          0.7 % as of a sample (n - 1). 2180 B / 9500 ns = 229 MB/s, 45.9 % of 0.5 GB/s.
//   FLOPs  1312 of tensor cores (products 2·(2·288) + 160; tf32, 4 GFLOP/s: 328 ns), 256 of plain cores (attention
//          2·2·4·16 as 128 FMA; 1 GFLOP/s: 256 ns): 1568, as the model says. HFU 1568 / 9500 ns / 4 GFLOP/s = 4.1 %.
//   FLOP/B 1568 / 2180 = 0.719; of L2 (4360 B) half of it, of L1 (8000 B + 720 B of the TMA) a quarter.
//   roofs  memory 2180 B / 0.5 GB/s = 4360 ns, more than 328: bound by memory, 45.9 % of the roof.
// One gemm is counted by itself: 1000 FLOPs of tensor cores (250 ns), 2000 B (4000 ns) in 4000 ns: at the roof of
// memory. 128 registers for each of 256 threads: 2 blocks of 8 warps fit, 16 of 64 warps, 25 %; 20 % were there. Warps
// of gemm are seen 80 times, of norm 15, in code that nobody knows 5.
#include "builder.h"
#include "traces.h"

namespace llmprof::traces {
namespace {

constexpr const char* kModel =
    R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 4, "num_attention_heads": 2, "num_key_value_heads": 1, )"
    R"("intermediate_size": 8, "vocab_size": 10, "tie_word_embeddings": false, "torch_dtype": "float32"})";
constexpr std::int64_t kGpu = 2;

class CountedBuilder : public Builder {
 public:
  explicit CountedBuilder(trace::RunWriter& writer) : Builder(writer, 42000), writer_(writer) {
    writer_.add(trace::DeviceRow{.id = kGpu,
                                 .kind = name("gpu"),
                                 .name = name("Toy GPU"),
                                 .chip = name("sm_90"),
                                 .units = 4,
                                 .memory_bytes = 1'000'000'000,
                                 .cache_bytes = 1024});
  }

  std::int64_t kernel_on_gpu(std::string_view text, std::int64_t begin, std::int64_t end, std::int64_t launch) {
    writer_.add(trace::KernelRow{.id = next_,
                                 .begin_ns = begin,
                                 .end_ns = end,
                                 .name = name(text),
                                 .device_id = kGpu,
                                 .stream = 7,
                                 .thread_id = 1,
                                 .launch_begin_ns = launch,
                                 .launch_end_ns = launch + 10,
                                 .grid_x = 8,
                                 .grid_y = 1,
                                 .grid_z = 1,
                                 .block_x = 256,
                                 .block_y = 1,
                                 .block_z = 1,
                                 .registers = 128,
                                 .shared_bytes = 0});
    return next_++;
  }

  std::int64_t window(std::int64_t begin, std::int64_t end) {
    writer_.add(trace::CounterWindowRow{.id = next_,
                                        .counter_window_id = next_,
                                        .scope = name("range"),
                                        .method = name("range"),
                                        .begin_ns = begin,
                                        .end_ns = end,
                                        .process_id = 1,
                                        .thread_id = 1,
                                        .device_id = kGpu,
                                        .name = name("decode"),
                                        .cost_ns = 300});
    return next_++;
  }

  void count(std::string_view scope, std::int64_t scope_id, std::string_view metric, double value) {
    writer_.add(trace::CounterRow{.id = next_++,
                                  .scope = name(scope),
                                  .scope_id = scope_id,
                                  .metric = name(metric),
                                  .value = value,
                                  .method = name(scope),
                                  .passes = 1});
  }

  void stall(std::string_view kernel, std::int64_t offset, std::string_view reason, std::int64_t samples,
             std::string_view file = "", trace::OptionalInt line = {}) {
    writer_.add(trace::StallRow{.id = next_++,
                                .process_id = 1,
                                .device_id = kGpu,
                                .kernel = name(kernel),
                                .offset_bytes = offset,
                                .reason = name(reason),
                                .samples = samples,
                                .file = name(file),
                                .line = line});
  }

 private:
  trace::RunWriter& writer_;
  std::int64_t next_ = 1000;
};

std::int64_t decode(CountedBuilder& run, std::int64_t begin) {
  run.range("step", "decode", begin, begin + 9500, 2 | 1 << 16 | std::int64_t{4} << 40);
  const std::int64_t gemm = run.kernel_on_gpu("gemm", begin + 1000, begin + 5000, begin + 200);
  run.kernel_on_gpu("norm", begin + 5000, begin + 9000, begin + 400);
  return gemm;
}

void count_step(CountedBuilder& run, std::int64_t begin, double read) {
  const std::int64_t window = run.window(begin - 100, begin + 9700);
  for (const auto& [metric, value] : {std::pair<const char*, double>{"gpu__time_duration.sum", 8000},
                                      {"dram__bytes_read.sum", read},
                                      {"dram__bytes_write.sum", 180},
                                      {"lts__t_bytes.sum", 4360},
                                      {"lts__t_sector_hit_rate.pct", 40},
                                      {"l1tex__t_bytes.sum", 8000},
                                      {"l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld.sum", 720},
                                      {"sm__ops_path_tensor_src_tf32_dst_fp32.sum", 1312},
                                      {"smsp__sass_thread_inst_executed_op_fadd_pred_on.sum", 0},
                                      {"smsp__sass_thread_inst_executed_op_fmul_pred_on.sum", 0},
                                      {"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", 128},
                                      {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed", 12.5},
                                      {"sm__warps_active.avg.pct_of_peak_sustained_active", 30}})
    run.count("range", window, metric, value);
}

void count_kernel(CountedBuilder& run, std::int64_t kernel) {
  for (const auto& [metric, value] : {std::pair<const char*, double>{"sm__ops_path_tensor_src_tf32_dst_fp32.sum", 1000},
                                      {"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", 0},
                                      {"dram__bytes_read.sum", 1500},
                                      {"dram__bytes_write.sum", 500},
                                      {"lts__t_bytes.sum", 4000},
                                      {"lts__t_sector_hit_rate.pct", 50},
                                      {"sm__warps_active.avg.pct_of_peak_sustained_active", 20}})
    run.count("kernel", kernel, metric, value);
}

}  // namespace

Result<void> write_counted(const std::string& folder) {
  LLMPROF_LET(trace::RunWriter writer, trace::RunWriter::create(folder));
  CountedBuilder run(writer);
  run.thread(1);
  run.peak("flops", "float32", 1e9, "FLOP/s", kGpu);
  run.peak("flops", "tf32", 4e9, "FLOP/s", kGpu);
  run.peak("bandwidth", "read", 0.5e9, "B/s", kGpu);
  run.range("model", kModel, 500, 500);
  const std::int64_t gemm = decode(run, 1000);
  decode(run, 11000);
  decode(run, 21000);
  decode(run, 31000);
  count_step(run, 11000, 1990);
  count_step(run, 31000, 2010);
  count_kernel(run, gemm);
  run.stall("gemm", 0x1a0, "long_scoreboard", 50, "gemm.cu", 42);
  run.stall("gemm", 0x2b0, "wait", 30);
  run.stall("norm", 0x10, "long_scoreboard", 15);
  run.stall("", 0, "wait", 5);
  trace::RunInfo info = run_info({"gpu", "counted"});
  info.counters = trace::AskedCounters{.set = "roofline", .method = "range"};
  return writer.finish(info);
}

}  // namespace llmprof::traces
