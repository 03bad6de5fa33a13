#include "predict/tables/read_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace llmprof::predict {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

struct TableFolder {
  TableFolder() {
    std::string made = testing::TempDir() + "/tables-XXXXXX";
    path = ::mkdtemp(made.data());
  }
  ~TableFolder() { fs::remove_all(path); }
  TableFolder& write(const std::string& name, const std::string& content) {
    fs::create_directories(fs::path(path + "/" + name).parent_path());
    std::ofstream(path + "/" + name, std::ios::binary) << content;
    return *this;
  }
  std::string path;
};

constexpr const char* kDense = "layer,tokens,time_us\nqkv_proj,1,2.5\nqkv_proj,8,3\nact_fn,1,1\n";

Result<OperatorTables> parse(std::string_view kind, std::string_view text) {
  OperatorTables tables;
  const auto read = read_table_text(*find_table_kind(kind), text, "t.csv", tables);
  if (!read) return read.error();
  return tables;
}

std::string error_of(std::string_view kind, std::string_view text) {
  const auto read = parse(kind, text);
  return read ? "no error" : read.error().message + " | " + read.error().hint;
}

double at_one(OperatorTables& tables, const char* op, std::vector<double> at) {
  tables.find(op)->settle(nullptr);
  return tables.find(op)->ask(at).ns;
}

TEST(ReadTables, MicrosecondsBecomeNanoseconds) {
  auto tables = parse("dense", kDense);
  ASSERT_TRUE(tables);
  EXPECT_THAT(tables->operators(), ElementsAre("act_fn", "qkv_proj"));
  EXPECT_EQ(at_one(*tables, "qkv_proj", {1}), 2500);
  EXPECT_EQ(tables->find("qkv_proj")->blend(), Blend::kOverhead);  // no floor known
  EXPECT_EQ(tables->source.files.at(0).rows, 3);
}

TEST(ReadTables, ColumnsComeInAnyOrderAmongOthers) {
  auto tables = parse("attention",
                      "\xef\xbb\xbftime_us,note,kv_decode,n_decode,\"kv_prefill\",prefill_chunk\r\n"
                      "7,x,16,2,64,32\r\n\r\n");
  ASSERT_TRUE(tables) << tables.error().message;
  EXPECT_EQ(at_one(*tables, "attention", {32, 64, 2, 16}), 7000);
}

TEST(ReadTables, EveryKind) {
  auto moe = parse("moe", "tokens,activated_experts,time_us\n4,8,10\n");
  ASSERT_TRUE(moe);
  EXPECT_EQ(at_one(*moe, "moe", {4, 8}), 10000);
  auto sequences = parse("per_sequence", "layer,sequences,time_us\nlm_head,1,10\nsampler,1,20\n");
  ASSERT_TRUE(sequences);
  EXPECT_EQ(at_one(*sequences, "sampler", {1}), 20000);
  auto bytes = parse("all_reduce", "bytes,time_us\n1024,10\n");
  ASSERT_TRUE(bytes);
  EXPECT_EQ(at_one(*bytes, "all_reduce", {1024}), 10000);
  auto tokens = parse("all_reduce", "tokens,time_us\n16,10\n");
  ASSERT_TRUE(tokens);
  EXPECT_EQ(at_one(*tokens, "all_reduce_tokens", {16}), 10000);
}

TEST(ReadTables, ErrorsNameFileAndLine) {
  EXPECT_THAT(error_of("dense", "layer,time_us\na,1\n"),
              AllOf(HasSubstr("t.csv:1"), HasSubstr("no column tokens"), HasSubstr("layer, tokens, time_us")));
  EXPECT_THAT(error_of("dense", "layer,tokens,time_us\na,1,2\na,1\n"), HasSubstr("t.csv:3: 2 cells"));
  EXPECT_THAT(error_of("dense", "layer,tokens,time_us\na,1,fast\n"), HasSubstr("t.csv:2: time_us is \"fast\""));
  EXPECT_THAT(error_of("dense", "layer,tokens,time_us\na,1,nan\n"), HasSubstr("t.csv:2"));
  EXPECT_THAT(error_of("dense", "layer,tokens,time_us\na,1,inf\n"), HasSubstr("t.csv:2"));
  EXPECT_THAT(error_of("dense", "layer,tokens,time_us\na,1,-3\n"), HasSubstr("t.csv:2: a time of -3 us"));
  EXPECT_THAT(error_of("dense", "layer,tokens,time_us\na,1,0\n"), HasSubstr("t.csv:2: a time of 0 us"));
  EXPECT_THAT(error_of("dense", "layer,tokens,time_us\na,-1,3\n"), HasSubstr("t.csv:2: a size of -1"));
  EXPECT_THAT(error_of("dense", "layer,tokens,time_us\na,1e300,3\n"), HasSubstr("t.csv:2: a size of 1e+300"));
  EXPECT_THAT(error_of("dense", "layer,tokens,time_us\n,1,3\n"), HasSubstr("name of an operator"));
  EXPECT_THAT(error_of("dense", "layer,tokens,time_us\n"), HasSubstr("is empty"));
  EXPECT_THAT(error_of("dense", ""), HasSubstr("is empty"));
  // One operator with the axes of another table.
  EXPECT_THAT(error_of("dense", "layer,tokens,time_us\nattention,1,3\n"), HasSubstr("no error"));
}

