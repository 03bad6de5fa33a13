#pragma once
// Matches BLAS calls to the products of a model by shape and order: the calls of one thread are followed through the
// sequence of the model's projections, pass after pass, forward and (training) backward. Linear in the calls.
// docs/format/analysis.md states the rules in words.

#include <cstdint>
#include <vector>

#include "analyze/passes/products.h"
#include "analyze/passes/ranges.h"

namespace llmprof::analyze {

// One shape of a BLAS call: [m, k] x [k, n].
struct CallShape {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  enum class Order : std::uint8_t { kUnknown, kRowMajor, kColumnMajor } order = Order::kUnknown;
  enum class Transposed : std::uint8_t { kUnknown, kNeither, kA, kB, kBoth } transposed = Transposed::kUnknown;
  bool operator==(const CallShape&) const = default;
};

// Both operands hold rows of activations: only gradients of weights are laid out so. Where it is not known how operands
// are laid out, nothing is told: sizes alone fit too much.
inline bool adds_up_rows(const CallShape& s) {
  using enum CallShape::Transposed;
  return (s.order == CallShape::Order::kColumnMajor && s.transposed == kB) ||
         (s.order == CallShape::Order::kRowMajor && s.transposed == kA);
}

// The calls of a run by thread, then by time.
struct Calls {
  std::vector<CallShape> shapes;
  std::vector<std::uint32_t> shape;  // of each call, into shapes
  std::vector<std::int64_t> process_id, thread_id, begin_ns, end_ns;
  std::vector<std::int32_t>
      segment;  // calls of one thread with the same number are matched together; kNone: not at all
  std::size_t size() const { return shape.size(); }
};

// Calls visit(begin, end) for the calls of each thread and segment that are matched.
template <class Visit>
void for_each_segment(const Calls& calls, Visit visit) {
  for (std::size_t begin = 0, end = 0; begin < calls.size(); begin = end) {
    while (end < calls.size() && calls.thread_id[end] == calls.thread_id[begin] &&
           calls.segment[end] == calls.segment[begin])
      ++end;
    if (calls.segment[begin] != kNone) visit(begin, end);
  }
}

// What the calls of a segment can be.
enum class Expect : std::uint8_t { kAny, kForward, kBackward };

struct MatchedPass {
  std::int64_t thread_id = 0, begin_ns = 0, end_ns = 0;  // first begin to last end of its matched calls
  bool backward = false;
  enum class Of : std::uint8_t {
    kModel,
    kEncoder,
    kDraft
  } of = Of::kModel;  // a draft: a smaller model's, to be checked
  std::int32_t segment = kNone;
  std::int64_t rows = 0;         // of its products: batch x tokens
  std::int64_t logits_rows = 0;  // 0: no logits product was seen
  std::int64_t square = 0;       // tokens of a sequence, if attention was made of full squares; 0: unknown
  double share = 0;              // of the products of a pass, those that were found
};

struct CallMatch {
  std::int32_t pass = kNone;  // into Matches::passes
  std::int32_t slot = kNone;  // into Products::slots, or
  std::int32_t core = kNone;  // into Products::cores
  bool recomputed = false;    // a product of the way forward, made again on the way back
};

struct Matches {
  std::vector<MatchedPass> passes;  // by thread, then time
  std::vector<CallMatch> calls;     // parallel to Calls
};

// How many calls have a shape that could be a product with a matrix of this size. Where it is known how operands are
// laid out, that tells the matrix from the rows; kEither counts them both ways round nevertheless. Calls of segments
// that are expected to go back do not count: gradients have other sizes.
enum class Reading : std::uint8_t { kUsual, kEither };
SizeCounts count_sizes(const Calls& calls, Reading reading, const std::vector<Expect>& expect = {});

// `expect` by segment number.
Matches match_calls(const Products& products, const Calls& calls, const std::vector<Expect>& expect);

// The part of it for attention: calls between two matched products with a side of a head's size.
void match_cores(const Products& products, const Calls& calls, Matches& matches);

}  // namespace llmprof::analyze
