#include "advise/advise.h"

#include <gtest/gtest.h>

#include "advise/makers.h"

namespace llmprof::advise {
namespace {

using Words = std::vector<std::string>;

TEST(Shell, WordsComeBackAsTheyWere) {
  EXPECT_EQ(shell_word("--metrics=a.sum,b.pct"), "--metrics=a.sum,b.pct");
  EXPECT_EQ(shell_word("regex:^(a|b)$"), "'regex:^(a|b)$'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("a\nb"), "'a\nb'");
  EXPECT_EQ(shell_word("~/x"), "'~/x'");
}

TEST(Shell, PatternsKeepTheirStar) {
  EXPECT_EQ(shell_pattern("profile.cublaslt.*.log"), "profile.cublaslt.*.log");
  EXPECT_EQ(shell_pattern("my run.*.log"), "'my run.'*.log");
}

TEST(Shell, AssignmentsKeepTheirName) {
  EXPECT_EQ(shell_assignment("A=b c"), "A='b c'");
  EXPECT_EQ(shell_assignment("A="), "A=");
}

TEST(Tool, VersionsAreNumbersWithDots) {
  EXPECT_EQ(version_in("NVIDIA Nsight Systems version 2025.3.1.0"), "2025.3.1.0");
  EXPECT_EQ(version_in("Copyright (c) 2018-2025 NVIDIA\nVersion 2025.3.1.0 (build 36398880)"), "2025.3.1.0");
  EXPECT_EQ(version_in("2.11.0+cu130\n"), "2.11.0");
  EXPECT_EQ(version_in("no number 7"), "");
}

TEST(Tool, ProgramsThatHangAreEnded) {
  const auto begin = std::chrono::steady_clock::now();
  const Result<std::string> text = output_of({"/bin/sh", "-c", "echo 1.2; sleep 1000"}, std::chrono::milliseconds(200));
  ASSERT_TRUE(text);
  EXPECT_EQ(*text, "1.2\n");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(100));  // not the sleep's 1000
  EXPECT_FALSE(output_of({"/no/such/program"}, std::chrono::milliseconds(200)));
}

TEST(Hints, FunctionsAreNamedAsNcuNamesThem) {
  // Left: as Kineto and CUPTI say it; right: `ncu --print-kernel-base function` of the same kernels on an H200.
  EXPECT_EQ(
      function_of(
          "void at::native::(anonymous namespace)::indexSelectSmallIndex<c10::BFloat16, long, unsigned int, 2, 2, "
          "-2>(at::cuda::detail::TensorInfo<c10::BFloat16, unsigned int>, long)"),
      "indexSelectSmallIndex");
  EXPECT_EQ(function_of(
                "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::(anonymous "
                "namespace)::CompareFunctor<long> >(at::TensorIteratorBase&)::{lambda(int)#1}>(int, T3)"),
            "elementwise_kernel");
  EXPECT_EQ(
      function_of("at::native::(anonymous namespace)::CatArrayBatchedCopy<OpaqueType<2u>, unsigned int, 4, 64, 64>"),
      "CatArrayBatchedCopy");
  EXPECT_EQ(function_of("nvjet_sm90_tst_16x64_64x16_4x1_v_bz_TNN"), "nvjet_sm90_tst_16x64_64x16_4x1_v_bz_TNN");
  EXPECT_EQ(function_of("[CUDA memcpy HtoD]"), "");
}

TEST(Hints, NamesAreEscapedAndCut) {
  EXPECT_EQ(kernel_regex({{"a", 1, 1}, {"b$1", 1, 1}}), "^(a|b\\$1)$");
  const std::string cut = kernel_regex({{std::string(300, 'x'), 1, 1}});
  EXPECT_EQ(cut, "^(" + std::string(96, 'x') + ".*)$");
}

TEST(GivenCommand, OptionsOfTheToolEndWhereTheProgramBegins) {
  const GivenCommand nsys = read_command({"A=1", "/opt/x/nsys", "profile", "-t", "cuda", "--stats=true", "-ox",
                                          "--output", "y", "python3", "-u", "a.py", "-t"});
  EXPECT_EQ(nsys.tool, "nsys");
  EXPECT_EQ(nsys.program, (Words{"python3", "-u", "a.py", "-t"}));
  EXPECT_EQ(nsys.environment, Words{"A=1"});
  ASSERT_NE(nsys.option("--output"), nullptr);
  EXPECT_EQ(*nsys.option("--output"), "y");
  EXPECT_EQ(nsys.script(), "a.py");
  const GivenCommand ncu = read_command({"ncu", "--nvtx", "--csv", "-k", "regex:x", "-f", "./a.out", "--csv"});
  EXPECT_EQ(ncu.program, (Words{"./a.out", "--csv"}));
  EXPECT_EQ(read_command({"env", "B=2", "./a.out", "C=3"}).program, (Words{"./a.out", "C=3"}));
}

bool says(const Words& command, const std::string& text) {
  for (const std::string& mistake : mistakes_in(read_command(command))) {
    if (mistake.find(text) != std::string::npos) return true;
  }
  return false;
}

TEST(Mistakes, OfNsys) {
  EXPECT_TRUE(says({"nsys", "profile", "-c", "nvtx", "--capture-range-end=nvtx", "./a"},
                   "--capture-range-end=nvtx is not a value"));
  EXPECT_TRUE(says({"nsys", "profile", "--capture-range=nvtx", "./a"}, "-p NAME"));
  EXPECT_TRUE(
      says({"nsys", "profile", "--capture-range=nvtx", "-p", "x", "./a"}, "NSYS_NVTX_PROFILER_REGISTER_ONLY=0"));
  EXPECT_TRUE(says({"nsys", "profile", "--capture-range=cudaProfilerApi", "./a"}, "143"));
  EXPECT_TRUE(says({"nsys", "profile", "-o", "x.qdrep", "./a"}, "-o x"));
  const Words right{"NSYS_NVTX_PROFILER_REGISTER_ONLY=0",
                    "nsys",
                    "profile",
                    "--capture-range=nvtx",
                    "-p",
                    "decode_step",
                    "--capture-range-end=repeat:2",
                    "-o",
                    "x",
                    "./a"};
  EXPECT_TRUE(mistakes_in(read_command(right)).empty());
}

TEST(Mistakes, OfNcu) {
  EXPECT_TRUE(says({"ncu", "--kernels", "::matmul*", "./a"}, "-k regex:matmul"));
  EXPECT_TRUE(says({"ncu", "-k", "matmul*", "./a"}, "regex:"));
  EXPECT_TRUE(says({"ncu", "--nvtx", "--nvtx-include", "decode_step", "./a"}, "'decode_step/'"));
  EXPECT_TRUE(says({"ncu", "--nvtx-include", "decode_step/", "./a"}, "--nvtx"));
  EXPECT_TRUE(says({"ncu", "--metrics", "smsp__warp_stall_memory_dependency_per_warp_active.pct", "./a"},
                   "smsp__average_warps_issue_stalled"));
  const Words right{"ncu", "--nvtx",       "--nvtx-include", "[generate/*/decode_step]",
                    "-k",  "regex:^scale", "--metrics",      "dram__bytes_read.sum",
                    "./a"};
  EXPECT_TRUE(mistakes_in(read_command(right)).empty());
}

TEST(Mistakes, OfProgramsAndTheirWords) {
  EXPECT_TRUE(
      says({"python3", "-c", "import os, torch; os.environ['CUBLAS_LOGINFO_DBG'] = '1'"}, "CUBLAS_LOGINFO_DBG"));
  EXPECT_TRUE(says({"nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv"}, "any kernel ran"));
  EXPECT_TRUE(mistakes_in(read_command({"python3", "-c", "print(1)"})).empty());
}

Wish nothing_installed(Words command) { return {std::move(command), nullptr, "", "profile", {"/no/such/folder", ""}}; }

TEST(Advise, WithoutTheToolItIsForARecentVersion) {
  const Result<Advice> advice = advise("nsys", nothing_installed({"./a.out", "x y"}));
  ASSERT_TRUE(advice);
  EXPECT_EQ(advice->path, "");
  ASSERT_EQ(advice->steps.size(), 3u);
  EXPECT_EQ(shell_line(advice->steps[0]),
            "nsys profile -t cuda,nvtx,cublas --sample=none --cpuctxsw=none --force-overwrite=true "
            "--cuda-graph-trace=node -o profile ./a.out 'x y'");
  EXPECT_EQ(shell_line(advice->steps[1]),
            "nsys export -t sqlite --force-overwrite=true -o profile.sqlite profile.nsys-rep");
  EXPECT_EQ(shell_line(advice->steps[2]), "llmprof import profile.sqlite -o profile");
  EXPECT_NE(to_text(*advice).find("not found here"), std::string::npos);
}

TEST(Advise, EverythingButCommandsIsAComment) {
  for (const char* tool : {"nsys", "ncu", "cublas"}) {
    const Result<Advice> advice = advise(tool, nothing_installed({"./a.out"}));
    ASSERT_TRUE(advice) << tool;
    std::string commands;
    const std::string text = to_text(*advice);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at);
      if (end > at && text[at] != '#') commands += text.substr(at, end - at) + "\n";
      at = end + 1;
    }
    std::string expected;
    for (const Step& step : advice->steps) expected += shell_line(step) + "\n";
    EXPECT_EQ(commands, expected) << tool;
  }
}

