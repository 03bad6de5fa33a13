// A run as an importer makes it of a PyTorch trace: operators that nest, kernels and a copy launched in them,
// attention; no process that was recorded. All on a T4 of the catalogue: 65 TFLOP/s in float16.
//
//   operator                              host us      inside            launches
//   aten::linear                     1000 .. 3000
//     aten::addmm                    1500 .. 2500      aten::linear      kernel of 1000 us
//   aten::scaled_dot_product_attn    4000 .. 6000
//     aten::_flash_attention_forward 4500 .. 5500      the last          kernels of 500 and 100 us
//   aten::_flash_attention_forward   7000 .. 8000                        kernel of 1000 us, in no stage
//   aten::copy_                      8000 .. 8500                        copy of 200 us
//
// Self times: linear 2000 - 1000, addmm 1000, sdpa 2000 - 1000, flash 1000 + 1000, copy_ 500: 5500 us on the host;
// GPU 1000 + 1600 + 200 = 2800 us.
// FLOPs of attention: 2 sequences x 8 heads x (64 + 64) x 2 x 1 x 1000 pairs = 4.096e6, in 600 us: 6.83 GFLOP/s;
// causal, 100 tokens: 8 x 128 x 2 x 5050 pairs = 10.3424e6, in 1000 us: 10.3 GFLOP/s.
#include "builder.h"
#include "traces.h"

namespace llmprof::traces {
namespace {

constexpr std::int64_t kUs = 1000;

class Trace {
 public:
  explicit Trace(trace::RunWriter& writer) : writer_(writer) {}

  trace::Name name(std::string_view text) { return writer_.strings().intern(text); }

