// llmprof-workload heard by an NVTX tool: the stages, steps and modules that its manual page promises.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace {

using testing::ElementsAre;

struct Heard {
  std::vector<std::string> models, stages, steps;  // steps: "name payload"
  std::map<std::string, int> modules;              // pushes
  int open = 0;
};

std::string after(const std::string& line, const std::string& key) {
  const std::size_t begin = line.find(key) + key.size();
  return line.substr(begin, line.find(' ', begin) - begin);
}

Heard listen(const std::string& arguments, const std::string& command = "infer") {
  Heard heard;
  FILE* const pipe = ::popen(("NVTX_INJECTION64_PATH=" LLMPROF_RECORDER_TOOL " " LLMPROF_WORKLOAD_PROGRAM " " +
                              command + " --threads 2 " + arguments + " 2> /dev/null")
                                 .c_str(),
                             "r");
  char buffer[4096];
  while (std::fgets(buffer, sizeof(buffer), pipe) != nullptr) {
    std::string line(buffer);
    line.pop_back();
    const bool push = line.find(" push v3") != std::string::npos;
    heard.open += push ? 1 : line.ends_with(" pop ") ? -1 : 0;
    EXPECT_GE(heard.open, 0);
    const std::string name = line.substr(line.find_last_of(':') + 1);
    if (line.find(" mark ") != std::string::npos) heard.models.push_back(line.substr(line.find('{')));
    if (push && line.find("category=1 ") != std::string::npos) heard.stages.push_back(name);
    if (push && line.find("category=2 ") != std::string::npos)
      heard.steps.push_back(name + " " + after(line, "payload=1:"));
    if (push && line.find("category=3 ") != std::string::npos) ++heard.modules[name];
  }
  EXPECT_EQ(::pclose(pipe), 0);
  return heard;
}

// Batch 2 is 0x2; 16 tokens are 0x10 << 16; context 16, 17, 18 in bits 40 and up.
TEST(WorkloadAnnotations, StagesAndSteps) {
  const Heard heard = listen("--preset tiny-llama --batch 2 --prompt 16 --new 3");
  EXPECT_THAT(heard.stages, ElementsAre("load", "prefill", "decode"));
  EXPECT_THAT(heard.steps, ElementsAre("prefill 100000100002", "decode 110000010002", "decode 120000010002"));
  EXPECT_EQ(heard.open, 0);
  ASSERT_EQ(heard.models.size(), 1U);
  for (const char* part : {"\"model_type\":\"llama\"", "\"num_hidden_layers\":2", "\"num_key_value_heads\":2",
                           "\"torch_dtype\":\"float32\""}) {
    EXPECT_THAT(heard.models[0], testing::HasSubstr(part));
  }
}

void expect_modules(const Heard& heard, const std::vector<std::string>& top, const std::string& layer,
                    const std::vector<std::string>& parts) {
  std::map<std::string, int> expected;
  for (const std::string& name : top) expected[name] = 3;  // passes
  for (const char* number : {"0", "1"}) {
    expected[layer + number] = 3;
    for (const std::string& part : parts) expected[layer + number + "." + part] = 3;
  }
  EXPECT_EQ(heard.modules, expected);
}

TEST(WorkloadAnnotations, LlamaModules) {
  expect_modules(listen("--preset tiny-llama --new 3"), {"embed_tokens", "norm", "lm_head", "sampling"}, "layers.",
                 {"input_layernorm", "self_attn", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                  "self_attn.rope", "self_attn.core", "self_attn.o_proj", "post_attention_layernorm", "mlp",
                  "mlp.gate_proj", "mlp.up_proj", "mlp.act", "mlp.down_proj"});
}

TEST(WorkloadAnnotations, Gpt2Modules) {
  expect_modules(
      listen("--preset tiny-gpt2 --new 3"), {"wte", "ln_f", "lm_head", "sampling"}, "h.",
      {"ln_1", "attn", "attn.c_attn", "attn.core", "attn.c_proj", "ln_2", "mlp", "mlp.c_fc", "mlp.act", "mlp.c_proj"});
}

TEST(WorkloadAnnotations, OneTokenNeedsNoDecode) {
  const Heard heard = listen("--preset tiny-gpt2 --new 1");
  EXPECT_THAT(heard.stages, ElementsAre("load", "prefill"));
  EXPECT_EQ(heard.steps.size(), 1U);
}

// Batch 3 is 0x3; 16 tokens are 0x10 << 16 and 0x10 << 40.
TEST(WorkloadAnnotations, TrainingSteps) {
  const Heard heard = listen("--preset tiny --batch 3 --tokens 16 --steps 2", "train");
  EXPECT_THAT(heard.stages, ElementsAre("load", "train_step", "train_step"));
  EXPECT_THAT(heard.steps, ElementsAre("forward 100000100003", "backward 100000100003", "optimizer 100000100003",
                                       "forward 100000100003", "backward 100000100003", "optimizer 100000100003"));
  EXPECT_EQ(heard.open, 0);
  ASSERT_EQ(heard.models.size(), 1U);
  EXPECT_THAT(heard.models[0], testing::HasSubstr("\"model_type\":\"gpt2\""));
}

TEST(WorkloadAnnotations, TrainingModulesAreThoseOfInference) {
  // Forward and backward name every part; the optimizer those with parameters.
  std::map<std::string, int> expected{{"wte", 3}, {"ln_f", 3}, {"lm_head", 2}, {"loss", 2}};
  for (const std::string layer : {"h.0", "h.1"}) {
    for (const char* part :
         {"", ".ln_1", ".attn", ".attn.c_attn", ".attn.c_proj", ".ln_2", ".mlp", ".mlp.c_fc", ".mlp.c_proj"}) {
      expected[layer + part] = 3;
    }
    expected[layer + ".attn.core"] = 2;
    expected[layer + ".mlp.act"] = 2;
  }
  EXPECT_EQ(listen("--preset tiny --steps 1", "train").modules, expected);
}

}  // namespace
