// Operator tables, perhaps from a stranger: the first byte chooses the kind of table, the rest is its text. Whatever is
// read must give finite times that are not negative.

#include <cmath>

#include "fuzz.h"
#include "predict/tables/read_tables.h"

namespace llmprof::fuzz {
namespace {

void ask(const predict::Grid& grid, double value) {
  const std::array<double, predict::Grid::kMaxAxes> at{value, value, value, value};
  const predict::Answer answer = grid.ask(std::span(at).first(grid.axes()));
  require(std::isfinite(answer.ns) && answer.ns >= 0);
  for (std::size_t axis = 0; axis < grid.axes(); ++axis) {
    const auto without = grid.ask_without(std::span(at).first(grid.axes()), axis);
    require(!without || std::isfinite(without->ns));
  }
}

void run(std::string_view input) {
  if (input.empty()) return;
  const auto kinds = predict::table_kinds();
  const predict::TableKind& kind = kinds[static_cast<unsigned char>(input.front()) % kinds.size()];
  predict::OperatorTables tables;
  if (!predict::read_table_text(kind, input.substr(1), "input", tables)) return;
  for (const std::string& name : tables.operators()) {
    predict::Grid& grid = *tables.find(name);
    grid.settle(nullptr);
    if (grid.empty()) continue;
    for (const double value : {0.0, 1.0, 7.0, 100.0, 1e6}) ask(grid, value);
    for (const predict::Grid::Point& point : grid.all()) {
      require(grid.ask(std::span(point.at).first(grid.axes())).ns == point.ns);
    }
  }
  (void)tables.skew.alpha(16, 0, {.count = 4, .mean = 300, .least = 200, .most = 600});
  (void)predict::tensor_of_path(input);
}

std::string seed(std::string_view name, std::string_view text) {
  const auto kinds = predict::table_kinds();
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (kinds[i].name == name) return static_cast<char>(i) + std::string(text);
  }
  return "";
}

std::vector<std::string> seeds() {
  return {seed("dense", "layer,tokens,time_us\nqkv_proj,1,2.5\nqkv_proj,8,3\nact_fn,1,1\n"),
          seed("per_sequence", "layer,sequences,time_us\nlm_head,1,1096.93\nsampler,1,20\n"),
          seed("attention",
               "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n0,0,1,16,9.3\n16,0,0,0,8\n16,32,2,64,12\n"),
          seed("moe", "tokens,activated_experts,time_us\n4,8,10\n16,8,11\n"),
          seed("all_reduce", "tokens,time_us\n16,10\n32,12\n"),
          seed("skew_fit",
               "pc,n_label,skew_rate_label,kv_big_label,kp_label,alpha,n_samples\n"
               "0,n<=4,sr<=40%,kvB<=1k,kp=0,0.25,4\n16,n<=4,sr>70%,kvB<=16k,kp<=512,0.5,4\n")};
}

std::vector<std::string> dictionary() {
  return {"time_us", "tokens", "layer", "attention", "1e308", "-1", "nan", "inf", "\r\n", "n<=", "sr>", "\"", "tp2"};
}

}  // namespace

const Target kTarget{run, seeds, dictionary};

}  // namespace llmprof::fuzz
