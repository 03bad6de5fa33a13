// synthetic_run OUT KERNELS: writes a run as a GPU serving an LLM from four threads would leave it, of any size.
// Every thread drives its own stream: steps of 32 layers, prefill now and then, decode mostly; host and device times
// jitter by nanoseconds. Prints bytes per kernel row and rows per second. The same arguments give the same run.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/file.h"
#include "trace/run_writer.h"

namespace {

using namespace llmprof;
using trace::Name;

constexpr int kThreads = 4;
constexpr int kLayers = 32;
constexpr int kBatch = 8;
constexpr int kPromptTokens = 512;
constexpr int kDecodeSteps = 128;  // after each prefill
constexpr std::int64_t kStart = 86'400'000'000'000;

constexpr const char* kModel =
    R"({"model_type": "llama", "hidden_size": 2048, "intermediate_size": 4096, "num_hidden_layers": 32,
 "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000, "torch_dtype": "float16"})";

// xorshift: fast, and the same everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 1) {}
  std::int64_t below(std::int64_t limit) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<std::int64_t>(state_ % static_cast<std::uint64_t>(limit));
  }
  // Bell-shaped around `mean`, about +-3 % wide, with a long tail now and then: device times look like this.
  std::int64_t around(std::int64_t mean) {
    const std::int64_t width = mean / 16 + 64;
    const std::int64_t value = mean - width / 2 + (below(width) + below(width)) / 2;
    return below(500) == 0 ? value + below(mean) : value;
  }

 private:
  std::uint64_t state_;
};

// The kernels of one layer, per stage: what is launched, how long it takes, how it is configured.
struct Op {
  const char* module;  // "" : straight in the layer
  const char* name;
  std::int64_t decode_ns, prefill_ns;
  std::int32_t grid, block, registers, shared_bytes;
};
constexpr Op kLayerOps[] = {
    {"input_layernorm", "rms_norm", 2100, 9800, 8, 1024, 32, 4096},
    {"self_attn", "gemm_qkv", 9200, 118000, 96, 256, 168, 98304},
    {"self_attn", "split_heads", 1900, 7400, 64, 256, 24, 0},
    {"self_attn", "rope_q", 1700, 6100, 64, 128, 28, 0},
    {"self_attn", "rope_k", 1600, 3100, 16, 128, 28, 0},
    {"self_attn", "kv_append", 1500, 2900, 16, 128, 20, 0},
    {"self_attn", "attention", 11800, 96000, 256, 128, 224, 131072},
    {"self_attn", "attention_merge", 2300, 2400, 64, 128, 40, 2048},
    {"self_attn", "gemm_out", 7100, 81000, 64, 256, 168, 98304},
    {"self_attn", "residual", 1800, 5200, 32, 512, 16, 0},
    {"post_attention_layernorm", "rms_norm_post", 2100, 9700, 8, 1024, 32, 4096},
    {"mlp", "gemm_gate_up", 21500, 260000, 224, 256, 168, 98304},
    {"mlp", "silu_mul", 2400, 14800, 112, 256, 22, 0},
    {"mlp", "gemm_down", 14300, 139000, 64, 256, 168, 98304},
    {"mlp", "residual_mlp", 1800, 5200, 32, 512, 16, 0},
};
constexpr int kVariants = 6;      // libraries choose tiles by shape: an operator has several kernels
constexpr int kHeadKernels = 10;  // behind the last layer; 2 stages * (15 * 6 + 10) = 200 names in all

class Generator {
 public:
  Generator(trace::RunWriter& writer, std::int64_t kernels, bool modules)
      : writer_(writer), wanted_(kernels), modules_(modules) {
    intern_names();
    write_setting();
    for (int i = 0; i < kThreads; ++i)
      streams_.push_back({kStart + i * 1'000'000, kStart + i * 1'000'000, Random(i + 1)});
  }

  void run() {
    while (written_ < wanted_) {
      for (int thread = 0; thread < kThreads && written_ < wanted_; ++thread) step(thread);
    }
  }
  std::int64_t written() const { return written_; }

 private:
  struct Stream {
    std::int64_t host_ns, device_ns;
    Random random;
    std::int64_t steps = 0;
  };

  Name intern(const std::string& text) { return writer_.strings().intern(text); }

