#pragma once
// Who did it: processes and threads by the pids and tids of events, devices by their number. What metadata events and
// the header say about them may come before or after their events, so rows are made at the end.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "importers/chrome_json/event.h"
#include "importers/chrome_json/lookup.h"
#include "importers/sink.h"

namespace llmprof::importers::chrome_json {

class Lanes {
 public:
  struct Thread {
    trace::Id id = 0, process_id = 0;  // 0: of nobody
  };

  Lanes(Sink& sink, Names& names) : sink_(sink), names_(names) {}

  // Known from now on, if it was not. The times are of what the thread did.
  Thread thread(const Lane& pid, const Lane& tid, std::int64_t begin_ns, std::int64_t end_ns);
  trace::Id device(std::int64_t ordinal);  // 0 if there are too many

  void take_metadata(const Event& event);
  void take_device_properties(std::string_view json);
  void take_distributed_info(std::string_view json);
  void take_group(const Arguments& args);  // of a collective
  std::optional<std::int64_t> rank() const { return rank_; }
  // The number of the device that a process stands for in traces of XLA ("/device:GPU:0"), by its name.
  std::optional<std::int64_t> device_of(const Lane& pid) const;
  std::optional<std::int64_t> stream_of(const Lane& pid, const Lane& tid) const;  // "Stream #14(Compute)"

  void finish();

 private:
  // A number, or the name of a text.
  struct Key {
    bool is_text = false;
    std::int64_t value = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Pair {
    Key pid, tid;
    friend bool operator==(const Pair&, const Pair&) = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
    std::size_t operator()(const Pair& pair) const;
  };
  struct Process {
    trace::Id id = 0;
    std::int64_t begin_ns = INT64_MAX, end_ns = INT64_MIN;
  };
  struct Known {
    trace::Id id = 0;
    Process* process = nullptr;
    std::int64_t begin_ns = INT64_MAX;
  };

  Key key_of(const Lane& lane) const;
  std::int64_t number_of(const Key& key);  // what stands for a text: -1, -2, …
  Known* known(const Pair& pair);
  void finish_threads();
  void finish_groups(trace::Id process_id);
  void add_device(std::int64_t ordinal);

  Sink& sink_;
  Names& names_;
  std::unordered_map<Key, Process, Hash> processes_;
  std::unordered_map<Pair, Known, Hash> threads_;
  std::unordered_map<Key, trace::Name, Hash> process_names_;
  std::unordered_map<Pair, trace::Name, Hash> thread_names_;
  struct Device {
    trace::Id id = 0;
    bool added = false;
  };
  std::map<std::int64_t, Device> devices_;  // by number
  std::map<std::int64_t, trace::DeviceRow> properties_;
  std::unordered_map<std::int64_t, std::int64_t> text_numbers_;
  // A process group of torch.distributed. Files tell of one process, so all are its groups.
  struct Group {
    std::string description, ranks;
    std::int64_t size = 0;
  };
  std::map<std::string, Group, std::less<>> groups_;  // by name
  std::optional<std::int64_t> rank_, world_;
  Pair last_pair_;
  Known* last_ = nullptr;
};

// What a trace says about itself beside its events.
struct Origin {
  bool kineto = false;
  bool with_stack = false;
  std::optional<std::int64_t> base_time_ns;
  std::string tool = "Chrome trace";
};

// Adds what `header` says to what is known.
void take(const Header& header, Origin& origin);
// The clock of a file whose first event is at `first_ns`.
FileClock clock_of(const Origin& origin, std::int64_t first_ns);

}  // namespace llmprof::importers::chrome_json
