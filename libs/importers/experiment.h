#pragma once
// What an importer makes of results of a benchmark tool: an experiment, its figures with the tool's definitions, and
// requests from what a client saw of them (docs/format/import-serving.md).

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "importers/sink.h"

namespace llmprof::importers {

// What a tool means by a name. Keys are the same for all tools; "": a figure that only this tool has.
struct Meaning {
  std::string_view metric, key, unit, definition;
};
// nullptr: the table does not know it.
const Meaning* meaning_of(std::span<const Meaning> table, std::string_view metric);

// One request as a client saw it. Moments count from its send; nullopt: unknown, or it never came.
struct ClientRequest {
  std::string_view name, error, status;   // status "": finished, or error where there is one
  std::optional<std::int64_t> sent_ns;    // on the file's clock; nullopt: the file does not say
  std::optional<std::int64_t> first_ns, last_ns, end_ns;  // first and last output; when all was done
  std::int64_t prompt_tokens = 0, output_tokens = 0;      // 0: unknown
  std::optional<std::int64_t> cached_tokens;
  bool warm_up = false;
  std::vector<std::int64_t> messages_ns;  // those with output, as they came
};

class Experiment {
 public:
  // `settings`: a JSON object, or null.
  Experiment(Sink& sink, std::string_view tool, std::string_view name, std::string_view model,
             const base::Json& settings);
  trace::Id id() const { return id_; }

  void figure(const Meaning& meaning, std::string_view statistic, double value,
              std::optional<trace::Id> request = std::nullopt);
  // The same from JSON, if it is a number.
  void figure(const Meaning& meaning, std::string_view statistic, const base::Json* value,
              std::optional<trace::Id> request = std::nullopt);
  // The row's id; messages whose number is not that of the output tokens get no count of tokens.
  trace::Id request(const ClientRequest& request);
  // Says once what holds for all requests. To be called at the end of the file.
  static void note_unplaced(Sink& sink, std::int64_t requests);
  std::int64_t unclear_messages() const { return unclear_; }  // requests whose messages hold an unknown number of tokens

 private:
  Sink& sink_;
  trace::Id id_;
  trace::Name source_;
  std::int64_t unclear_ = 0;
};

// The members of `object` whose names are not in `left_out` and that are no lists and objects: settings.
base::Json settings_of(const base::Json& object, std::span<const std::string_view> left_out);

}  // namespace llmprof::importers
