#include <gtest/gtest.h>

#include <gmock/gmock.h>

#include "analyze/measures/measured_findings.h"

namespace llmprof::analyze {

namespace {

using testing::HasSubstr;

// Two layers with hidden 4, heads of 2, MLP 8, vocabulary 10, tied: linear layers 2·7 + 1 = 15. Their weights:
// 2·(16 + 8 + 8 + 16 + 3·32) + 40 = 328; parameters 328 + norms 2·2·4 + 4 = 348.
model::Config tiny() {
  return *model::parse_config(
      R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 4, "num_attention_heads": 2,
          "num_key_value_heads": 1, "intermediate_size": 8, "vocab_size": 10, "tie_word_embeddings": true,
          "torch_dtype": "bfloat16"})",
      "tiny");
}

design::Roof roof() {
  design::Roof roof{.device = "Toy", .source = "catalogue"};
  roof.peaks = {{.quantity = "flops", .type = "float32", .value = 1e12, .unit = "FLOP/s", .source = "spec"},
                {.quantity = "bandwidth", .type = "read", .value = 2e9, .unit = "B/s", .source = "spec"}};
  return roof;
}

MeasuredTable profile(std::int64_t calls) {
  MeasuredTable table{.device = "CUDA", .cpu_total_ns = 40'000.0, .device_total_ns = 10'000.0};
  table.rows.push_back({.name = "aten::linear", .calls = calls, .device_ns = 8200.0});
  table.rows.push_back({.name = "Memcpy HtoD (Pageable -> Device)", .calls = 1, .self_device_ns = 1000.0});
  return table;
}

TEST(MeasuredFindings, TypePassesTrafficAndBusyTime) {
  // 1392 B / 348 = 4: float32. 150 calls / 15 = 10 passes of 820 ns; 328·4 = 1312 B in 820 ns = 1.6 GB/s = 80 % of 2.
  const MeasuredFindings f = explain(tiny(), profile(150), 1392.0, roof());
  EXPECT_EQ(f.parameters, 348);
  EXPECT_DOUBLE_EQ(*f.bytes_per_parameter, 4);
  EXPECT_EQ(f.stored_type, "float32");
  EXPECT_TRUE(f.type_inferred);
  EXPECT_EQ(f.linears_per_pass, 15);
  EXPECT_EQ(f.passes, 10);
  EXPECT_DOUBLE_EQ(*f.linear_ns, 820);
  EXPECT_DOUBLE_EQ(f.linear_bytes, 1312);
  EXPECT_DOUBLE_EQ(*f.linear_bytes_per_s, 1.6e9);
  EXPECT_DOUBLE_EQ(*f.linear_share_of_bandwidth, 0.8);
  EXPECT_DOUBLE_EQ(*f.linear_floor_ns, 656);
  EXPECT_EQ(f.linear_bound, "memory");
  EXPECT_DOUBLE_EQ(*f.busy, 0.25);
  ASSERT_EQ(f.shares.size(), 2U);
  EXPECT_DOUBLE_EQ(*f.shares[0].of_device, 0.82);
  EXPECT_DOUBLE_EQ(*f.shares[1].of_device, 0.1);
  EXPECT_TRUE(f.caveats.empty());
  ASSERT_EQ(f.follows.size(), 4U);  // the host, fewer bytes, not kernels, copies
  EXPECT_THAT(f.follows[1], HasSubstr("float16"));
  EXPECT_THAT(f.follows[2], HasSubstr("20 % of their time at most"));
}

TEST(MeasuredFindings, WhatDoesNotFitIsSaidNotGuessed) {
  const MeasuredFindings odd = explain(tiny(), profile(151), 348 * 3.0, roof());
  EXPECT_FALSE(odd.passes || odd.linear_ns || odd.linear_bytes_per_s);
  EXPECT_EQ(odd.stored_type, "bfloat16");  // the config's own
  EXPECT_FALSE(odd.type_inferred);
  ASSERT_EQ(odd.caveats.size(), 2U);
  EXPECT_THAT(odd.caveats[0], HasSubstr("3.000 bytes per parameter fit no type"));
  EXPECT_THAT(odd.caveats[1], HasSubstr("151 calls of aten::linear are not a whole number of passes"));
}

TEST(MeasuredFindings, WithoutADeviceThereIsARateButNoShare) {
  design::Roof none;
  none.why = "no device";
  const MeasuredFindings f = explain(tiny(), profile(150), 1392.0, none);
  EXPECT_DOUBLE_EQ(*f.linear_bytes_per_s, 1.6e9);
  EXPECT_FALSE(f.linear_share_of_bandwidth || f.linear_floor_ns);
  EXPECT_EQ(f.floor_why, "no device");
}

}  // namespace

}  // namespace llmprof::analyze
