#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "base/human.h"
#include "base/json.h"
#include "base/kernel_name.h"
#include "base/result.h"
#include "base/strings.h"
#include "base/text_table.h"

namespace llmprof::base {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return Error{ErrorCode::kUsage, "odd", ""};
  return value / 2;
}

Result<int> quarter(int value) {
  LLMPROF_LET(const int once, half(value));
  return half(once);
}

TEST(Result, PropagatesTheFirstError) {
  EXPECT_EQ(*quarter(12), 3);
  EXPECT_EQ(quarter(6).error().message, "odd");
}

TEST(Human, ThreeDigitsAndUnit) {
  EXPECT_EQ(human_ns(812), "812 ns");
  EXPECT_EQ(human_ns(1'530'000), "1.53 ms");
  EXPECT_EQ(human_ns(192e9), "3 min 12 s");
  EXPECT_EQ(human_bytes(97'500), "97.5 kB");
  EXPECT_EQ(human_rate(9.3e10, "FLOP/s"), "93.0 GFLOP/s");
  EXPECT_EQ(human_percent(0.4231), "42.3 %");
  EXPECT_EQ(human_percent(0.0004), "<0.1 %");
  EXPECT_EQ(human_percent(std::nullopt), "-");
  EXPECT_EQ(human_count(999'700), "1.00 M");
  EXPECT_EQ(singular("processes"), "process");
  EXPECT_EQ(singular("libraries"), "library");
  EXPECT_EQ(singular("names"), "name");
}

TEST(Csv, QuotesAndDefusesText) {
  EXPECT_EQ(csv_text("mlp.up_proj"), "mlp.up_proj");
  EXPECT_EQ(csv_text("a,\"b\""), "\"a,\"\"b\"\"\"");
  EXPECT_EQ(csv_text("=cmd()"), "'=cmd()");
  EXPECT_EQ(csv_text(""), "\"\"");
  EXPECT_EQ(csv_raw("-1.5"), "-1.5");
  EXPECT_EQ(csv_raw(""), "");
}

TEST(TextTable, NeverWiderThanAsked) {
  TextTable table({{"name", Align::kLeft, true}, {"time", Align::kRight}});
  table.add({"layers.11.attention.output_projection", "1.25 ms"});
  table.add({"x", "9 ns"});
  const std::string text = table.render(24, 2);
  // 24 = 2 indent + 13 name + 2 gap + 7 time; 13 = 6 + the ellipsis + 6.
  EXPECT_EQ(text, "  name              time\n  layers…ection  1.25 ms\n  x                 9 ns\n");
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    EXPECT_LE(display_width(std::string_view(text).substr(begin, end - begin)), 24u);
    begin = end + 1;
  }
}

TEST(TextTable, ContinuesBelowWhereColumnsDoNotFitSoThatNoneIsLost) {
  TextTable table({{"stage", Align::kLeft, true}, {"time"}, {"tokens/s"}, {"latency"}});
  table.add({"prefill", "1.25 ms", "50407", "10.0 ms"});
  EXPECT_EQ(table.render(30, 2),
            "  stage       time  tokens/s\n  prefill  1.25 ms     50407\n\n  stage    latency\n  prefill  10.0 ms\n");
  EXPECT_EQ(table.render(40, 2), "  stage       time  tokens/s  latency\n  prefill  1.25 ms     50407  10.0 ms\n");
}

TEST(TextTable, LeavesOutOptionalColumnsTheLastFirst) {
  TextTable table(
      {{"stage", Align::kLeft}, {"steps", Align::kRight, false, true}, {"time"}, {"p99", Align::kRight, false, true}});
  table.add({"decode", "12", "1.25 ms", "2.00 ms"});
  EXPECT_EQ(table.render(40, 0), "stage   steps     time      p99\ndecode     12  1.25 ms  2.00 ms\n");
  EXPECT_EQ(table.render(25, 0), "stage   steps     time\ndecode     12  1.25 ms\n");
  EXPECT_EQ(table.render(16, 0), "stage      time\ndecode  1.25 ms\n");
}

TEST(Printable, MakesControlBytesVisible) {
  EXPECT_EQ(printable("a\nb\x1b[31m"), "a\\x0ab\\x1b[31m");
  EXPECT_EQ(printable("\xff"), "\\xff");
  EXPECT_EQ(printable("été"), "été");
  EXPECT_EQ(printable("\xE2\x80\xAE"
                      "abc"),
            "\\xe2\\x80\\xaeabc");
}

TEST(File, WritesAtomicallyAndReadsBack) {
  const std::string dir = std::filesystem::temp_directory_path() / ("llmprof_base_" + std::to_string(getpid()));
  ASSERT_TRUE(make_directories(dir));
  ASSERT_TRUE(write_file(dir + "/a", "hello"));
  EXPECT_EQ(*read_file(dir + "/a", 100), "hello");
  EXPECT_EQ(read_file(dir + "/a", 4).error().code, ErrorCode::kCorruptInput);
  EXPECT_EQ(read_file(dir + "/b", 4).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(read_file(dir, 4).error().code, ErrorCode::kCorruptInput);
  EXPECT_EQ(list_directory(dir), std::vector<std::string>{"a"});
  const mode_t before = ::umask(022);
  ASSERT_TRUE(write_file(dir + "/picture", "hello", Readers::kAsTheUmaskSays));
  ::umask(before);
  std::filesystem::create_symlink("picture", dir + "/link");
  ASSERT_TRUE(write_file(dir + "/link", "through it", Readers::kAsTheUmaskSays));
  EXPECT_TRUE(std::filesystem::is_symlink(dir + "/link"));
  EXPECT_EQ(*read_file(dir + "/picture", 100), "through it");
  const auto mode_of = [&](const char* name) { return std::filesystem::status(dir + name).permissions(); };
  EXPECT_EQ(mode_of("/a"), std::filesystem::perms(0600));
  EXPECT_EQ(mode_of("/picture"), std::filesystem::perms(0644));
  std::filesystem::remove_all(dir);
}

TEST(Json, ErrorsNameTheFileAndTheByte) {
  EXPECT_EQ(parse_json("{\"a\": nul}", "x.json").error().message.substr(0, 12), "x.json:byte ");
  EXPECT_FALSE(parse_json(std::string(1000, '['), "deep"));
  EXPECT_FALSE(parse_json("1e999", "huge number"));
  EXPECT_EQ(to_line(*parse_json("{\"b\":1,\"a\":2}", "x")), "{\"b\":1,\"a\":2}");
  EXPECT_NO_THROW(to_line(Json("\xff")));
}

TEST(KernelName, IsWithoutReturnTypeAndParameters) {
  EXPECT_EQ(kernel_name("_Z4gemmILi4EEvPf"), "gemm<4>");
  EXPECT_EQ(kernel_name("_ZN12_GLOBAL__N_14copyEPf"), "(anonymous namespace)::copy");
  EXPECT_EQ(kernel_name("ampere_bf16_s16816gemm"), "ampere_bf16_s16816gemm");
  EXPECT_EQ(kernel_name("_Zbroken"), "_Zbroken");
  EXPECT_EQ(kernel_name("_Z" + std::string(5000, 'x')).size(), 4096u);
}

TEST(KernelName, IsCutOutOfDemangledText) {
  EXPECT_EQ(without_signature("void at::add<(int)4>(float *, T1)"), "at::add<(int)4>");
  EXPECT_EQ(without_signature("scale(float *, int)"), "scale");
  EXPECT_EQ(without_signature("scale"), "scale");
  EXPECT_EQ(without_signature(""), "");
}

TEST(ShortKernelName, KeepsWhatTellsKernelsApart) {
  EXPECT_EQ(short_kernel_name("softmax"), "softmax");
  EXPECT_EQ(short_kernel_name("at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, 3>"),
            "vectorized_elementwise_kernel<CUDAFunctor_add>");
  EXPECT_EQ(short_kernel_name("cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16>"), "Kernel2");
  EXPECT_EQ(short_kernel_name("<lambda>"), "<lambda>");
  EXPECT_EQ(short_kernel_name(""), "");
  EXPECT_EQ(short_kernel_name("void at::native::add(float*)"), "add");
  EXPECT_EQ(short_kernel_name("(anonymous namespace)::scale"), "scale");
  EXPECT_EQ(short_kernel_name("void at::native::(anonymous namespace)::softmax_warp_forward<float, 8>(float*, int)"),
            "softmax_warp_forward");
  EXPECT_EQ(short_kernel_name("Memcpy HtoD"), "Memcpy HtoD");
}

}  // namespace
}  // namespace llmprof::base
