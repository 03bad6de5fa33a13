#pragma once
// Python functions of a trace to call stacks. Who called whom is told by time on a thread: a function lies in what
// called it. (Kineto's own parent ids say the same, and may form circles in a damaged file.) A stack is a node of a
// tree: the one of the caller, and the function itself.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/nesting.h"
#include "importers/chrome_json/lookup.h"
#include "importers/sink.h"

namespace llmprof::importers::chrome_json {

class Stacks {
 public:
  static constexpr std::size_t kMaxCalls = 4'000'000;  // 24 bytes each
  static constexpr std::size_t kMaxNodes = 1'000'000;
  static constexpr std::size_t kMaxDepth = 512;

  Stacks(Sink& sink, Names& names) : sink_(sink), names_(names) {}

  bool empty() const { return calls_ == 0; }
  // `function` as Kineto writes it: "torch/nn/modules/linear.py(126): forward", "<built-in method to of Tensor object
  // at 0x7f…>".
  void add(trace::Id thread_id, std::int64_t begin_ns, std::int64_t end_ns, std::string_view function);
  // The stack of what the thread did at that moment; its rows are made when it is first asked for.
  std::optional<trace::Id> at(trace::Id thread_id, std::int64_t at_ns);

 private:
  struct Call {
    std::int64_t begin_ns = 0, end_ns = 0;
    std::uint32_t node = 0;    // frame until it is placed, then node
    std::int32_t parent = -1;  // call that it lies in
  };
  struct Thread {
    std::vector<Call> calls;
    std::size_t placed = 0;  // so many are in order and have their node
    base::Nesting<std::int32_t> nesting;
    bool disorder = false;  // among those behind `placed`
  };
  struct Node {
    std::uint32_t parent = 0, frame = 0;  // index; 0: nobody
    trace::Id stack_id = 0;
    std::uint32_t depth = 0;
  };
  struct Frame {
    trace::Id id = 0;
  };

  std::uint32_t frame_of(std::string_view function);
  std::uint32_t node_of(std::uint32_t parent, std::uint32_t frame);
  void sort(Thread& thread);
  void place(Thread& thread);
  trace::Id stack_of(std::uint32_t node);

  Sink& sink_;
  Names& names_;
  std::unordered_map<trace::Id, Thread> threads_;
  trace::Id last_thread_ = 0;
  Thread* last_ = nullptr;
  std::size_t calls_ = 0;
  std::vector<Frame> frames_{Frame{}};
  std::vector<std::uint32_t> frame_of_name_;  // by the number of the name
  std::vector<Node> nodes_{Node{}};
  IdMap<std::uint32_t> node_ids_{kMaxNodes};
  std::string scratch_;
};

}  // namespace llmprof::importers::chrome_json
