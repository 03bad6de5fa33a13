// Decode on a GPU that works on while the host waits. What the golden files expect, derived by hand:
//
// Model and costs as in tiny_decode. Three decode steps of 2 sequences, contexts 4, 5 and 6, begin at 1000, 11000 and
// 21000 and last 2000 each on the host: two TPOT samples of 10000. In the first, with what the host does from 1000 on:
//   kernels   up_proj of both layers 2000…6000 and 6000…9000, lm_head 9500…10000; all launched before 2000
//   waits     cudaStreamSynchronize 2500…10100
//   copies    10200…10400
//   owners    in the step: gap 1000…2000, kernel 2000…3000. After it: kernel 6000 (3000…9000) + 500, wait 500
//   (9000…9500) +
//             100 (10000…10100), copy 200, between 100 (10100…10200) + 600 (10400…11000). 1000 + 1000 + 8000 = 10000
// The second is the same 10000 later, but for a kernel of another thread, 20450…20950, that belongs to no step: of the
// time between the steps 500 are its own. The third step executes nothing and begins no sample.
//   measured 20000 = between 700 + 200, gaps 2·1000, waits 2·600, copies 2·200, other kernels 500, up_proj 2·7000,
//   lm_head 2·500
// Floors, all bound by memory (0.5 GB/s): up_proj 2 layers · 128 B = 512 ns a step: 1024; lm_head 160 B: 320, 640.
// Steps
//   (1744 + 1808) B: 7104. Operators not seen 7104 - 1024 - 640 = 5440.
//   projection 14000 - 1024 = 12976, logits 1000 - 640 = 360; 900 + 2000 + 1200 + 400 + 500 + 12976 + 360 - 5440 + 7104
//   = 20000
#include "builder.h"
#include "traces.h"

namespace llmprof::traces {
namespace {

constexpr const char* kModel =
    R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 4, "num_attention_heads": 2, "num_key_value_heads": 1, )"
    R"("intermediate_size": 8, "vocab_size": 10, "tie_word_embeddings": false, "torch_dtype": "float32"})";
constexpr std::int64_t kGpu = 2;

class GpuBuilder : public Builder {
 public:
  explicit GpuBuilder(trace::RunWriter& writer) : Builder(writer, 30000), writer_(writer) {
    writer_.add(trace::DeviceRow{.id = kGpu,
                                 .kind = name("gpu"),
                                 .name = name("Toy GPU"),
                                 .units = 4,
                                 .memory_bytes = 1'000'000'000,
                                 .cache_bytes = 1024});
  }

  // A module in which the host launches one kernel, 50 ns after its begin.
  void launch(std::string_view module, std::int64_t host_begin, std::int64_t begin, std::int64_t end) {
    range("module", module, host_begin, host_begin + 100);
    gpu_kernel(begin, end, host_begin + 50, 1);
  }

  void gpu_kernel(std::int64_t begin, std::int64_t end, std::int64_t launch, std::int64_t thread_id) {
    writer_.add(trace::KernelRow{.id = next_++,
                                 .begin_ns = begin,
                                 .end_ns = end,
                                 .name = name("gemm"),
                                 .device_id = kGpu,
                                 .stream = 7,
                                 .thread_id = thread_id,
                                 .launch_begin_ns = launch,
                                 .launch_end_ns = launch + 10});
  }

  void wait(std::int64_t begin, std::int64_t end) {
    writer_.add(trace::ApiRow{
        .id = next_++, .begin_ns = begin, .end_ns = end, .name = name("cudaStreamSynchronize"), .thread_id = 1});
    writer_.add(trace::ApiRow{
        .id = next_++, .begin_ns = end, .end_ns = end + 20, .name = name("cudaLaunchKernel"), .thread_id = 1});
  }

  void copy(std::int64_t begin, std::int64_t end) {
    writer_.add(trace::CopyRow{.id = next_++,
                               .begin_ns = begin,
                               .end_ns = end,
                               .direction = name("device_to_host"),
                               .bytes = 80,
                               .device_id = kGpu,
                               .thread_id = 1});
  }

 private:
  trace::RunWriter& writer_;
  std::int64_t next_ = 1000;
};

void decode(GpuBuilder& run, std::int64_t begin, std::int64_t context) {
  run.range("step", "decode", begin, begin + 2000, 2 | 1 << 16 | context << 40);
  if (context == 6) return;
  run.launch("layers.0.mlp.up_proj", begin + 200, begin + 1000, begin + 5000);
  run.launch("layers.1.mlp.up_proj", begin + 400, begin + 5000, begin + 8000);
  run.launch("lm_head", begin + 600, begin + 8500, begin + 9000);
  run.wait(begin + 1500, begin + 9100);
  run.copy(begin + 9200, begin + 9400);
}

}  // namespace

Result<void> write_gpu_decode(const std::string& folder) {
  LLMPROF_LET(trace::RunWriter writer, trace::RunWriter::create(folder));
  GpuBuilder run(writer);
  run.thread(1);
  run.thread(2);
  run.peak("flops", "float32", 1e9, "FLOP/s", kGpu);
  run.peak("bandwidth", "read", 0.5e9, "B/s", kGpu);
  run.range("model", kModel, 500, 500);
  decode(run, 1000, 4);
  decode(run, 11000, 5);
  run.gpu_kernel(20450, 20950, 15000, 2);
  decode(run, 21000, 6);
  return writer.finish(run_info({"gpu", "decode"}));
}

}  // namespace llmprof::traces
