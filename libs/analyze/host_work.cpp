#include "analyze/idle.h"

#include <algorithm>
#include <array>

namespace llmprof::analyze {
namespace {

// A frame whose function begins with, or whose file contains, one of these. The first line that any frame of a stack
// fits tells its work: what is done on purpose comes before what every step does. Names are those that CUDA, PyTorch,
// Triton, JAX, CPython and Hugging Face's libraries export or print.
struct Sign {
  Work work;
  std::string_view function, file;  // "": any
  std::string_view what;
};

constexpr std::array kSigns = std::to_array<Sign>({
    {Work::kTuning, "Autotuner.", "triton/runtime/autotuner", "Triton"},
    {Work::kTuning, "", "torch/_inductor/select_algorithm", "Inductor"},
    {Work::kTuning, "xla::gpu::Autotun", "", "XLA"},
    {Work::kTuning, "xla::gpu::GemmFusionAutotun", "", "XLA"},
    {Work::kTuning, "cudnnFind", "", "cuDNN"},
    {Work::kCompiling, "nvrtcCompileProgram", "", "nvrtc"},
    {Work::kCompiling, "", "libnvrtc", "nvrtc"},
    {Work::kCompiling, "", "libnvidia-ptxjitcompiler", "the driver's PTX compiler"},
    {Work::kCompiling, "nvPTXCompiler", "", "the PTX compiler"},
    {Work::kCompiling, "nvJitLink", "", "nvJitLink"},
    {Work::kCompiling, "cuLinkComplete", "", "the driver's linker"},
    {Work::kCompiling, "", "triton/compiler/", "Triton"},
    {Work::kCompiling, "", "triton/backends/", "Triton"},
    {Work::kCompiling, "", "libtriton", "Triton"},
    {Work::kCompiling, "", "torch/_inductor/compile_fx", "Inductor"},
    {Work::kCompiling, "", "torch/_inductor/codecache", "Inductor"},
    {Work::kCompiling, "", "torch/_inductor/graph.py", "Inductor"},
    {Work::kCompiling, "", "torch/_inductor/scheduler", "Inductor"},
    {Work::kCompiling, "", "torch/_dynamo/convert_frame", "Dynamo"},
    {Work::kCompiling, "", "torch/_dynamo/symbolic_convert", "Dynamo"},
    {Work::kCompiling, "xla::gpu::GpuCompiler", "", "XLA"},
    {Work::kCompiling, "xla::gpu::NVPTXCompiler", "", "XLA"},
    {Work::kCompiling, "xla::cpu::CpuCompiler", "", "XLA"},
    {Work::kCompiling, "backend_compile", "jax/_src/compiler", "XLA"},
    {Work::kCompiling, "", "jax/_src/interpreters/mlir", "JAX"},
    {Work::kCompiling, "", "jax/_src/interpreters/partial_eval", "JAX's tracing"},
    {Work::kCompiling, "mlir::", "", "MLIR"},
    {Work::kCompiling, "llvm::", "", "LLVM"},
    {Work::kImporting, "", "<frozen importlib", "Python"},
    {Work::kImporting, "_find_and_load", "", "Python"},
    {Work::kCollecting, "gc_collect", "", "Python"},
    {Work::kCollecting, "_PyGC_", "", "Python"},
    {Work::kCollecting, "PyGC_Collect", "", "Python"},
    {Work::kLoading, "", "torch/utils/data/", "a data loader"},
    {Work::kLoading, "", "/datasets/", "datasets"},
    {Work::kLoading, "", "/tokenizers/", "a tokenizer"},
    {Work::kLoading, "", "tokenization_", "a tokenizer"},
    {Work::kLoading, "", "safetensors", "safetensors"},
    {Work::kLoading, "", "torch/serialization", "torch.load"},
    {Work::kAllocating, "cudaMalloc", "", "device memory"},
    {Work::kAllocating, "cudaFree", "", "device memory"},
    {Work::kAllocating, "cuMemAlloc", "", "device memory"},
    {Work::kAllocating, "cuMemFree", "", "device memory"},
    {Work::kAllocating, "cuMemCreate", "", "device memory"},
    {Work::kAllocating, "cuMemMap", "", "device memory"},
    {Work::kAllocating, "cudaHostAlloc", "", "pinned memory"},
    {Work::kAllocating, "cuMemHostAlloc", "", "pinned memory"},
    {Work::kAllocating, "cuMemHostRegister", "", "pinned memory"},
    {Work::kWaiting, "cuStreamSynchronize", "", ""},
    {Work::kWaiting, "cuEventSynchronize", "", ""},
    {Work::kWaiting, "cuCtxSynchronize", "", ""},
    {Work::kWaiting, "cudaStreamSynchronize", "", ""},
    {Work::kWaiting, "cudaEventSynchronize", "", ""},
    {Work::kWaiting, "cudaDeviceSynchronize", "", ""},
    {Work::kCopying, "cuMemcpy", "", ""},
    {Work::kCopying, "cudaMemcpy", "", ""},
    {Work::kLaunching, "cuLaunchKernel", "", ""},
    {Work::kLaunching, "cudaLaunchKernel", "", ""},
    {Work::kLaunching, "cuGraphLaunch", "", ""},
    {Work::kLaunching, "cudaGraphLaunch", "", ""},
});

// Libraries that have kernels compiled for them, for the words "nvrtc for cuDNN".
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kAsking = {
    {{"libcudnn", "cuDNN"}, {"libcufft", "cuFFT"}, {"libtorch", "PyTorch"}, {"libcublas", "cuBLAS"}}};

bool fits(const Sign& sign, const StackFrame& frame) {
  return (sign.function.empty() || frame.function.starts_with(sign.function)) &&
         (sign.file.empty() || frame.file.find(sign.file) != std::string::npos);
}

// By the file that the innermost frames of known files lie in.
Work by_file(std::span<const StackFrame> stack) {
  for (const StackFrame& frame : stack) {
    if (frame.kind == "python") return Work::kPython;
    const std::string_view file = std::string_view(frame.file).substr(frame.file.rfind('/') + 1);
    if (file.starts_with("libtorch") || file.starts_with("libc10") || file.starts_with("_C.") ||
        file.find("jaxlib") != std::string_view::npos || file.starts_with("xla_"))
      return Work::kFramework;
    if (file.starts_with("python3") || file.starts_with("libpython")) return Work::kPython;
    if (file.starts_with("libcuda") || file.starts_with("libcupti")) return Work::kLaunching;
  }
  return Work::kOther;
}

}  // namespace

std::string_view work_name(Work work) {
  static constexpr std::array<std::string_view, 12> kNames = {"compilation",
                                                              "autotuning",
                                                              "memory allocation",
                                                              "garbage collection",
                                                              "imports",
                                                              "data loading",
                                                              "waiting for the device",
                                                              "copies",
                                                              "launching, in the CUDA driver",
                                                              "the framework's native code",
                                                              "Python",
                                                              "other code"};
  return kNames[static_cast<std::size_t>(work)];
}

bool is_launching(Work work) {
  return work == Work::kLaunching || work == Work::kFramework || work == Work::kPython || work == Work::kOther;
}

HostWork work_of(std::span<const StackFrame> stack) {
  HostWork out;
  const auto python = std::ranges::find(stack, "python", &StackFrame::kind);
  if (python != stack.end()) out.where = python->function;
  for (const Sign& sign : kSigns) {
    const auto frame = std::ranges::find_if(stack, [&](const StackFrame& each) { return fits(sign, each); });
    if (frame == stack.end()) continue;
    out.work = sign.work;
    out.what = sign.what;
    if (sign.what != "nvrtc") return out;
    for (const auto& [file, library] : kAsking) {
      if (std::any_of(frame, stack.end(),
                      [&](const StackFrame& each) { return each.file.find(file) != std::string::npos; }))
        return out.what += " for ", out.what += library, out;
    }
    return out;
  }
  out.work = by_file(stack);
  return out;
}

}  // namespace llmprof::analyze
