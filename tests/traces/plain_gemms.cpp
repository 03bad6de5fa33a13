// A program that llmprof knows nothing about: three products, no ranges, no peaks, one loss.
// 2·100·100·100 = 2e6 FLOP in 1000 ns each: 2000 GFLOP/s; 3·100·100·4 B = 120000 B in 1000 ns: 120 GB/s.
#include "builder.h"
#include "trace/loss.h"
#include "traces.h"

namespace llmprof::traces {

Result<void> write_plain_gemms(const std::string& folder) {
  LLMPROF_LET(trace::RunWriter writer, trace::RunWriter::create(folder));
  Builder run(writer, 10000);
  run.thread(1);
  for (const std::int64_t begin : {1000, 3000, 5000}) run.gemm(begin, begin + 1000, {100, 100, 100});
  const trace::LossInfo& loss = trace::info_of(trace::Loss::kNoPeaks);
  writer.add(trace::LossRow{.id = 1,
                            .name = run.name(loss.name),
                            .severity = run.name(trace::name_of(loss.severity)),
                            .count = 1,
                            .unit = run.name(loss.unit),
                            .meaning = run.name(loss.meaning),
                            .remedy = run.name(loss.remedy)});
  return writer.finish(run_info({"python3", "numpy_program.py"}));
}

Result<void> write_nothing(const std::string& folder) {
  LLMPROF_LET(trace::RunWriter writer, trace::RunWriter::create(folder));
  const Builder run(writer, 2'000'000);
  return writer.finish(run_info({"ls"}));
}

Result<void> write_trace(std::string_view name, const std::string& folder) {
  if (name == "tiny_decode") return write_tiny_decode(folder);
  if (name == "tiny_train") return write_tiny_train(folder);
  if (name == "unnamed") return write_unnamed(folder);
  if (name == "steps_only") return write_steps_only(folder);
  if (name == "plain_gemms") return write_plain_gemms(folder);
  if (name == "sampled") return write_sampled(folder);
  if (name == "nothing") return write_nothing(folder);
  if (name == "gpu_decode") return write_gpu_decode(folder);
  if (name == "gpu_graph") return write_gpu_graph(folder);
  if (name == "gpu_unnamed") return write_gpu_unnamed(folder);
  if (name == "host_memory") return write_host_memory(folder);
  if (name == "bare_gpu") return write_bare_gpu(folder);
  if (name == "imported") return write_imported(folder);
  if (name == "totals") return write_totals(folder);
  if (name == "telemetry") return write_telemetry(folder);
  if (name == "counted") return write_counted(folder);
  return Error{ErrorCode::kNotFound, "no trace named " + std::string(name),
               "traces are listed in tests/traces/traces.h"};
}

}  // namespace llmprof::traces
