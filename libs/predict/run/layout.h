#pragma once
// Where the times of a step go: from one time per part ("qkv_proj, 32 calls") to executions of operators of layers, in
// the order in which a pass runs them.

#include <memory>
#include <vector>

#include "model/model.h"
#include "predict/run/predicted_run.h"
#include "predict/tables/step_cost.h"

namespace llmprof::predict {

// How finely steps are laid out.
enum class Detail : std::uint8_t {
  kLayers,  // one execution for each operator of each layer
  kParts,   // one for each part of the step, all layers together: of module "layers"
};

class StepLayout {
 public:
  // `cost` must outlive it. Errors: those of splitting the model.
  static Result<StepLayout> make(const TableStepCost& cost, Detail detail);

  const std::vector<Place>& places() const { return places_; }
  // Kernels that a step launches, one after the other: a part that does the work of several operators (qkv_proj) is
  // one of them.
  std::int64_t kernels() const { return kernels_; }

  // The executions of a step, from its begin on. A part that does several operators' work is shared by their floors; so
  // an operator has the time that its FLOPs and bytes account for. Launch gaps stand before each kernel, evenly.
  std::vector<Execution> lay_out(const Batch& batch, const std::vector<OpTime>& times) const;

 private:
  // An execution: which row of explain() it has its time of.
  struct Slot {
    std::uint32_t place = 0;
    std::size_t row = 0;
    double calls = 1;               // of the row, that it stands for
    std::size_t first = 0, of = 1;  // of several slots that share a call: the first of them, how many
    const model::Op* op = nullptr;  // nullptr: a collective
  };
  explicit StepLayout(const TableStepCost& cost) : cost_(&cost) {}
  void add_layers();
  void add_parts();
  void add_group(const model::Graph::Group& group, std::int64_t layer, std::size_t first_row);
  void add_outside(const model::Op& op, std::size_t row);
  void add_collective(std::string_view name);
  void add_exchange();
  void add_slot(std::string module, std::string kernel, std::size_t row, const model::Op* op);
  std::size_t row_of(std::string_view part, std::size_t from, std::size_t until) const;

  const TableStepCost* cost_ = nullptr;
  std::shared_ptr<const model::Graph> graph_;  // of the first rank's part
  std::vector<Place> places_;
  std::vector<Slot> slots_;
  std::int64_t kernels_ = 0;
};

}  // namespace llmprof::predict
