// Logs of cuBLAS, cuBLASLt and NCCL: lines that may be torn, mixed or binary. What they ask for is joined to itself:
// every call finds its own kernel, in order.

#include "import_fuzz.h"
#include "importers/join_calls.h"

namespace llmprof::fuzz {
namespace {

void join(std::string_view text) {
  importers::MemorySink sink;
  importers::Input input = importers::Input::of_text("input", std::string(text));
  if (!importers::find_importer("cublas")->parse(input, sink)) return;
  sink.flush();
  std::vector<importers::LoggedCall> calls;
  std::vector<importers::ProductKernel> kernels;
  for (const auto& row : sink.rows<trace::GemmRow>()) {
    const std::string_view function = sink.text(row.function);
    if (importers::is_inner_call(function)) continue;
    calls.push_back({1, row.m, row.n, row.k, row.batch, sink.text(row.library), function, "", "", ""});
    kernels.push_back({row.id, 1, 1, row.id, 1, "gemm", row.id, row.n, row.m, row.k, row.batch});
  }
  const std::vector<std::int32_t> joined = importers::join_calls(calls, kernels);
  for (std::size_t i = 0; i < joined.size(); ++i) require(joined[i] == static_cast<std::int32_t>(i));
}

void run(std::string_view input) {
  check_importer("cublas", input);
  check_importer("nccl", input);
  join(input);
}

std::vector<std::string> seeds() {
  const std::string block =
      "I! cuBLAS (v13.1.0) function cublasStatus_t cublasGemmEx(cublasHandle_t, int) called:\n"
      "i!  transa: type=cublasOperation_t; val=CUBLAS_OP_T(1)\n"
      "i!  m: type=int; val=1536\ni!  n: type=int; val=128\ni!  k: type=int; val=1024\n"
      "i!  Atype: type=cudaDataType_t; val=CUDA_R_16BF(14)\n"
      "i!  computeType: type=cublasComputeType_t; val=CUBLAS_COMPUTE_32F(68)\n"
      "i! Time: 2026-11-15T19:25:56 elapsed from start 0.166667 minutes or 10.000000 seconds\n"
      "i!Process=1846; Thread=140012333318464; GPU=0; Handle=POINTER (IN HEX:0x0x37480d70); "
      "MathMode=CUBLAS_DEFAULT_MATH\n";
  const std::string lt =
      "[2026-11-15 19:25:56][cublasLt][1846][Trace][cublasLtTSTMatmul] A=0X7F Adesc=[type=R_16BF rows=1024 cols=1536 "
      "ld=1024] B=0X7F Bdesc=[type=R_16BF rows=1024 cols=128 ld=1024] C=0X7F Cdesc=[type=R_16BF rows=1536 cols=128 "
      "ld=1536] D=0X7F Ddesc=[type=R_16BF rows=1536 cols=128 ld=1536] computeDesc=[computeType=COMPUTE_32F "
      "scaleType=R_32F transa=OP_T smCountTarget=132] algo=[algoId=66 tile=MATMUL_TILE_64x32 "
      "stages=MATMUL_STAGES_64xAUTO customOption=3 clusterShape=CLUSTER_SHAPE_2x4x1] beta=0 stream=0X0\n";
  return {block + block, block + lt, lt + "\x1b[31mhello\n" + lt,
          "h:18:18 [0] NCCL INFO AllReduce: opCount 1 sendbuff 0x7 recvbuff 0x7 count 8192 datatype 9 op 0 root 0 comm "
          "0x16 [nranks=2] stream (nil)\n"};
}

std::vector<std::string> dictionary() {
  return {"I! cuBLAS (v", " called:\n", "i!  m: type=int; val=", "i!Process=", "i! Time: ",   "][cublasLt][",
          "[Trace]",      "Matmul] ",   "batchCount=",           "rows=",      " NCCL INFO ", ": opCount ",
          "\x1b["};
}

}  // namespace

const Target kTarget{run, seeds, dictionary};

}  // namespace llmprof::fuzz
