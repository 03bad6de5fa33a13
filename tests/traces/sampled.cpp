// Stack samples of 10 us each in a training run; what the golden files expect, derived by hand:
//
// Steps: forward [0, 100000), backward [100000, 200000), both made by thread 1; thread 2 is a helper without ranges.
// Stacks, innermost first: 1 = kernel < cblas_sgemm < linear < main; 2 = linear < main; 3 = walk < walk < main
//   (recursion: walk counts once in total); 4 = [kernel] < linear < main.
// Samples: forward: thread 1 stack 1 at 10000, 20000, stack 2 at 30000, stack 4 at 40000; thread 2 stack 3 at 50000
//   (inferred: thread 2 has no steps of its own); thread 1 without a stack at 60000. 6 samples, 60 us.
//   backward: thread 1 stack 1 at 110000. 1 sample, 10 us.
//   after the steps: thread 1 stack 3, truncated, at 250000. 1 sample, 10 us.
// forward: kernel self 20; cblas_sgemm self 0, total 20; linear self 10, total 40; main total 50; walk self 10, total
// 10;
//   [kernel] self 10. Shares of 60.
// Calls: cblas_sgemm: two BLAS calls in forward and one in backward. linear: one range of that name in forward.
#include "builder.h"
#include "traces.h"

namespace llmprof::traces {
namespace {

constexpr std::int64_t kWeight = 10000;

class Samples {
 public:
  Samples(trace::RunWriter& writer, Builder& names) : writer_(writer), names_(names) {}

  std::int64_t frame(std::string_view kind, std::string_view function, std::string_view file) {
    writer_.add(trace::FrameRow{
        .id = ++frames_, .kind = names_.name(kind), .function = names_.name(function), .file = names_.name(file)});
    return frames_;
  }
  std::int64_t stack(const std::vector<std::int64_t>& frames) {
    ++stacks_;
    for (std::size_t depth = 0; depth < frames.size(); ++depth)
      writer_.add(trace::StackRow{stacks_, static_cast<std::int32_t>(depth), frames[depth]});
    return stacks_;
  }
  void sample(std::int64_t ts_ns, std::int64_t thread_id, trace::OptionalId stack_id, bool truncated = false) {
    writer_.add(trace::SampleRow{.id = ++samples_,
                                 .ts_ns = ts_ns,
                                 .thread_id = thread_id,
                                 .stack_id = stack_id,
                                 .truncated = truncated,
                                 .weight_ns = kWeight});
  }

 private:
  trace::RunWriter& writer_;
  Builder& names_;
  std::int64_t frames_ = 0, stacks_ = 0, samples_ = 0;
};

}  // namespace

Result<void> write_sampled(const std::string& folder) {
  LLMPROF_LET(trace::RunWriter writer, trace::RunWriter::create(folder));
  Builder run(writer, 300000);
  run.thread(1);
  run.thread(2);
  run.range("step", "forward", 0, 100000);
  run.range("step", "backward", 100000, 200000);
  run.range("module", "linear", 5000, 45000);
  run.gemm(10000, 11000, {4, 4, 4});
  run.gemm(20000, 21000, {4, 4, 4});
  run.gemm(110000, 111000, {4, 4, 4});

  Samples samples(writer, run);
  const std::int64_t main = samples.frame("python", "main", "/home/me/train.py");
  const std::int64_t linear = samples.frame("python", "linear", "/home/me/train.py");
  const std::int64_t sgemm = samples.frame("native", "cblas_sgemm", "/usr/lib/libblas.so.3");
  const std::int64_t kernel = samples.frame("native", "sgemm_kernel", "/usr/lib/libblas.so.3");
  const std::int64_t walk = samples.frame("native", "walk", "/usr/lib/libhelper.so");
  const std::int64_t system = samples.frame("kernel", "[kernel]", "");
  const std::int64_t in_blas = samples.stack({kernel, sgemm, linear, main});
  const std::int64_t in_linear = samples.stack({linear, main});
  const std::int64_t in_walk = samples.stack({walk, walk, main});
  const std::int64_t in_system = samples.stack({system, linear, main});
  samples.sample(10000, 1, in_blas);
  samples.sample(20000, 1, in_blas);
  samples.sample(30000, 1, in_linear);
  samples.sample(40000, 1, in_system);
  samples.sample(50000, 2, in_walk);
  samples.sample(60000, 1, std::nullopt, true);
  samples.sample(110000, 1, in_blas);
  samples.sample(250000, 1, in_walk, true);
  return writer.finish(run_info({"sampled"}));
}

}  // namespace llmprof::traces