  void intern_names() {
    for (int stage = 0; stage < 2; ++stage) {
      for (const Op& op : kLayerOps) {
        for (int variant = 0; variant < kVariants; ++variant) {
          kernel_names_.push_back(intern(fmt::format("void llm::{}_kernel<__half, {}, {}>(llm::Params)", op.name,
                                                     stage == 0 ? "Decode" : "Prefill", 32 << variant)));
        }
      }
      for (int i = 0; i < kHeadKernels; ++i)
        head_names_.push_back(intern(fmt::format("void llm::head_kernel<{}, {}>(float const*)", stage, i)));
    }
    for (const char* module : {"", "input_layernorm", "self_attn", "post_attention_layernorm", "mlp"}) {
      for (int layer = 0; layer < kLayers; ++layer) {
        module_names_.push_back(
            intern(*module == 0 ? fmt::format("layers.{}", layer) : fmt::format("layers.{}.{}", layer, module)));
      }
    }
    domain_ = intern("llmprof");
    nvtx_ = intern("nvtx");
    push_pop_ = intern("push_pop");
    stage_ = intern("stage");
    step_ = intern("step");
    module_ = intern("module");
    prefill_ = intern("prefill");
    decode_ = intern("decode");
    lm_head_ = intern("lm_head");
  }

  void write_setting() {
    writer_.add(trace::ProcessRow{.id = 1,
                                  .pid = 4242,
                                  .host = intern("synthetic"),
                                  .executable = intern("/usr/bin/serve"),
                                  .arguments = intern("serve --model synthetic"),
                                  .begin_ns = kStart,
                                  .injected = true});
    for (int i = 0; i < kThreads; ++i) {
      writer_.add(trace::ThreadRow{.id = i + 1,
                                   .process_id = 1,
                                   .tid = 4242 + i,
                                   .name = intern(fmt::format("worker {}", i)),
                                   .begin_ns = kStart});
    }
    writer_.add(trace::DeviceRow{.id = 1,
                                 .kind = intern("gpu"),
                                 .name = intern("Synthetic GPU"),
                                 .chip = intern("SYN100"),
                                 .units = 132,
                                 .memory_bytes = 80'000'000'000,
                                 .cache_bytes = 50'000'000,
                                 .clock_mhz = 1980.0,
                                 .driver = intern("0.0")});
    writer_.add(trace::PeakRow{.device_id = 1,
                               .quantity = intern("flops"),
                               .type = intern("float16"),
                               .value = 2e15,
                               .unit = intern("FLOP/s"),
                               .source = intern("spec"),
                               .method = intern("invented for the synthetic run")});
    writer_.add(trace::PeakRow{.device_id = 1,
                               .quantity = intern("bandwidth"),
                               .type = intern("read"),
                               .value = 3.3e12,
                               .unit = intern("B/s"),
                               .source = intern("spec"),
                               .method = intern("invented for the synthetic run")});
    writer_.add(trace::RangeRow{.id = ++ids_,
                                .begin_ns = kStart,
                                .end_ns = kStart,
                                .name = intern(kModel),
                                .kind = intern("mark"),
                                .process_id = 1,
                                .thread_id = 1,
                                .domain = domain_,
                                .category = intern("model"),
                                .source = nvtx_});
    writer_.add(trace::ClockSyncRow{.ts_ns = kStart, .wall_ns = 1'700'000'000'000'000'000, .error_ns = 40});
  }

  // A range whose end is known when its last kernel has been launched.
  trace::RangeRow open(int thread, Name name, Name category, const trace::RangeRow* parent) {
    Stream& stream = streams_[thread];
    stream.host_ns += 150 + stream.random.below(60);
    return {.id = ++ids_,
            .begin_ns = stream.host_ns,
            .name = name,
            .kind = push_pop_,
            .process_id = 1,
            .thread_id = thread + 1,
            .parent_id = parent != nullptr ? trace::OptionalId(parent->id) : std::nullopt,
            .depth = parent != nullptr ? parent->depth + 1 : 0,
            .domain = domain_,
            .category = category,
            .source = nvtx_};
  }
  void close(int thread, trace::RangeRow& range) {
    Stream& stream = streams_[thread];
    stream.host_ns += 120 + stream.random.below(60);
    range.end_ns = stream.host_ns;
    if (modules_ || range.depth == 0) writer_.add(range);
  }

  void kernel(int thread, Name name, std::int64_t duration_ns, const Op& op) {
    Stream& stream = streams_[thread];
    stream.host_ns += stream.random.around(1900);  // between launches
    const std::int64_t launch_begin = stream.host_ns;
    stream.host_ns += stream.random.around(2600);  // the launch itself
    const std::int64_t begin =
        std::max(stream.device_ns + stream.random.around(1100), stream.host_ns + stream.random.around(1500));
    const std::int64_t end = begin + stream.random.around(duration_ns);
    stream.device_ns = end;
    writer_.add(trace::KernelRow{.id = ++ids_,
                                 .begin_ns = begin,
                                 .end_ns = end,
                                 .name = name,
                                 .device_id = 1,
                                 .stream = 7 + thread,
                                 .thread_id = thread + 1,
                                 .launch_begin_ns = launch_begin,
                                 .launch_end_ns = stream.host_ns,
                                 .grid_x = op.grid,
                                 .grid_y = 1,
                                 .grid_z = 1,
                                 .block_x = op.block,
                                 .block_y = 1,
                                 .block_z = 1,
                                 .registers = op.registers,
                                 .shared_bytes = op.shared_bytes});
    ++written_;
  }

