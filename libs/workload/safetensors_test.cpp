#include "workload/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "workload/generate.h"
#include "workload/config.h"

namespace llmprof::workload {
namespace {

using testing::HasSubstr;

class SafetensorsTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path() const { return folder_ / "x.safetensors"; }

  void write(const std::string& header, const std::string& data) const {
    const std::uint64_t length = header.size();
    std::ofstream out(path(), std::ios::binary);
    out.write(reinterpret_cast<const char*>(&length), sizeof(length));
    out << header << data;
  }

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
