// PyTorch memory snapshot (torch.cuda.memory._dump_snapshot): a pickle of plain values.
#include "importers/importer.h"

#include "importers/memory_snapshot/pickle_reader.h"
#include "importers/memory_snapshot/snapshot.h"

namespace llmprof::importers {
namespace memory_snapshot {
namespace {

constexpr std::string_view kZip = "PK\x03\x04";

bool is_torch_save(std::string_view head) {
  return head.starts_with(kZip) && head.find("data.pkl") != std::string_view::npos;
}

// "cos\nsystem\n": a pickle of protocol 0 whose first object is code.
bool begins_with_global(std::string_view head) {
  constexpr std::string_view kName = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
  if (!head.starts_with('c')) return false;
  const std::size_t module = head.find_first_not_of(kName, 1);
  if (module == std::string_view::npos || module == 1 || head[module] != '\n') return false;
  const std::size_t name = head.find_first_not_of(kName, module + 1);
  return name != std::string_view::npos && name > module + 1 && head[name] == '\n' &&
         head.substr(name + 1, 1).find_first_of("(pqR)") == 0;
}

int sniff(std::string_view head) {
  if (is_torch_save(head)) return 60;  // refused, with what it is
  const bool binary = head.size() > 2 && head[0] == '\x80' && head[1] >= 2 && head[1] < 16;
  const bool text = head.starts_with("(dp") || head.starts_with("(lp") || head.starts_with("}q") ||
                    head.starts_with("]q") || head.starts_with("(S'") || begins_with_global(head);
  if (!binary && !text) return 0;
  const bool keys =
      head.find("segments") != std::string_view::npos || head.find("total_size") != std::string_view::npos;
  return keys ? 95 : 40;
}

Result<void> parse(Input& input, Sink& sink) {
  LLMPROF_LET(const std::string_view head, input.head());
  if (head.starts_with(kZip)) {
    return Error{ErrorCode::kUnsupported,
                 is_torch_save(head) ? "byte 0: a zip file as torch.save writes it, not a memory snapshot"
                                     : "byte 0: a zip file, not a memory snapshot",
                 "torch.cuda.memory._dump_snapshot(\"FILE\") writes a snapshot; unpack a zip file first"};
  }
  sink.set_clock({.wall_of_zero_ns = 0, .name = "PyTorch's allocator: microseconds since 1970"});
  sink.set_facts({.tool = "PyTorch memory snapshot", .command = "", .host = "", .model_config = "", .rank = ""});
  Snapshot snapshot(sink);
  PickleReader reader(input, sink, snapshot);
  LLMPROF_LET(const PickleValue root, reader.read());
  return snapshot.finish(reader.heap(), root);
}

}  // namespace
}  // namespace memory_snapshot

extern const Importer kMemorySnapshot;
const Importer kMemorySnapshot{"memory-snapshot", "PyTorch memory snapshot, pickle", Role::kReadings,
                               memory_snapshot::sniff, memory_snapshot::parse};

}  // namespace llmprof::importers
