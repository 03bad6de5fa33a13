#include "workload/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "workload/generate.h"
#include "workload/presets.h"
#include "workload/weights_file.h"

namespace llmprof::workload {
namespace {

using testing::HasSubstr;

class SafetensorsTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path() const { return folder_ / "x.safetensors"; }

  void write_raw(std::uint64_t header_length, const std::string& rest) const {
    std::ofstream out(path(), std::ios::binary);
    out.write(reinterpret_cast<const char*>(&header_length), sizeof(header_length));
    out << rest;
  }
  void write(const std::string& header, const std::string& data) const { write_raw(header.size(), header + data); }

  // Writes a file from all the weights of a model as Hugging Face stores them.
  void write_model(const ModelConfig& config, Weights& weights, const std::string& prefix) const {
    std::string header = R"({"__metadata__":{"format":"pt"})";
    std::string data;
    for (const TensorSpec& spec : weights.specs()) {
      const float* const values = weights.tensor(spec.name);
      const std::size_t begin = data.size();
      for (std::int64_t i = 0; i < spec.count(); ++i) {
        // Conv1D files are (in, out): element i there is row i % out, column i / out here.
        const std::int64_t from = spec.stored_in_out ? i % spec.rows * spec.columns + i / spec.rows : i;
        data.append(reinterpret_cast<const char*>(values + from), sizeof(float));
      }
      const bool vector = spec.kind != TensorSpec::Kind::kMatrix;
      const std::string shape = vector               ? std::to_string(spec.columns)
                                : spec.stored_in_out ? std::to_string(spec.columns) + "," + std::to_string(spec.rows)
                                                     : std::to_string(spec.rows) + "," + std::to_string(spec.columns);
      const std::string name = spec.name.starts_with("lm_head") ? spec.name : prefix + spec.name;
      header += ",\"" + name + R"(":{"dtype":"F32","shape":[)" + shape + R"(],"data_offsets":[)" +
                std::to_string(begin) + "," + std::to_string(data.size()) + "]}";
    }
    header += "}   ";  // writers pad with spaces
    write(header, data);
    (void)config;
  }

  std::string error_of_open() const {
    auto file = SafetensorsFile::open(path());
    return file ? "accepted" : file.error().message;
  }
  std::string error_of(const std::string& header, std::uint64_t data_bytes) const {
    auto entries = parse_safetensors_header(header, data_bytes, "f");
    return entries ? "accepted" : entries.error().message;
  }

  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("llmprof_safetensors_" + std::to_string(::getpid()));
};

TEST_F(SafetensorsTest, ModelsComeBackFromTheirFiles) {
  ThreadPool pool(1);
  for (const auto& [preset, prefix] :
       {std::pair{"tiny-gpt2", "transformer."}, {"tiny-gpt2", ""}, {"tiny-llama", "model."}}) {
    const ModelConfig config = find_preset(preset)->config;
    Weights original = Weights::random(config, 3, pool);
    write_model(config, original, prefix);
    auto loaded = load_weights(config, path());
    ASSERT_TRUE(loaded) << loaded.error().message;
    for (const TensorSpec& spec : original.specs()) {
      const auto bytes = static_cast<std::size_t>(spec.count()) * sizeof(float);
      EXPECT_EQ(std::memcmp(original.tensor(spec.name), loaded->tensor(spec.name), bytes), 0) << spec.name;
    }
  }
}

TEST_F(SafetensorsTest, HalfTypesAreWidened) {
  // 1.5, -2, the smallest F16 subnormal 2^-24, infinity; BF16 1.5, -2
  const std::uint16_t f16[] = {0x3E00, 0xC000, 0x0001, 0x7C00};
  const std::uint16_t bf16[] = {0x3FC0, 0xC000};
  std::string data(reinterpret_cast<const char*>(f16), sizeof(f16));
  data.append(reinterpret_cast<const char*>(bf16), sizeof(bf16));
  write(
      R"({"a":{"dtype":"F16","shape":[4],"data_offsets":[0,8]},"b":{"dtype":"BF16","shape":[2],"data_offsets":[8,12]}})",
      data);
  auto file = SafetensorsFile::open(path());
  ASSERT_TRUE(file) << file.error().message;
  float values[4];
  ASSERT_TRUE(file->read(*file->find("a"), values));
  EXPECT_THAT(values, testing::ElementsAre(1.5F, -2.0F, 0x1.0p-24F, std::numeric_limits<float>::infinity()));
  ASSERT_TRUE(file->read(*file->find("b"), values));
  EXPECT_EQ(values[0], 1.5F);
  EXPECT_EQ(values[1], -2.0F);
}

TEST_F(SafetensorsTest, UnknownTypesAreKeptAndNotRead) {
  write(R"({"q":{"dtype":"F8_E9","shape":[7],"data_offsets":[0,3]}})", "abc");
  auto file = SafetensorsFile::open(path());
  ASSERT_TRUE(file) << file.error().message;
  float values[7];
  const Result<void> read = file->read(file->entries()[0], values);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("q: type F8_E9"));
}

TEST_F(SafetensorsTest, BadLengthsAndFilesAreRejected) {
  EXPECT_THAT(error_of_open(), HasSubstr("No such file"));
  write_raw(0, "{}");
  EXPECT_THAT(error_of_open(), HasSubstr("header length 0 is not between"));
  write_raw(1, "{}");
  EXPECT_THAT(error_of_open(), HasSubstr("header length 1 is not between"));
  write_raw(100'000'001, "{}");
  EXPECT_THAT(error_of_open(), HasSubstr("header length 100000001 is not between"));
  write_raw(1ULL << 63, "{}");
  EXPECT_THAT(error_of_open(), HasSubstr("header length 9223372036854775808 is not between"));
  write_raw(3, "{}");
  EXPECT_THAT(error_of_open(), HasSubstr("header length 3 exceeds the file"));
  std::ofstream(path(), std::ios::trunc) << "abc";
  EXPECT_THAT(error_of_open(), HasSubstr("shorter than the 8 bytes"));
  std::filesystem::remove(path());
  std::filesystem::create_directory(path());
  EXPECT_THAT(error_of_open(), HasSubstr("not a regular file"));
  std::filesystem::remove(path());
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  EXPECT_THAT(error_of_open(), HasSubstr("not a regular file"));
}

struct BadHeader {
  const char* header;
  std::uint64_t data_bytes;
  const char* message;
};

// Each breaks one rule of the format; the message names the tensor and the rule.
const BadHeader kBadHeaders[] = {
    {"[]", 0, "f: header: does not begin with '{'"},
    {" {}", 0, "f: header: does not begin with '{'"},
    {"{\"a\":", 0, "f: header: is not valid UTF-8 JSON"},
    {"{\"\xFF\":1}", 0, "f: header: is not valid UTF-8 JSON"},
    {R"({"a":{"shape":[[1]]}})", 0, "f: header: is nested too deeply"},
    {R"({"a":{"shape":{"b":1}}})", 0, "f: header: is nested too deeply"},
    {R"({"a":1})", 0, "f: a: is not an object"},
    {R"({"a":"x"})", 0, "f: a: is not an object"},
    {R"({"a":[[[[[[1]]]]]]})", 0, "f: a: is not an object"},
    {R"({"a":{"shape":[1],"data_offsets":[0,4]}})", 4, "f: a: has no dtype"},
    {R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", 4, "f: a: has no shape"},
    {R"({"a":{"dtype":"F32","shape":[1]}})", 4, "f: a: data_offsets are not two"},
    {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}})", 4, "f: a: data_offsets are not two"},
    {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}})", 4, "f: a: data_offsets are not two"},
    {R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, "f: a: shape has something else"},
    {R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})", 4, "f: a: shape has something else"},
    {R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]}})", 4, "f: a: product of the shape"},
    {R"({"a":{"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,4]}})", 4, "f: a: size in bytes overflows"},
    {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4, "f: a: shape needs 8 bytes, offsets give 4"},
    {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4, "f: a: ends before it begins"},
    {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
     8, "f: a: duplicate key"},
    {R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4, "f: dtype: duplicate key"},
    {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
     8, "f: b: overlaps the tensor before it"},
    {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
     12, "f: b: leaves a hole before it"},
    {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8, "f: a: leaves a hole before it"},
    {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 5,
     "f: header: tensors end at byte 4, the data has 5"},
    {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 3,
     "f: header: tensors end at byte 4, the data has 3"},
    {R"({"__metadata__":{"format":1}})", 0, "f: __metadata__: is not an object of strings"},
    {R"({"__metadata__":["x"]})", 0, "f: __metadata__: is not an object of strings"},
    {R"({"__metadata__":{"format":{"a":"b"}}})", 0, "f: __metadata__: is not an object of strings"},
    {R"({"__metadata__":"x"})", 0, "f: __metadata__: is not an object of strings"},
    {R"({"a":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]}})", 1,
     "f: a: shape has more than 16 dimensions"},
};