TEST(Advise, RefusesWhatItCannotHelpWith) {
  EXPECT_FALSE(advise("perf", nothing_installed({"./a.out"})));
  EXPECT_FALSE(advise("nsys", nothing_installed({})));
  EXPECT_FALSE(advise("nsys", nothing_installed({"nsys", "profile", "-o", "x"})));
  EXPECT_FALSE(advise("torch", nothing_installed({"./a.out"})));
  EXPECT_FALSE(advise("torch", nothing_installed({"python3", "-c", "print(1)"})));
}

TEST(Advise, TorchRunsTheProgramBelowItsOwn) {
  const Result<Advice> advice = advise("torch", nothing_installed({"python3", "-X", "dev", "a.py", "-x"}));
  ASSERT_TRUE(advice);
  EXPECT_EQ(shell_line(advice->steps[0]), "python3 -X dev profile_torch.py a.py -x");
  EXPECT_EQ(advice->steps[0].file, "profile_torch.py");
  EXPECT_NE(advice->steps[0].text.find("export_chrome_trace(\"profile.json\")"), std::string::npos);
  EXPECT_EQ(advice->steps[0].text.find('@'), std::string::npos);
  EXPECT_EQ(shell_line(advice->steps[1]), "llmprof import profile.json profile.pickle -o profile");
}

}  // namespace
}  // namespace llmprof::advise
