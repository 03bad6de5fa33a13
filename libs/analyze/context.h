#pragma once
// What an analysis rests on besides the facts: the model, and the devices with their peaks. The derived tables are
// keyed by it, so another model or other peaks never meet stale results.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analyze/job/job.h"
#include "analyze/names/grammar.h"
#include "analyze/summary.h"
#include "model/model.h"

namespace llmprof::analyze {

struct PeakRate {
  std::int64_t device_id = 0;
  std::string quantity, type;  // "flops" and its element type, or "bandwidth" and the kind of access
  double value = 0;            // per second
  std::string source, method;
};

struct AnalysisContext {
  std::string model_text;             // JSON, "" if unknown
  std::optional<model::Graph> model;  // as ranks execute it: where its matrices are split, the first tensor rank's part
  std::optional<model::Graph> whole;  // all of it
  std::string model_source, model_origin, model_note;  // as FoundModel (detect_model.h)
  std::string model_why;                               // why there is none
  std::vector<DeviceCard> devices;                     // the busiest first
  std::vector<std::int64_t> device_ids;                // of `devices`
  std::vector<PeakRate> peaks;
  std::vector<RangePattern> patterns;  // of names of ranges: the user's rules first
  std::int64_t busy_devices = 0;       // of the busiest one's kind that are not idle
  Job job;
  std::vector<model::Graph> parts;              // of the model, that ranks execute; those that cost the same once
  std::map<std::int64_t, std::size_t> part_of;  // by process

  std::int64_t cache_bytes() const { return devices.empty() ? 0 : devices.front().cache_bytes; }
  // What a step of this process computes: its rank's part, or all of the model if the process is no rank and has others
  // compute for it. nullptr if that is unknown.
  const model::Graph* graph_of(std::int64_t process_id) const;
  // Of the busiest device; nullptr if it was not measured.
  const PeakRate* peak(std::string_view quantity, std::string_view type) const;
  // The same of all devices of the job together; nullopt if it is unknown for one of them.
  std::optional<PeakRate> total_peak(std::string_view quantity, std::string_view type) const;
  // The fastest stream through a device's memory, what MBU is of; nullptr if none is known. Its name if it was
  // measured: "triad, the fastest of 4 streams".
  const PeakRate* memory_peak(std::int64_t device_id) const;
  std::string memory_peak_in_words(std::int64_t device_id) const;
  std::string key() const;  // of derived/<key>/
};

// A --model file that cannot be read is an error; a model that the run declares but we do not know is not.
Result<AnalysisContext> find_context(const trace::Run& run, const Options& options);

}  // namespace llmprof::analyze
