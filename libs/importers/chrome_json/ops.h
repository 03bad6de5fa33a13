#pragma once
// Operators of the framework, and the matrix products and attention among them. Kernels find their operator by its
// External id; a product is one that kernels were launched in directly, so aten::mm is and the aten::linear around it
// is not.

#include <array>
#include <deque>
#include <optional>
#include <string_view>
#include <vector>

#include "importers/chrome_json/id_map.h"
#include "importers/chrome_json/names.h"
#include "importers/chrome_json/shapes.h"
#include "importers/chrome_json/stacks.h"
#include "importers/sink.h"

namespace llmprof::importers::chrome_json {

class Ops {
 public:
  static constexpr std::size_t kMaxProducts = 600'000;  // that wait for their kernels
  static constexpr std::size_t kMaxShapes = 200'000;
  static constexpr std::size_t kMaxHeld = 400'000;   // operators that wait for their stacks
  static constexpr std::size_t kMaxPages = 250'000;  // of 64 External ids

  Ops(Sink& sink, Names& names, Stacks& stacks) : sink_(sink), names_(names), stacks_(stacks) {}

  // Kineto writes Python functions behind operators: these wait for them.
  void wait_for_stacks() { wait_for_stacks_ = true; }
  void take(const Event& event, trace::Id thread_id, std::int64_t end_ns);

  std::optional<trace::Id> op_of(std::int64_t external_id);
  // The product that a kernel of this operator executes; attention learns of the kernel too.
  std::optional<trace::Id> executed(std::int64_t external_id, trace::Id kernel_id, std::int64_t duration_ns);
  // The product that was captured into a graph in this operator.
  std::optional<trace::Id> captured(std::int64_t external_id);

  bool saw_products() const { return products_seen_ > 0; }  // by name
  bool saw_shapes() const { return shapes_seen_; }
  void finish();
  std::int64_t without_stack() const { return without_stack_; }  // more operators than can wait for their stacks

 private:
  struct Shape {
    trace::Name function;
    std::optional<Product> product;  // neither: no product after all
    std::optional<Attention> attention;
  };
  struct Candidate {  // ids of a file fit 32 bits: it has no more rows than that
    std::int64_t begin_ns = 0, end_ns = 0;
    std::uint32_t thread_id = 0, op_id = 0, shape = 0;
    std::uint32_t id = 0, kernel_id = 0;  // 0: none yet
    std::uint32_t kernel_ns = 0;
  };
  enum class Kind : std::uint8_t { kUnseen, kPlain, kProduct, kAttention };
  using Page = std::array<std::uint32_t, 64>;

  Kind kind_of(trace::Name name);
  std::optional<std::uint32_t> shape_of(trace::Name name, Kind kind, const Event& event);
  void remember(std::int64_t external_id, trace::Id op_id);
  void take_candidate(const Event& event, const trace::OpRow& row, Kind kind);
  Candidate* candidate(std::int64_t external_id);
  void emit(const Candidate& candidate);

  Sink& sink_;
  Names& names_;
  Stacks& stacks_;
  bool wait_for_stacks_ = false, shapes_seen_ = false;
  std::int64_t products_seen_ = 0, without_stack_ = 0;
  std::vector<Kind> kinds_;  // by the number of the name
  std::vector<trace::OpRow> held_;
  std::deque<Page> pages_;
  IdMap<std::uint32_t> page_ids_{kMaxPages};
  std::deque<Candidate> candidates_;
  IdMap<std::uint32_t> candidate_ids_{kMaxProducts};
  std::vector<Shape> shapes_;
  IdMap<std::uint32_t> shape_ids_{kMaxShapes};
};

}  // namespace llmprof::importers::chrome_json
