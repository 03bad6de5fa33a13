#pragma once
// What the framework did: operators with their matrix products and attention, and the memory of its allocator.

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "importers/chrome_json/event.h"
#include "importers/chrome_json/lanes.h"
#include "importers/chrome_json/lookup.h"
#include "importers/chrome_json/stacks.h"
#include "importers/sink.h"

namespace llmprof::importers::chrome_json {

// What an operator of PyTorch multiplies, told from the shapes, types, strides and values of its inputs as Kineto
// writes them: "[[256, 1024], [1024, 32000]]", "["c10::BFloat16", "c10::BFloat16"]".
//
// C (m x n) = A (m x k) B (k x n), `batch` times, rows first: 2 m n k batch FLOPs.
struct Product {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  std::string_view type_a, type_b, type_c;  // our names; "" if unknown
  char transpose_a = 'n', transpose_b = 'n';
};

struct Attention {
  std::int64_t batch = 0, heads = 0, kv_heads = 0, queries = 0, keys = 0, head_size = 0, value_size = 0;
  std::optional<bool> causal;
  std::string_view type;
};

// Whether the name alone says that it may be one: the rest is only then worth a look.
bool may_be_product(std::string_view op);
bool may_be_attention(std::string_view op);

// nullopt: the shapes were not recorded, or do not fit the operator.
std::optional<Product> product_of(std::string_view op, const Arguments& args);
std::optional<Attention> attention_of(std::string_view op, const Arguments& args);

// "[[2, 3], [], [[4]]]" -> {2, 3}, {}, {}: shapes of tensors; lists of tensors are left empty. At most 16 inputs.
std::vector<std::vector<std::int64_t>> parse_dims(std::string_view json);
// "["float", ""]" -> texts without escapes, as they stand.
std::vector<std::string_view> parse_texts(std::string_view json);
std::string_view type_name(std::string_view torch);  // "c10::BFloat16" -> "bfloat16"; "" if it is none of ours

// Operators of the framework, and the matrix products and attention among them. Kernels find their operator by its
// External id; a product is one that kernels were launched in directly, so aten::mm is and the aten::linear around it
// is not.
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

// The allocator's "[memory]" events: memory that was allocated and freed, paired by its address. What was there before
// the recording shows when it is freed, or in the totals that every event carries.
class Memory {
 public:
  static constexpr std::size_t kMaxOpen = 500'000;
  static constexpr std::size_t kMaxHeld = 200'000;  // allocations that wait for their stacks

  Memory(Sink& sink, Names& names, Lanes& lanes, Stacks& stacks)
      : sink_(sink), names_(names), lanes_(lanes), stacks_(stacks) {}

  void wait_for_stacks() { wait_for_stacks_ = true; }
  void take(const Event& event, const Lanes::Thread& thread);
  void finish();

 private:
  struct Key {
    std::int64_t device = -1, address = 0;  // device: -1 the host
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      const std::uint64_t mixed =
          (static_cast<std::uint64_t>(key.address) ^ static_cast<std::uint64_t>(key.device) << 56) *
          0x9E3779B97F4A7C15U;
      return static_cast<std::size_t>(mixed ^ (mixed >> 32));
    }
  };
  struct Device {  // or the host
    bool seen = false;
    std::int64_t first_ns = 0, before_bytes = 0;  // allocated before the recording and not freed yet
    std::int64_t reserved_bytes = -1;
    Lanes::Thread thread;
  };

  void allocate(const Event& event, const Key& key, const Lanes::Thread& thread);
  void free(const Event& event, const Key& key, Device& device, const Lanes::Thread& thread);
  void read_totals(const Event& event, std::int64_t ordinal, Device& device);
  trace::AllocationRow row_of(const Key& key, std::int64_t bytes, std::int64_t begin_ns, const Lanes::Thread& thread);
  void emit(const trace::AllocationRow& row);

  Sink& sink_;
  Names& names_;
  Lanes& lanes_;
  Stacks& stacks_;
  bool wait_for_stacks_ = false;
  std::unordered_map<Key, trace::AllocationRow, Hash> open_;
  std::map<std::int64_t, Device> devices_;
  std::vector<trace::AllocationRow> held_;
};

}  // namespace llmprof::importers::chrome_json
