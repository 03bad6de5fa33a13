#include <gtest/gtest.h>

#include <vector>

#include "analyze/steps/idle.h"

namespace llmprof::analyze {

namespace {

const StackFrame kModel{"python", "Qwen3Attention.forward", "/x/transformers/models/qwen3/modeling_qwen3.py"};
const StackFrame kCompiled{"python", "_fn", "/x/torch/_dynamo/eval_frame.py"};

struct Case {
  const char* what;
  std::vector<StackFrame> stack;  // innermost first
  Work work;
  const char* by = "";
};

TEST(HostWork, IsToldFromTheStack) {
  const Case cases[] = {
      {"cuDNN has a kernel compiled",
       {{"native", "libnvrtc.so.13+0x758110", "/x/nvidia/cu13/lib/libnvrtc.so.13"},
        {"native", "nvrtcCompileProgram", "/x/nvidia/cu13/lib/libnvrtc.so.13"},
        {"native", "cudnnBackendFinalize", "/x/nvidia/cudnn/lib/libcudnn_graph.so.9"},
        {"native", "at::native::x", "/x/torch/lib/libtorch_cuda.so"},
        kModel},
       Work::kCompiling,
       "nvrtc for cuDNN"},
      {"Dynamo traces a function again",
       {{"python", "InstructionTranslatorBase.step", "/x/torch/_dynamo/symbolic_convert.py"}, kCompiled},
       Work::kCompiling,
       "Dynamo"},
      {"a compiled model merely runs",
       {{"native", "_PyEval_EvalFrameDefault", "/usr/bin/python3.12"}, kModel, kCompiled},
       Work::kPython},
      {"kernels are tried out, which compiles them too",
       {{"python", "compile", "/x/triton/compiler/compiler.py"},
        {"python", "Autotuner.run", "/x/triton/runtime/autotuner.py"}},
       Work::kTuning,
       "Triton"},
      {"garbage", {{"native", "gc_collect_main", "/usr/bin/python3.12"}, kModel}, Work::kCollecting, "Python"},
      {"memory of the device",
       {{"native", "cuMemCreate", "/x/libcuda.so.1"}, {"native", "cudaMalloc", "/x/libcudart.so.13"}, kModel},
       Work::kAllocating,
       "device memory"},
      {"a launch",
       {{"native", "libcuda.so.580+0x1", "/x/libcuda.so.580"},
        {"native", "cuLaunchKernelEx", "/x/libcuda.so.580"},
        kModel},
       Work::kLaunching},
      {"PyTorch's own code", {{"native", "c10::x", "/x/torch/lib/libc10.so"}, kModel}, Work::kFramework},
      {"the program's own code", {{"native", "main", "/home/me/train_gpt2cu"}}, Work::kOther},
      {"no stack", {}, Work::kOther},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.what);
    const HostWork found = work_of(each.stack);
    EXPECT_EQ(work_name(found.work), work_name(each.work));
    EXPECT_EQ(found.what, each.by);
  }
  EXPECT_EQ(work_of(cases[0].stack).where, "Qwen3Attention.forward");
}

}  // namespace

}  // namespace llmprof::analyze
