#include "predict/implementation/kernel_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmprof::predict {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr std::string_view kRows =
    R"ROWS({"row": "about", "framework": "pytorch", "version": "2.11", "device": "a GPU"}
{"row": "kernel", "kernel": "void add(float*)", "op": "residual 0", "scale": "rows", "stage": "decode", "graph": true, "tokens": 8, "blocks": 4, "threads": 128, "ns": 1500}
{"row": "product", "m": 8, "n": 2048, "k": 1024, "dtype": "bfloat16", "stage": "decode", "graph": true, "kernels": ["gemm"], "ns": 5000}
{"row": "attention", "stage": "prefill", "form": "causal", "asked": "flash", "same": true, "heads": 8, "kv_heads": 2, "head_dim": 64, "batch": 1, "q": 128, "kv": 128, "kernels": ["flash"], "ns": 9000}
{"row": "gap", "graph_ns": 350, "queued_ns": 1100}
{"row": "launch", "op_ns": 3800}
{"row": "recording", "ns": 131000}
{"row": "something new", "x": 1}
{"row": "note", "text": "time is up"}
)ROWS";

TEST(KernelRows, AreReadAndWrittenAlike) {
  const auto rows = parse_probed(kRows, "a test");
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_THAT(rows->kernels, SizeIs(1));
  EXPECT_EQ(rows->kernels[0].blocks, 4);
  EXPECT_TRUE(rows->kernels[0].graph);
  EXPECT_EQ(rows->products[0].k, 1024);
  EXPECT_EQ(rows->attention[0].q, 128);
  EXPECT_EQ(rows->graph_gap_ns, 350);
  EXPECT_EQ(rows->op_ns, 3800);
  EXPECT_EQ(rows->recording_ns, 131000);
  EXPECT_THAT(rows->notes, testing::ElementsAre("time is up"));
  const auto again = parse_probed(to_lines(*rows), "written");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(to_lines(*again), to_lines(*rows));
}

TEST(KernelRows, WhatIsWrongIsNamedWithItsLine) {
  const auto error_of = [](std::string_view text) {
    const auto rows = parse_probed(text, "x.jsonl");
    return rows ? std::string("accepted") : rows.error().message;
  };
  const std::string kernel = R"({"row": "kernel", "kernel": "k", "op": "o", "scale": "rows", "stage": "decode", )";
  EXPECT_THAT(error_of("\n" + kernel + R"("tokens": 0, "blocks": 1, "ns": 1})"), HasSubstr("line 2: 'tokens'"));
  EXPECT_THAT(error_of(kernel + R"("tokens": 1, "blocks": 1, "ns": -1})"), HasSubstr("'ns'"));
  EXPECT_THAT(error_of(kernel + R"("tokens": 1, "blocks": "4", "ns": 1})"), HasSubstr("'blocks'"));
  EXPECT_THAT(error_of(R"({"row": "kernel"})"), HasSubstr("'kernel'"));
  EXPECT_THAT(error_of("[1]"), HasSubstr("not a row"));
  EXPECT_THAT(error_of("{\"row\": 1}"), HasSubstr("not a row"));
  EXPECT_THAT(error_of("{"), HasSubstr("line 1"));
}

TEST(KernelRows, ARowMeasuredAgainReplacesTheOldOne) {
  ProbedRows rows = *parse_probed(kRows, "a test"), newer = rows;
  newer.kernels[0].ns = 1600, newer.graph_gap_ns = 0;
  newer.kernels.push_back(newer.kernels[0]);
  newer.kernels.back().tokens = 16;
  merge(rows, newer);
  ASSERT_THAT(rows.kernels, SizeIs(2));
  EXPECT_EQ(rows.kernels[0].ns, 1600);
  EXPECT_EQ(rows.kernels[1].tokens, 16);
  EXPECT_THAT(rows.products, SizeIs(1));
  EXPECT_EQ(rows.graph_gap_ns, 350);  // the newer did not measure it
}

// As CUPTI and PyTorch's profiler print the same kernels.
TEST(KernelRows, NamesOfDemanglersCompareEqual) {
  EXPECT_EQ(comparable_name("void at::native::vec<4, (anonymous namespace)::Add<float> >(int, Add, char*)"),
            comparable_name("at::native::vec<4,(anonymous namespace)::Add<float>>"));
  EXPECT_EQ(comparable_name("void k<std::array<char*, 3ul> >(int)"),
            comparable_name("void k<std::array<char*, 3> >(int)"));
  EXPECT_NE(comparable_name("k<4>(int)"), comparable_name("k<8>(int)"));
  EXPECT_EQ(comparable_name("nvjet_tst_64x8_64x16_4x1_v_bz_TNT"), "nvjet_tst_64x8_64x16_4x1_v_bz_TNT");
}

}  // namespace
}  // namespace llmprof::predict