  void machine() {
    writer_.add(
        trace::ProcessRow{.id = 1, .pid = 100, .executable = name("python3"), .begin_ns = 0, .end_ns = 10'000 * kUs});
    writer_.add(trace::ThreadRow{.id = 1, .process_id = 1, .tid = 101});
    writer_.add(
        trace::DeviceRow{.id = 2, .kind = name("gpu"), .name = name("Tesla T4"), .chip = name("sm_75"), .units = 40});
    writer_.add(trace::SourceRow{
        .id = 1, .file = name("trace.json"), .format = name("kineto"), .tool = name("PyTorch 2.11.0"), .bytes = 12345});
    writer_.add(trace::RangeRow{.id = 1,
                                .begin_ns = 500 * kUs,
                                .end_ns = 6500 * kUs,
                                .name = name("decode_step"),
                                .kind = name("push_pop"),
                                .process_id = 1,
                                .thread_id = 1,
                                .source = name("kineto")});
  }

  std::int64_t op(std::string_view text, std::int64_t begin_us, std::int64_t end_us) {
    writer_.add(trace::OpRow{
        .id = next_, .begin_ns = begin_us * kUs, .end_ns = end_us * kUs, .name = name(text), .thread_id = 1});
    return next_++;
  }

  std::int64_t kernel(std::string_view text, std::int64_t op_id, std::int64_t launch_us, std::int64_t begin_us,
                      std::int64_t us) {
    writer_.add(trace::KernelRow{.id = next_,
                                 .begin_ns = begin_us * kUs,
                                 .end_ns = (begin_us + us) * kUs,
                                 .name = name(text),
                                 .device_id = 2,
                                 .stream = 7,
                                 .thread_id = 1,
                                 .launch_begin_ns = launch_us * kUs,
                                 .launch_end_ns = launch_us * kUs + 5000,
                                 .op_id = op_id});
    return next_++;
  }

  void copy(std::int64_t op_id, std::int64_t launch_us, std::int64_t begin_us, std::int64_t us) {
    writer_.add(trace::CopyRow{.id = next_++,
                               .begin_ns = begin_us * kUs,
                               .end_ns = (begin_us + us) * kUs,
                               .direction = name("device_to_host"),
                               .bytes = 4096,
                               .device_id = 2,
                               .stream = 7,
                               .thread_id = 1,
                               .launch_begin_ns = launch_us * kUs,
                               .op_id = op_id});
  }

  void attention(trace::AttentionRow row, std::int64_t op_id, std::int64_t kernel_id) {
    row.id = next_++;
    row.thread_id = 1;
    row.op_id = op_id;
    row.kernel_id = kernel_id;
    row.function = name("aten::_flash_attention_forward");
    row.type = name("float16");
    writer_.add(row);
  }

 private:
  trace::RunWriter& writer_;
  std::int64_t next_ = 10;
};

}  // namespace

Result<void> write_imported(const std::string& folder) {
  LLMPROF_LET(trace::RunWriter writer, trace::RunWriter::create(folder));
  Trace run(writer);
  run.machine();
  run.op("aten::linear", 1000, 3000);
  run.kernel("gemm_kernel", run.op("aten::addmm", 1500, 2500), 1600, 2000, 1000);
  run.op("aten::scaled_dot_product_attn", 4000, 6000);
  const std::int64_t decode = run.op("aten::_flash_attention_forward", 4500, 5500);
  const std::int64_t flash = run.kernel("flash_fwd_kernel", decode, 4600, 5000, 500);
  run.kernel("flash_combine_kernel", decode, 4700, 5500, 100);
  run.attention({.begin_ns = 4500 * kUs,
                 .end_ns = 5500 * kUs,
                 .batch = 2,
                 .heads = 8,
                 .kv_heads = 2,
                 .queries = 1,
                 .keys = 1000,
                 .head_size = 64,
                 .causal = false},
                decode, flash);
  const std::int64_t prompt = run.op("aten::_flash_attention_forward", 7000, 8000);
  const std::int64_t whole = run.kernel("flash_fwd_kernel", prompt, 7100, 7200, 1000);
  run.attention({.begin_ns = 7000 * kUs,
                 .end_ns = 8000 * kUs,
                 .batch = 1,
                 .heads = 8,
                 .kv_heads = 8,
                 .queries = 100,
                 .keys = 100,
                 .head_size = 64,
                 .causal = true},
                prompt, whole);
  run.copy(run.op("aten::copy_", 8000, 8500), 8100, 8300, 200);
  trace::RunInfo info = run_info({});
  info.source = "kineto";
  return writer.finish(info);
}

// A printed table of torch.profiler: sums and nothing else. 60 + 40 us on the host, 30 us on the GPU.
Result<void> write_totals(const std::string& folder) {
  LLMPROF_LET(trace::RunWriter writer, trace::RunWriter::create(folder));
  const auto name = [&](std::string_view text) { return writer.strings().intern(text); };
  writer.add(trace::SourceRow{.id = 1, .file = name("table.txt"), .format = name("key-averages"), .bytes = 2000});
  writer.add(trace::SummaryRow{.id = 1,
                               .name = name("aten::mm"),
                               .kind = name("operator"),
                               .calls = 7,
                               .self_cpu_ns = 60'000,
                               .cpu_ns = 80'000,
                               .self_device_ns = 30'000,
                               .device_ns = 30'000,
                               .device_bytes = -1024,
                               .flops = 2e9,
                               .shapes = name("[[8, 8], [8, 8]]")});
  writer.add(trace::SummaryRow{.id = 2,
                               .name = name("cudaLaunchKernel"),
                               .kind = name("operator"),
                               .calls = 7,
                               .self_cpu_ns = 40'000,
                               .cpu_ns = 40'000});
  writer.add(trace::SummaryRow{.id = 3,
                               .name = name("gemm_kernel"),
                               .kind = name("kernel"),
                               .calls = 7,
                               .self_device_ns = 30'000,
                               .device_ns = 30'000});
  writer.add(trace::SummaryRow{.id = 4,
                               .name = name("decode_step"),
                               .kind = name("range"),
                               .calls = 1,
                               .self_cpu_ns = 5'000'000,
                               .device_ns = 9'000'000});
  trace::RunInfo info = run_info({});
  info.source = "key-averages";
  return writer.finish(info);
}

}  // namespace llmprof::traces
