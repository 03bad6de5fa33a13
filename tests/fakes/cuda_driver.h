#pragma once
// The state of the fake driver, which is never destroyed: callbacks come late.

#include <mutex>

#include "link.h"

namespace fake {

struct DriverState {
  LedgerEntry* ledger;
  std::atomic<const Tool*> tool;
  std::atomic<std::uint32_t> next_id{1};  // of graphs, executables, contexts and streams
  std::atomic<std::uint32_t> next_correlation{1};
  std::atomic<int> contexts{0}, execs{0};
  std::atomic<bool> fini{false}, initialising{false}, lost{false};
  std::atomic<int> captures{0};
  std::atomic<int> at_graphs{0};  // threads that launch or instantiate one
  std::mutex lock;                // of streams' times and captures
  std::uint64_t idle_at_ns = 0, graphs_until_ns = 0;
  std::vector<Stream*> capturing;
  std::atomic<unsigned> instantiate_ms{0};  // an instantiation takes so long
  std::atomic<unsigned> question_us{0};     // whether a stream is captured
};

DriverState& driver();
Context* current_context();
Stream* stream_of(void* handle);  // null and 1 are the context's own, 2 is the thread's in it
std::uint64_t now_ns();
void resource(std::uint32_t id, Stream* stream = nullptr, void* descriptor = nullptr);

// One call of the driver, from its enter callback to its exit callback.
class Call {
 public:
  Call(DriverCall id, const char* name, const void* parameters, const char* symbol = nullptr);
  ~Call();
  std::uint32_t correlation() const { return api_.correlation; }
  int result = kCudaSuccess;

 private:
  std::uint64_t data_ = 0;
  Api api_;
};

// What a call answers before it does anything: the device is lost, or its stream's context is gone.
int unusable(const Stream* stream);

// Puts work behind what the stream already has: from now on, or from the end of that.
void run_on(Stream* stream, Work work, std::uint64_t duration_ns);
std::uint64_t copy_duration_ns(std::uint64_t bytes);
Node* add_node(Graph* graph, NodeType type, Function* function, const unsigned* grid, const unsigned* block,
               std::uint64_t bytes);

}  // namespace fake

#define FAKE_EXPORT extern "C" [[gnu::visibility("default")]]
