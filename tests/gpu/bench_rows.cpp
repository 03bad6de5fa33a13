// Row-wise and streaming operators on a GPU against their references, every implementation in every type: sizes of
// models, and sizes that are no multiple of anything. Needs an NVIDIA GPU. Usage: build/tests/gpu_operators_test

#include "check_operator.h"

namespace llmprof::bench {
namespace {

struct Case {
  const char* op;
  std::vector<Axes> axes;
};
void PrintTo(const Case& one, std::ostream* out) { *out << one.op; }

const std::vector<Axes> kRows{
    {{"hidden", 1}},                  // a lane per row
    {{"seq", 7}, {"hidden", 3}},      // rows that do not begin at 16 bytes
    {{"seq", 130}, {"hidden", 64}},   // several rows in a warp
    {{"seq", 300}, {"hidden", 128}},  // the same with a last block that is not full
    {{"seq", 5}, {"hidden", 4095}},
    {{"seq", 1}, {"hidden", 4096}},                  // few rows: a thread per access
    {{"batch", 2}, {"seq", 135}, {"hidden", 1031}},  // more rows: several accesses
    {{"seq", 540}, {"hidden", 1032}},                // as many as a thread keeps
    {{"seq", 540}, {"hidden", 1031}},
    {{"seq", 3}, {"hidden", 33000}},  // more than a block's registers hold
    {{"seq", 3}, {"hidden", 33001}},
};

const std::vector<Case> kCases{
    {"residual_add", kRows},
    {"layernorm", kRows},
    {"layernorm_gelu", kRows},
    {"rmsnorm", kRows},
    {"residual_rmsnorm", kRows},
    {"gelu", {{{"hidden", 1}}, {{"seq", 5}, {"hidden", 4095}}, {{"seq", 61}, {"hidden", 4099}}}},
    {"gelu_tanh", {{{"hidden", 1}}, {{"seq", 5}, {"hidden", 4095}}, {{"seq", 61}, {"hidden", 4099}}}},
    {"silu_mul",
     {{{"intermediate", 1}},
      {{"seq", 5}, {"intermediate", 14336}},
      {{"seq", 152}, {"intermediate", 14336}},
      {{"seq", 9}, {"intermediate", 4097}},
      {{"seq", 20}, {"intermediate", 4100}}}},
    {"softmax",
     {{{"hidden", 1}},
      {{"seq", 7}, {"hidden", 3}},
      {{"seq", 300}, {"hidden", 128}},
      {{"seq", 5}, {"hidden", 4095}},
      {{"seq", 5}, {"hidden", 4096}},
      {{"seq", 3}, {"hidden", 16390}},
      {{"seq", 3}, {"hidden", 128256}},
      {{"seq", 2}, {"hidden", 151937}},
      {{"seq", 1}, {"hidden", 300001}},
      {{"seq", 20}, {"hidden", 33000}}}},
    {"rope",
     {{},
      {{"seq", 9}, {"heads", 5}, {"kv_heads", 1}, {"head_dim", 2}},
      {{"seq", 9}, {"heads", 7}, {"kv_heads", 3}, {"head_dim", 80}},
      {{"seq", 9}, {"heads", 7}, {"kv_heads", 3}, {"head_dim", 6}},
      {{"seq", 200}, {"heads", 32}, {"kv_heads", 8}, {"head_dim", 128}},
      {{"seq", 3}, {"heads", 3}, {"kv_heads", 3}, {"head_dim", 2048}}}},
    {"kv_write",
     {{{"batch", 3}, {"context", 48}},
      {{"batch", 3}, {"seq", 5}, {"kv_heads", 1}, {"head_dim", 3}, {"context", 12}, {"page", 4}},
      {{"batch", 3}, {"seq", 5}, {"kv_heads", 1}, {"head_dim", 6}, {"context", 12}, {"page", 0}},
      {{"batch", 2}, {"seq", 33}, {"kv_heads", 8}, {"head_dim", 128}, {"context", 64}, {"page", 16}},
      {{"batch", 2}, {"seq", 3}, {"kv_heads", 128}, {"head_dim", 128}, {"context", 4}, {"page", 2}}}},
    {"copy", {{{"values", 1}}, {{"values", 4096}}, {{"values", 100'003}}, {{"values", 500'001}}}},
};

class GpuRows : public testing::TestWithParam<Case> {};

TEST_P(GpuRows, EqualTheirReferences) { check_operator(GetParam().op, GetParam().axes); }

INSTANTIATE_TEST_SUITE_P(Operators, GpuRows, testing::ValuesIn(kCases),
                         [](const auto& one) { return std::string(one.param.op); });

}  // namespace
}  // namespace llmprof::bench
