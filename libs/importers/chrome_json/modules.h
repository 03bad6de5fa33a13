#pragma once
// Modules of a model by the calls of nn.Module that Kineto records with stacks: "nn.Module: LlamaMLP_3" is the fourth
// LlamaMLP that was called. Attribute names (up_proj) are not in the file. A module is named by its class and, where
// its parent calls several of that class, by its place among them:
//   LlamaDecoderLayer.3 (a block that repeats), LlamaDecoderLayer.3.LlamaMLP.Linear_2 (a leaf).
// What only holds the blocks (LlamaForCausalLM, LlamaModel) is the model itself and stands in no path.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace llmprof::importers::chrome_json {

class Modules {
 public:
  static constexpr std::string_view kFront = "nn.Module: ";
  static constexpr std::size_t kMaxModules = 200'000;
  static constexpr std::uint32_t kNone = UINT32_MAX;

  // Its number here; kNone if the name is none or there are too many.
  std::uint32_t module(std::string_view python_function);
  // Where it was first called from.
  void called_in(std::uint32_t module, std::uint32_t outer);
  void name_all();
  // The component of the path that it adds to its parent's; "" for what is the model itself. Known after name_all().
  const std::string& name(std::uint32_t module) const { return modules_[module].name; }
  std::string class_name(std::uint32_t module) const { return modules_[module].class_name; }

 private:
  struct Module {
    std::string class_name, name;
    std::int64_t instance = 0;
    std::uint32_t parent = kNone;
    bool placed = false, has_children = false, repeats = false, holds_blocks = false, is_model = false;
  };
  void find_repeated();

  std::vector<Module> modules_;
  std::unordered_map<std::string, std::uint32_t> ids_;
};

}  // namespace llmprof::importers::chrome_json