TEST_F(SafetensorsTest, EveryBadHeaderIsRejectedWithItsRule) {
  for (const BadHeader& bad : kBadHeaders) {
    EXPECT_THAT(error_of(bad.header, bad.data_bytes), HasSubstr(bad.message)) << bad.header;
  }
  EXPECT_EQ(error_of("{}", 0), "accepted");
  EXPECT_EQ(error_of(R"({"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})", 4), "accepted");     // a scalar
  EXPECT_EQ(error_of(R"({"a":{"dtype":"F32","shape":[0,9],"data_offsets":[0,0]}})", 0), "accepted");  // empty
  EXPECT_EQ(
      error_of(R"({"__metadata__":{"a":"b","c":"d"},"a":{"x":[1],"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1),
      "accepted");
}

TEST_F(SafetensorsTest, TooManyTensorsAndDeepNestingEndQuickly) {
  std::string many = "{";
  for (int i = 0; i <= 100'000; ++i) {
    many += (i > 0 ? ",\"" : "\"") + std::to_string(i) + R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  }
  EXPECT_THAT(error_of(many + "}", 0), HasSubstr("more than 100000 tensors"));
  EXPECT_THAT(error_of("{\"a\":{\"b\":" + std::string(1'000'000, '['), 0), HasSubstr("nested too deeply"));
  std::string metadata = R"({"__metadata__":{"0":"")";
  for (int i = 1; i < 200'000; ++i) metadata += ",\"" + std::to_string(i) + "\":\"\"";
  EXPECT_EQ(error_of(metadata + "}}", 0), "accepted");
}

TEST_F(SafetensorsTest, WrongModelsAreNamed) {
  ThreadPool pool(1);
  ModelConfig config = find_preset("tiny-llama")->config;
  Weights weights = Weights::random(config, 3, pool);
  write_model(config, weights, "model.");
  config.layers = 3;
  auto missing = load_weights(config, path());
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("no tensor layers.2.input_layernorm.weight"));
  config.layers = 2;
  config.intermediate = 345;
  auto shape = load_weights(config, path());
  ASSERT_FALSE(shape);
  EXPECT_THAT(shape.error().message,
              HasSubstr("layers.0.mlp.gate_proj.weight: shape is [344, 128], the configuration says [345, 128]"));
}

}  // namespace
}  // namespace llmprof::workload