  void layer(int thread, int number, bool prefill, const trace::RangeRow& step_range) {
    trace::RangeRow whole = open(thread, module_names_[number], module_, &step_range);
    trace::RangeRow part;
    std::string_view open_module;
    for (std::size_t i = 0; i < std::size(kLayerOps); ++i) {
      const Op& op = kLayerOps[i];
      if (open_module != op.module) {
        if (!open_module.empty()) close(thread, part);
        open_module = op.module;
        part = open(thread, module_name(number, op.module), module_, &whole);
      }
      const Name name = kernel_names_[((prefill ? std::size(kLayerOps) : 0) + i) * kVariants + number % kVariants];
      kernel(thread, name, prefill ? op.prefill_ns : op.decode_ns, op);
    }
    close(thread, part);
    close(thread, whole);
  }

  Name module_name(int layer, std::string_view module) const {
    const int kind = module == "input_layernorm"            ? 1
                     : module == "self_attn"                ? 2
                     : module == "post_attention_layernorm" ? 3
                                                            : 4;
    return module_names_[kind * kLayers + layer];
  }

  void step(int thread) {
    Stream& stream = streams_[thread];
    const std::int64_t place = stream.steps++ % (kDecodeSteps + 1);
    const bool prefill = place == 0;
    const std::int64_t tokens = prefill ? kPromptTokens : 1;
    const std::int64_t context = kPromptTokens + place;  // the new tokens included
    trace::RangeRow range = open(thread, prefill ? prefill_ : decode_, step_, nullptr);
    range.payload = kBatch | tokens << 16 | context << 40;
    for (int number = 0; number < kLayers; ++number) layer(thread, number, prefill, range);
    trace::RangeRow head = open(thread, lm_head_, module_, &range);
    for (int i = 0; i < kHeadKernels; ++i) {
      constexpr Op kHead{"", "", 0, 0, 1000, 256, 64, 1024};
      kernel(thread, head_names_[(prefill ? kHeadKernels : 0) + i], i == 0 ? 61000 : 3000 + 700 * i, kHead);
    }
    close(thread, head);
    stream.host_ns = std::max(stream.host_ns, stream.device_ns + stream.random.around(9000));  // waits for the token
    close(thread, range);
  }

  trace::RunWriter& writer_;
  std::int64_t wanted_, written_ = 0, ids_ = 0;
  bool modules_;  // ranges of modules, one per three kernels; without, of steps only
  std::vector<Stream> streams_;
  std::vector<Name> kernel_names_, head_names_, module_names_;
  Name domain_, nvtx_, push_pop_, stage_, step_, module_, prefill_, decode_, lm_head_;
};

std::int64_t kernel_bytes(const std::string& folder) {
  std::int64_t bytes = 0;
  for (const std::string& name : base::list_directory(folder + "/tables")) {
    if (name.starts_with("kernel.")) bytes += static_cast<std::int64_t>(base::file_bytes(folder + "/tables/" + name));
  }
  return bytes;
}

Result<void> write_run(const std::string& folder, std::int64_t kernels, bool modules) {
  const auto begin = std::chrono::steady_clock::now();
  LLMPROF_LET(trace::RunWriter writer, trace::RunWriter::create(folder));
  Generator generator(writer, kernels, modules);
  generator.run();
  LLMPROF_TRY(writer.finish(
      {.command = {"synthetic_run", folder, std::to_string(kernels)}, .environment = "{}", .source = "synthetic"}));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const auto bytes = static_cast<double>(kernel_bytes(folder));
  fmt::print("{} kernels, {:.1f} MB, {:.2f} bytes per kernel row, {:.2f} M kernels/s with their ranges\n",
             generator.written(), bytes / 1e6, bytes / static_cast<double>(generator.written()),
             static_cast<double>(generator.written()) / seconds / 1e6);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const bool steps_only = argc == 4 && std::string_view(argv[3]) == "--steps-only";
  const std::int64_t kernels = argc == 3 || steps_only ? std::atoll(argv[2]) : 0;
  if (kernels < 1) {
    fmt::print(stderr, "usage: synthetic_run OUT KERNELS [--steps-only]\n");
    return 1;
  }
  if (const auto written = write_run(argv[1], kernels, !steps_only); !written) {
    fmt::print(stderr, "synthetic_run: {}\n", written.error().message);
    return 2;
  }
  return 0;
}
