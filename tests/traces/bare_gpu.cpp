// A GPU whose run says no peaks, as one recorded before there were any: they come from the catalogue, by the name that
// its driver reports. The T4 of the catalogue: 8.1 TFLOP/s in float32, 65 in float16, 320 GB/s.
// 2·1000·1000·1000 = 2e9 FLOP in 1 ms = 2 TFLOP/s: 24.7 % of 8.1; 3·1000·1000·4 B in 1 ms = 12 GB/s.
#include "builder.h"
#include "traces.h"

namespace llmprof::traces {

Result<void> write_bare_gpu(const std::string& folder) {
  LLMPROF_LET(trace::RunWriter writer, trace::RunWriter::create(folder));
  Builder run(writer, 10'000'000);
  run.thread(1);
  writer.add(trace::DeviceRow{.id = 2,
                              .kind = run.name("gpu"),
                              .name = run.name("Tesla T4"),
                              .chip = run.name("sm_75"),
                              .units = 40,
                              .memory_bytes = 15'843'721'216,
                              .driver = run.name("575.57.08")});
  writer.add(trace::KernelRow{.id = 1,
                              .begin_ns = 1'000'000,
                              .end_ns = 2'000'000,
                              .name = run.name("volta_sgemm_128x64_tn"),
                              .device_id = 2,
                              .thread_id = 1});
  trace::GemmRow gemm{.id = 2,
                      .begin_ns = 1'000'000,
                      .end_ns = 2'000'000,
                      .kernel_id = 1,
                      .thread_id = 1,
                      .library = run.name("cublas"),
                      .function = run.name("cublasSgemm"),
                      .m = 1000,
                      .n = 1000,
                      .k = 1000};
  gemm.type_a = gemm.type_b = gemm.type_c = run.name("float32");
  writer.add(gemm);
  run.range("step", "decode", 500'000, 2'500'000);
  return writer.finish(run_info({"python3", "serve.py"}));
}

}  // namespace llmprof::traces