TEST(ReadTables, SkewFit) {
  const std::string header = "pc,n_label,skew_rate_label,kv_big_label,kp_label,alpha,n_samples\n";
  auto tables = parse("skew_fit", header + "0,n<=4,sr<=40%,kvB<=1k,kp=0,0.25,4\n0,n<=4,sr>70%,kvB<=1k,kp=0,0.5,4\n");
  ASSERT_TRUE(tables) << tables.error().message;
  EXPECT_EQ(tables->skew.size(), 2);
  EXPECT_EQ(tables->skew.alpha(0, 0, {.count = 4, .mean = 300, .least = 200, .most = 600}), 0.25);
  EXPECT_EQ(tables->skew.alpha(0, 0, {.count = 3, .mean = 580, .least = 200, .most = 600}), 0.5);
  EXPECT_FALSE(tables->skew.alpha(0, 0, {.count = 3, .mean = 600, .least = 600, .most = 600}));
  EXPECT_THAT(error_of("skew_fit", header + "0,four,sr<=40%,kvB<=1k,kp=0,0.25,4\n"), HasSubstr("\"four\""));
  EXPECT_THAT(error_of("skew_fit", header + "0,n<=4,sr<=40%,kvB<=1k,kp=0,nan,4\n"), HasSubstr("t.csv:2"));
}

TEST(ReadTables, DegreesOfParallelism) {
  EXPECT_EQ(tensor_of_path("ops_tp1_dense.csv.gz"), 1);
  EXPECT_EQ(tensor_of_path("tp8/dense.csv"), 8);
  EXPECT_EQ(tensor_of_path("tp_4-dense.csv"), 4);
  EXPECT_EQ(tensor_of_path("http2/dense.csv"), 0);
  EXPECT_EQ(tensor_of_path("dense.csv"), 0);
  EXPECT_EQ(tensor_of_path("tp99999999999999999999/dense.csv"), 0);
  TableFolder folder;
  folder.write("tp1/dense.csv", kDense).write("tp4/dense.csv", "layer,tokens,time_us\nqkv_proj,1,9\n");
  auto four = read_tables(folder.path, 4);
  ASSERT_TRUE(four) << four.error().message;
  EXPECT_EQ(four->source.tensor, 4);
  EXPECT_EQ(at_one(*four, "qkv_proj", {1}), 9000);
  const auto two = read_tables(folder.path, 2);
  ASSERT_FALSE(two);
  EXPECT_THAT(two.error().message, HasSubstr("there are 1, 4"));
}

TEST(ReadTables, NamesWithoutADegreeServeAllOfThem) {
  TableFolder folder;
  folder.write("dense.csv", kDense).write("notes.csv", "what,ever\n").write("readme.txt", "");
  const auto tables = read_tables(folder.path, 2);
  ASSERT_TRUE(tables) << tables.error().message;
  EXPECT_EQ(tables->source.tensor, 0);
  EXPECT_EQ(tables->source.files.size(), 1u);
}

TEST(ReadTables, FoldersThatAreNone) {
  EXPECT_THAT(read_tables("/nonexistent", 1).error().message, HasSubstr("/nonexistent"));
  TableFolder folder;
  EXPECT_THAT(read_tables(folder.path, 1).error().message, HasSubstr("no operator tables"));
  folder.write("a/dense.csv", kDense).write("b/dense.csv", kDense);
  EXPECT_THAT(read_tables(folder.path, 1).error().message, HasSubstr("two tables dense: a/dense.csv and b/dense.csv"));
}

TEST(ReadTables, DamagedCompressionIsAnError) {
  TableFolder folder;
  std::ifstream file(std::string(LLMPROF_SOURCE_DIR) + "/libs/predict/backtests/vllm_0.19_rtx4090/ops_tp1_dense.csv.gz",
                     std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(file)), {});
  folder.write("dense.csv.gz", whole.substr(0, whole.size() / 2));
  const auto tables = read_tables(folder.path, 1);
  ASSERT_FALSE(tables);
  EXPECT_THAT(tables.error().message, HasSubstr("dense.csv.gz"));
}

TEST(ReadTables, TheMachineIsNamedByMetaJson) {
  TableFolder folder;
  folder.write("dense.csv", kDense);
  folder.write("meta.json", R"({"model": "m", "vllm_version": "0.19.0", "hardware": {"device_name": "NVIDIA X"}})");
  const auto tables = read_tables(folder.path, 1);
  ASSERT_TRUE(tables);
  EXPECT_EQ(tables->source.device, "NVIDIA X");
  EXPECT_EQ(tables->source.model, "m");
  EXPECT_EQ(tables->source.engine, "vLLM 0.19.0");
  folder.write("meta.json", "[");
  EXPECT_TRUE(read_tables(folder.path, 1));
}

TEST(OperatorTables, PointsOneByOne) {
  OperatorTables tables;
  const std::vector<double> tokens{4}, four{16, 0, 2, 64};
  ASSERT_TRUE(tables.add("qkv_proj", tokens, 100));
  ASSERT_TRUE(tables.add("attention", four, 100));
  EXPECT_FALSE(tables.add("attention", tokens, 100));
  EXPECT_FALSE(tables.add("qkv_proj", tokens, -1));
  EXPECT_FALSE(tables.add("qkv_proj", tokens, NAN));
  EXPECT_EQ(tables.find("qkv_proj")->blend(), Blend::kUtilisation);
  EXPECT_EQ(tables.find("o_proj"), nullptr);
}

}  // namespace
}  // namespace llmprof::predict
