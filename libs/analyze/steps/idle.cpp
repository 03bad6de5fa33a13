#include "analyze/steps/idle.h"

#include <algorithm>
#include <array>
#include <map>

#include "analyze/names/grammar.h"
#include "analyze/questions.h"
#include "analyze/rows_of.h"

namespace llmprof::analyze {

namespace {

StageIdle& find_or_add(std::vector<StageIdle>& out, const std::string& stage, bool warm_up) {
  for (StageIdle& each : out) {
    if (each.stage == stage && each.warm_up == warm_up) return each;
  }
  return out.emplace_back(StageIdle{.stage = stage, .warm_up = warm_up});
}

struct PlaceRow {
  std::string stage;
  bool warm_up = false;
  std::string place;
  std::int64_t gap_ns = 0, between_ns = 0;
};

struct FrameRow {
  std::int64_t stack_id = 0;
  std::string kind, function, file;
};

struct SampleRow {
  std::string stage;
  bool warm_up = false;
  std::int64_t stack_id = 0, samples = 0, cpu_ns = 0;
};

Result<void> add_places(const trace::Run& run, std::vector<StageIdle>& out) {
  LLMPROF_LET(const std::vector<PlaceRow> rows, ask_rows<PlaceRow>(run, "idle_places"));
  for (const PlaceRow& row : rows) {
    StageIdle& idle = find_or_add(out, row.stage, row.warm_up);
    idle.gap_ns += row.gap_ns, idle.between_ns += row.between_ns;
    idle.places.push_back({row.place, row.gap_ns + row.between_ns});
  }
  return {};
}

Result<std::map<std::int64_t, HostWork>> works_of_stacks(const trace::Run& run) {
  LLMPROF_LET(const std::vector<FrameRow> rows, ask_rows<FrameRow>(run, "idle_stacks"));
  std::map<std::int64_t, std::vector<StackFrame>> stacks;
  for (const FrameRow& row : rows) stacks[row.stack_id].push_back({row.kind, row.function, row.file});
  std::map<std::int64_t, HostWork> out;
  for (const auto& [id, frames] : stacks) out[id] = work_of(frames);
  return out;
}

struct Tally {  // of one kind of work in one stage
  std::int64_t samples = 0, cpu_ns = 0;
  std::map<std::string, std::int64_t> whats, wheres;  // CPU time
};

std::string most(const std::map<std::string, std::int64_t>& times) {
  const auto by_time = [](const auto& a, const auto& b) { return a.second < b.second; };
  return times.empty() ? "" : std::ranges::max_element(times, by_time)->first;
}

Result<void> add_works(const trace::Run& run, std::vector<StageIdle>& out) {
  LLMPROF_LET(const auto works, works_of_stacks(run));
  LLMPROF_LET(const std::vector<SampleRow> rows, ask_rows<SampleRow>(run, "idle_samples"));
  std::map<std::pair<std::string, bool>, std::map<Work, Tally>> tallies;
  for (const SampleRow& row : rows) {
    const auto found = works.find(row.stack_id);
    const HostWork work = found == works.end() ? HostWork{} : found->second;
    Tally& tally = tallies[{row.stage, row.warm_up}][work.work];
    tally.samples += row.samples, tally.cpu_ns += row.cpu_ns;
    tally.whats[work.what] += row.cpu_ns, tally.wheres[work.where] += row.cpu_ns;
  }
  for (const auto& [key, kinds] : tallies) {
    StageIdle& idle = find_or_add(out, key.first, key.second);
    for (const auto& [work, tally] : kinds) {
      idle.samples += tally.samples;
      idle.works.push_back({work, most(tally.whats), most(tally.wheres), tally.samples, tally.cpu_ns});
    }
    std::ranges::stable_sort(idle.works, std::greater{}, &IdleWork::cpu_ns);
  }
  return {};
}

}  // namespace

std::int64_t StageIdle::cpu_ns() const {
  std::int64_t out = 0;
  for (const IdleWork& each : works) out += each.cpu_ns;
  return out;
}

std::int64_t StageIdle::cpu_ns(Work work) const {
  const auto found = std::ranges::find(works, work, &IdleWork::work);
  return found == works.end() ? 0 : found->cpu_ns;
}

Result<std::vector<StageIdle>> idle_time(const trace::Run& run) {
  std::vector<StageIdle> out;
  LLMPROF_TRY(add_places(run, out));
  LLMPROF_TRY(add_works(run, out));
  return out;
}

const StageIdle* find_idle(const std::vector<StageIdle>& idle, std::string_view stage, bool warm_up) {
  const auto found =
      std::ranges::find_if(idle, [&](const StageIdle& each) { return each.stage == stage && each.warm_up == warm_up; });
  return found == idle.end() ? nullptr : &*found;
}

namespace {

// One place for the names that tell what a host does, of a step's idle time (Work) and of the program's life (phases of
// life.h). Patterns are of whole names, '|' separates alternatives, '*' stands for any text; "": any. The first line
// that a frame fits counts, and of a stack's frames the one whose line comes first tells its work: what is done on
// purpose comes before what every step does. Names are those that CUDA, PyTorch, Triton, JAX, CPython and Hugging
// Face's libraries export or print.
struct Sign {
  Work work;               // kOther: tells none
  std::string_view phase;  // "": tells none
  std::string_view function, file;
  std::string_view what = {};
};

constexpr Work kNoWork = Work::kOther;
constexpr std::array kSigns = std::to_array<Sign>({
    {kNoWork, "exit", "Py_FinalizeEx|exit|__run_exit_handlers|_dl_fini|_run_exitfuncs|_exit_function|__cxa_finalize",
     ""},
    // Compilers. Those that only run what was compiled say nothing.
    {Work::kTuning, "", "Autotuner.*", "*triton/runtime/autotuner*", "Triton"},
    {Work::kTuning, "compile", "", "*torch/_inductor/select_algorithm*", "Inductor"},
    {Work::kTuning, "compile", "xla::gpu::Autotun*|xla::gpu::GemmFusionAutotun*", "", "XLA"},
    {Work::kTuning, "", "cudnnFind*", "", "cuDNN"},
    {Work::kCompiling, "compile", "nvrtcCompile*", "", "nvrtc"},
    {Work::kCompiling, "compile", "", "*libnvrtc*", "nvrtc"},
    {Work::kCompiling, "compile", "", "*libnvidia-ptxjitcompiler*|*libnvidia-nvvm*", "the driver's PTX compiler"},
    {Work::kCompiling, "compile", "nvPTXCompiler*", "", "the PTX compiler"},
    {Work::kCompiling, "compile", "nvJitLink*", "", "nvJitLink"},
    {Work::kCompiling, "compile", "", "*libnvJitLink*", "nvJitLink"},
    {Work::kCompiling, "compile", "cuLinkComplete*", "", "the driver's linker"},
    {Work::kCompiling, "compile", "", "*triton/compiler/*|*triton/language/*|*triton/backends/*/compiler.py", "Triton"},
    {Work::kCompiling, "compile", "", "*triton/runtime/build.py|*/libtriton.so*", "Triton"},
    {Work::kCompiling, "compile",
     "CachingAutotuner.precompile*|CachingAutotuner._precompile*|CachingAutotuner._make_launchers*|"
     "CachingAutotuner.autotune*|CachingAutotuner.benchmark*",
     "", "Inductor"},
    {kNoWork, "", "*__call__", "*torch/_inductor/codecache.py"},
    {kNoWork, "", "",
     "*torch/_inductor/output_code*|*torch/_inductor/utils*|*torch/_inductor/cudagraph*|"
     "*torch/_inductor/runtime/triton_heuristics*"},
    {Work::kCompiling, "compile", "", "*torch/_inductor/*", "Inductor"},
    {Work::kCompiling, "compile", "",
     "*torch/_dynamo/convert_frame*|*torch/_dynamo/symbolic_convert*|*torch/_dynamo/output_graph*|"
     "*torch/_dynamo/bytecode_*|*torch/_dynamo/guards*|*torch/_dynamo/variables/*|*torch/_dynamo/backends/*",
     "Dynamo"},
    {Work::kCompiling, "compile", "",
     "*torch/_functorch/partitioners*|*torch/_functorch/_aot_autograd/collect*|"
     "*torch/_functorch/_aot_autograd/graph*|*torch/_functorch/_aot_autograd/dispatch*|"
     "*torch/_functorch/_aot_autograd/traced*|*torch/_functorch/_aot_autograd/autograd_cache*|"
     "*torch/_functorch/_aot_autograd/jit*",
     "AOTAutograd"},
    {Work::kCompiling, "compile", "",
     "*torch/fx/passes/*|*torch/fx/experimental/*|*torch/fx/interpreter.py|*torch/fx/graph.py", "torch.fx"},
    {Work::kCompiling, "compile", "", "*torch/utils/cpp_extension.py", "a C++ compiler"},
    {Work::kCompiling, "compile", "xla::*Compile*|xla::*HloPass*|xla::*BufferAssign*", "", "XLA"},
    {Work::kCompiling, "compile", "", "*jax/_src/compiler.py", "XLA"},
    {Work::kCompiling, "compile", "", "*jax/_src/interpreters/mlir.py", "JAX"},
    {Work::kCompiling, "compile", "", "*jax/_src/interpreters/partial_eval.py", "JAX's tracing"},
    {Work::kCompiling, "compile", "llvm::*|mlir::*", "*xla*|*jaxlib*", "XLA"},
    {Work::kCompiling, "compile", "mlir::*", "", "MLIR"},
    {Work::kCompiling, "compile", "llvm::*", "", "LLVM"},
    {Work::kImporting, "imports", "_find_and_load*|PyImport_*|_PyImport*", "", "Python"},
    {Work::kImporting, "imports", "", "<frozen importlib*|*/importlib/*", "Python"},
    {Work::kCollecting, "", "gc_collect*|_PyGC_*|PyGC_Collect*", "", "Python"},
    // What the program reads and makes before it can work. Python's own parser has a tokenizer, too.
    {kNoWork, "", "*PyTokenizer*", ""},
    {kNoWork, "", "", "*/lib/python3*/tokenize.py|*/lib/python3*/inspect.py|*/lib/python3*/linecache.py"},
    {Work::kLoading, "tokenize", "",
     "*/tokenizers/*|*tokenizers.abi*|*/transformers/tokenization*|*tokenization_*|*/sentencepiece*|*/tiktoken*",
     "a tokenizer"},
    {kNoWork, "tokenize", "*okenize*|*okenizing*|*OKENIZE*", "", "a tokenizer"},
    {Work::kLoading, "weights", "", "*/safetensors/*|*safetensors_rust*", "safetensors"},
    {Work::kLoading, "weights", "", "*torch/serialization.py|*torch/_weights_only_unpickler.py", "torch.load"},
    {kNoWork, "weights", "", "*/gguf/*|*/numpy/lib/npyio*|*/numpy/lib/_npyio*|*/transformers/core_model_loading*"},
    {kNoWork, "weights",
     "*oad_checkpoint*|*oad_weights*|*oad_pretrained*|*oad_state_dict*|*oad_tensors*|*oad_model*|*ead_checkpoint*|"
     "*ead_weights*|*ead_pretrained*|*ead_state_dict*|*ead_tensors*|*ead_model*|*oadCheckpoint*|*oadWeights*|"
     "*oadStateDict*|*oadTensors*|*oadModel*|*eadCheckpoint*|*eadWeights*|*eadTensors*|*eadModel*|*gguf_init*|"
     "*llama_model_load*",
     ""},
    {kNoWork, "weights", "*from_pretrained*", "*/modeling_*|*/models/auto/auto_factory*"},
    {kNoWork, "build", "", "*torch/nn/init.py"},
    {kNoWork, "build",
     "*init_weights*|*init_param*|*initweights*|*InitWeights*|*initWeights*|*InitParam*|*initParam*|*reset_parameters*|"
     "*build_from_random*|*build_from_descriptor*|*build_from_config*",
     ""},
    {kNoWork, "build", "*__init__", "*torch/nn/modules/*|*/transformers/models/*"},
    {Work::kLoading, "data", "", "*torch/utils/data/*", "a data loader"},
    {Work::kLoading, "data", "", "*-packages/datasets/*", "datasets"},
    // The device.
    {Work::kAllocating, "memory", "cudaMalloc*|cuMemAlloc*|cuMemCreate*", "", "device memory"},
    {Work::kAllocating, "memory", "*BFCAllocator::Extend*|*BFCAllocator::RegionManager*", "", "device memory"},
    {Work::kAllocating, "memory", "cudaHostAlloc*|cuMemHostAlloc*|cuMemHostRegister*", "", "pinned memory"},
    {Work::kAllocating, "", "cudaFree*|cuMemFree*|cuMemMap*", "", "device memory"},
    {Work::kWaiting, "gpu_wait",
     "cuStreamSynchronize*|cuEventSynchronize*|cuCtxSynchronize*|cudaStreamSynchronize*|cudaEventSynchronize*|"
     "cudaDeviceSynchronize*",
     ""},
    {Work::kCopying, "host_to_device", "cuMemcpyHtoD*", ""},
    {kNoWork, "host_to_device", "Module.to|Module.cuda", ""},
    {Work::kCopying, "", "cuMemcpy*|cudaMemcpy*", ""},
    {Work::kLaunching, "", "cuLaunchKernel*|cudaLaunchKernel*|cuGraphLaunch*|cudaGraphLaunch*", ""},
    {kNoWork, "recording", "", "*libcupti*"},
    {kNoWork, "gpu_start",
     "cuInit*|cuCtxCreate*|cuDevicePrimaryCtxRetain*|cuModuleLoad*|cuLibraryLoad*|cudaGetDeviceCount*|cudaSetDevice*|"
     "__cudaRegister*|cublasCreate*|cublasLtCreate*|cudnnCreate*|nvmlInit*",
     ""},
    {kNoWork, "gpu_start", "_lazy_init", "*/torch/cuda/*"},
    {kNoWork, "start", "Py_Initialize*|_Py_Initialize*|pyinit_*", ""},
    {kNoWork, "start", "", "*/site.py|<frozen site>|<frozen getpath>"},
    {kNoWork, "libraries", "", "*/ld-linux*|*/ld-musl*"},
});

bool fits_one(std::string_view pattern, std::string_view text) {
  // Most patterns have a star at one end or both: that is a search, and far faster.
  const bool open_left = pattern.starts_with('*'), open_right = pattern.size() > 1 && pattern.ends_with('*');
  const std::string_view core =
      pattern.substr(open_left ? 1 : 0, pattern.size() - (open_left ? 1 : 0) - (open_right ? 1 : 0));
  if (core.find('*') != std::string_view::npos) return matches(pattern, text);
  if (open_left && open_right) return text.find(core) != std::string_view::npos;
  return open_left ? text.ends_with(core) : open_right ? text.starts_with(core) : text == core;
}

bool fits(std::string_view patterns, std::string_view text) {
  if (patterns.empty()) return true;
  while (true) {
    const std::size_t end = patterns.find('|');
    if (fits_one(patterns.substr(0, end), text)) return true;
    if (end == std::string_view::npos) return false;
    patterns.remove_prefix(end + 1);
  }
}

// Its place in the table; kSigns.size() if it tells nothing.
std::size_t sign_of(const StackFrame& frame) {
  const auto found = std::ranges::find_if(
      kSigns, [&](const Sign& sign) { return fits(sign.function, frame.function) && fits(sign.file, frame.file); });
  return static_cast<std::size_t>(found - kSigns.begin());
}

// Libraries that have kernels compiled for them, for the words "nvrtc for cuDNN".
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kAsking = {
    {{"libcudnn", "cuDNN"}, {"libcufft", "cuFFT"}, {"libtorch", "PyTorch"}, {"libcublas", "cuBLAS"}}};

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
  std::size_t first = kSigns.size();
  auto teller = stack.end();
  for (auto frame = stack.begin(); frame != stack.end(); ++frame) {
    const std::size_t sign = sign_of(*frame);
    if (sign < first && kSigns[sign].work != kNoWork) first = sign, teller = frame;
  }
  if (teller == stack.end()) return out.work = by_file(stack), out;
  out.work = kSigns[first].work;
  out.what = kSigns[first].what;
  if (out.what != "nvrtc") return out;
  for (const auto& [file, library] : kAsking) {
    if (std::any_of(teller, stack.end(),
                    [&](const StackFrame& each) { return each.file.find(file) != std::string::npos; }))
      return out.what += " for ", out.what += library, out;
  }
  return out;
}

FramePhase phase_of(const StackFrame& frame) {
  const std::size_t sign = sign_of(frame);
  return sign < kSigns.size() ? FramePhase{kSigns[sign].phase, kSigns[sign].what} : FramePhase{};
}

std::string phase_label(const std::string& phase) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 19> kLabels = {
      {{"libraries", "loading libraries"},
       {"gpu_start", "starting the GPU"},
       {"memory", "allocating memory"},
       {"weights", "reading weights"},
       {"build", "building the model"},
       {"tokenize", "tokenizing"},
       {"data", "reading data"},
       {"host_to_device", "host to device"},
       {"compile", "compilation"},
       {"warm_up", "warm-up"},
       {"between_steps", "between steps"},
       {"gpu_wait", "waiting for the GPU"},
       {"recording", "CUPTI (recording)"},
       {"threads", "other threads"},
       {"processes", "waiting for processes"},
       {"host_work", "other host work"},
       {"other", "other steps"},
       {"unsampled", "host work, unsampled"},
       {"idle", "idle or waiting"}}};
  const auto found = std::ranges::find(kLabels, phase, [](const auto& label) { return label.first; });
  return found == kLabels.end() ? phase : std::string(found->second);
}

}  // namespace llmprof::analyze
