#pragma once
// What a step of an engine takes, composed of the times of its operators: measured where there is a table, the device's
// roof where there is none. Every time knows which of the two it is.

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "hw/catalog.h"
#include "hw/peaks.h"
#include "model/shard.h"
#include "predict/batch.h"
#include "predict/tables/parts.h"
#include "predict/tables/tables.h"

namespace llmprof::predict {

// Between two devices of one machine, one way.
struct LinkCosts {
  double bytes_per_s = 0;
  double latency_ns = 0;  // of one collective call
  std::string source;     // "NVLink, data sheet: …", "assumed: …"
};
// Half of the catalogue's interconnect (which adds both directions), else PCIe 4.0 x16 as an assumption.
LinkCosts default_link(const hw::DeviceSpec* spec);

// What the host does in a step. 0: not known.
struct HostCosts {
  double per_step_ns = 0, per_request_ns = 0, per_new_request_ns = 0;
  std::string source;
};

// Without tables, kernels that are launched one by one cannot follow each other faster than this. Times of tables are
// of kernels that were launched so: it is not used with them.
struct LaunchCosts {
  double launch_ns = 0;  // 0: off
  double kernels_per_layer = 12;
  std::string source;
  // Measured of empty kernels; 0: not known. What a table's time of a kernel has to be followed by.
  double queued_ns = 0;      // from the end of one kernel to that of the next, launched long before
  double graph_node_ns = 0;  // the same for nodes of a replayed graph
};

// How prompts and decodes that share a step share its attention. Which one errs less differs between GPUs; tables are
// measured jointly.
enum class AttentionMode : std::uint8_t {
  kJoint,     // one call: decodes add what they add to as many tokens of prompts
  kSeparate,  // a call for each chunk, one for the decodes
};

struct StepCostInput {
  model::Config config;  // of the whole model
  model::Parallel parallel;
  OperatorTables tables;  // of this degree of tensor parallelism; may be empty
  DeviceRoof roof;
  LinkCosts link;
  HostCosts host;
  double device_factor = 1;  // of every device time: what recorded steps took by what their operators take
  LaunchCosts launch;
  AttentionMode attention = AttentionMode::kJoint;
  bool skew = false;  // see SkewFit
};

// The roof of a device for the types of a model's products. `cache_bytes` 0: not known.
DeviceRoof roof_for(const model::Config& config, const std::vector<hw::Peak>& peaks, std::string_view device,
                    std::int64_t cache_bytes);

// Time by what it stands on.
struct BasisTimes {
  std::array<double, kBases> ns{};
  double total() const;
  double share(Basis basis) const;  // 0 to 1; 0 where there is no time
  BasisTimes& operator+=(const BasisTimes& other);
  void add(Answer answer, double calls);
};

struct OpTime {
  std::string op;
  std::int64_t calls = 0;  // in the step
  double ns = 0;           // of all calls
  double floor_ns = 0;     // 0: not known
  Basis basis = Basis::kRoof;
  std::string source;  // "table", "roof", "link …"
};

class TableStepCost final : public StepCost {
 public:
  // Errors: a model that cannot be split so; tables of another model or device (most of their times are impossible);
  // an operator without a table on a device without peaks.
  // Where the device has no peaks but there are tables, the best rates in these take their place.
  static Result<std::unique_ptr<TableStepCost>> make(StepCostInput input);
  ~TableStepCost() override;

  // About 1 us: sums over products are kept by their rows.
  StepTime of(const Batch& batch) override;
  // One row per operator, in the order of a step.
  std::vector<OpTime> explain(const Batch& batch) const;

  const BasisTimes& stands_on() const { return stands_on_; }  // all device time that of() has given so far
  const TableSource& source() const;
  const StepCostInput& input() const;
  // What was assumed, dropped and left out.
  const std::vector<std::string>& notes() const { return notes_; }

  // A part with its table, for back-tests.
  struct Entry;
  const std::vector<std::unique_ptr<Entry>>& entries() const { return entries_; }

 private:
  struct Attended;  // what the attention of a step is asked by
  TableStepCost();
  Result<void> add_parts(const model::Graph& graph);
  Result<void> add_table(Entry& entry);
  Result<void> check_dropped(std::int64_t points, std::int64_t impossible) const;
  void use_best_rates();
  void add_links();
  void note_unused();

  double launch_gaps_ns(const Batch& batch, double device_ns) const;
  Answer row_answer(const Entry& entry, double rows) const;
  Answer link_answer(const Entry& entry, double rows) const;
  BasisTimes attention(const Entry& entry, const Attended& attended, const Batch& batch) const;
  Answer joint(const Entry& entry, const Attended& attended) const;
  Answer chunks_answer(const Entry& entry, const Attended& alone, const Batch& batch, bool together) const;
  const BasisTimes& row_sum(std::vector<BasisTimes>& cache, BasisTimes& scratch, PartRows rows, std::int64_t count);
  BasisTimes row_sum(PartRows rows, std::int64_t count) const;

  StepCostInput input_;
  model::Config shard_;
  std::vector<std::unique_ptr<Entry>> entries_;
  std::vector<std::string> notes_;
  std::vector<BasisTimes> by_tokens_, by_sampled_;
  BasisTimes scratch_;
  BasisTimes stands_on_;
};

// A part of the model with what is known of its time.
struct TableStepCost::Entry {
  Part part;
  std::unique_ptr<FloorAt> floor;
  std::optional<Grid> grid;
  std::int64_t points = 0, dropped = 0;  // of its table; faster than the device can be
  bool mixed = false;                    // attention: prompts and decodes were measured together
  std::int64_t window = 0;               // attention: contexts are cut to this before they are looked up; 0: not
  double link_bytes = 0;                 // of a collective: sent per token and call
  double message_bytes = 0;              // the same as tables count it
  std::string source;
};

}  // namespace llmprof::predict
