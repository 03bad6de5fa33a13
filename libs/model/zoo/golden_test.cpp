// Holds the analysis to golden.txt, whose numbers come from transformers and torch, and to what calflops says.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "model/memory.h"
#include "model/model.h"
#include "model/zoo/zoo.h"

namespace llmprof::model {
namespace {

constexpr Conditions kUnlimited{};

struct Golden {
  std::string name;
  std::int64_t parameters = 0, active = 0;
  double prefill = 0, decode = 0, kv = 0, weights = 0, torch = 0;
};

std::vector<Golden> read_golden() {
  std::ifstream file(LLMPROF_SOURCE_DIR "/libs/model/zoo/golden.txt");
  std::vector<Golden> table;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#') || line.starts_with("name ")) continue;
    Golden row;
    std::istringstream(line) >> row.name >> row.parameters >> row.active >> row.prefill >> row.decode >> row.kv >>
        row.weights >> row.torch;
    table.push_back(row);
  }
  return table;
}

void PrintTo(const Golden& golden, std::ostream* out) { *out << golden.name; }

Result<Graph> graph_of(const std::string& name) {
  const ZooEntry* entry = find_in_zoo(name);
  if (entry == nullptr) return Error{ErrorCode::kNotFound, name + " is not built in", ""};
  LLMPROF_LET(const Config config, config_of(*entry));
  return Graph(config);
}

// A forward that computes the logits of every position, with latents expanded: what programs execute, but for masks.
std::vector<OpCost> whole_forward(const Graph& graph, std::int64_t tokens) {
  const Pass pass = mixed({{.count = 1, .tokens = tokens, .context = tokens, .sampled = tokens}});
  return analyze_by_op(graph, pass, {.latent = Latent::kExpanded});
}

// Squares of scores instead of the causal n(n + 1)/2 pairs. For windows of at least `tokens`.
double flops_with_squares(const std::vector<OpCost>& costs, std::int64_t tokens) {
  const auto n = static_cast<double>(tokens);
  double sum = 0;
  for (const OpCost& cost : costs) sum += cost.flops * (cost.op_class == OpClass::kAttention ? 2 * n / (n + 1) : 1);
  return sum;
}

class GoldenTable : public ::testing::TestWithParam<Golden> {};

TEST_P(GoldenTable, Holds) {
  const Golden& golden = GetParam();
  const Result<Graph> known = graph_of(golden.name);
  ASSERT_TRUE(known) << known.error().message;
  const Graph& graph = *known;
  EXPECT_EQ(parameters(graph), golden.parameters);
  EXPECT_EQ(active_parameters(graph), golden.active);
  EXPECT_EQ(total(graph, prefill(1, 128), kUnlimited).flops, golden.prefill);
  EXPECT_EQ(total(graph, decode(1, 1024), kUnlimited).flops, golden.decode);
  EXPECT_EQ(kv_bytes_per_token(graph), golden.kv);
  EXPECT_NEAR(weights_bytes(graph), golden.weights, 0.5);
}

TEST_P(GoldenTable, EqualsTorchInItsConvention) {
  const Result<Graph> graph = graph_of(GetParam().name);
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_DOUBLE_EQ(flops_with_squares(whole_forward(*graph, 128), 128), GetParam().torch);
}

INSTANTIATE_TEST_SUITE_P(Zoo, GoldenTable, ::testing::ValuesIn(read_golden()), [](const auto& test) {
  std::string name = test.param.name;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});

TEST(GoldenFile, HasEveryModelOnce) {
  const std::vector<Golden> table = read_golden();
  EXPECT_GE(table.size(), 25u);
  for (const ZooEntry& entry : zoo()) {
    EXPECT_EQ(std::ranges::count(table, entry.name, &Golden::name), 1) << entry.name;
  }
  EXPECT_EQ(table.size(), zoo().size());
}

// calflops prints 1,700.06 GFLOP, 850 GMAC and 6,738,415,616 parameters for Llama 2 7B at 1 x 128 tokens. It counts
// what an eager program executes: squares of scores, logits at all positions, and besides the products one FLOP for
// every element of softmax and silu. Ours leaves out the masked half of the squares, the logits that nobody samples,
// and everything that is no product.
TEST(Calflops, Llama2At128Tokens) {
  const Result<Graph> known = graph_of("llama-2-7b");
  ASSERT_TRUE(known) << known.error().message;
  const Graph& graph = *known;
  EXPECT_EQ(parameters(graph), 6'738'415'616);
  // Per token 32·(4·4096² + 3·4096·11008) + 4096·32000 multiply-adds, and 32·2·4096 per pair of 128².
  const double products = flops_with_squares(whole_forward(graph, 128), 128);
  EXPECT_DOUBLE_EQ(products, 2 * (128 * (32 * 202'375'168.0 + 131'072'000) + 32 * 2 * 4096 * 128.0 * 128));
  EXPECT_EQ(fmt::format("{:.0f}", products / 2 / 1e9), "850");
  const double softmax = 32 * 32 * 128 * 128,
               silu = 32 * 128 * 11008;  // layers · heads · pairs; layers · tokens · width
  EXPECT_EQ(fmt::format("{:.2f}", (products + softmax + silu) / 1e9), "1700.06");
  // Ours: 127 of 128 logits less (33.29 GFLOP), and 128·127/2 pairs of each head and layer less (4.26 GFLOP).
  const double ours = total(graph, prefill(1, 128), kUnlimited).flops;
  EXPECT_DOUBLE_EQ(products - ours, 127 * 2 * 131'072'000.0 + 32 * 4 * 4096 * (128.0 * 127 / 2));
  EXPECT_EQ(fmt::format("{:.2f}", ours / 1e9), "1662.45");
}

}  // namespace
}  // namespace llmprof::model
