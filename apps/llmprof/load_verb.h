#pragma once
// What `llmprof load` was asked for, and what its forms share: one load, a sweep, a search.

#include <optional>
#include <string>
#include <vector>

#include "load/document.h"
#include "load/tokenizer.h"
#include "verb.h"

namespace llmprof::app {

struct AskedLoad {
  load::LoadOptions options;
  serving::Slo slo;
  std::optional<load::Tokenizer> tokenizer;
  std::int64_t requests = 0;  // of one load
  std::size_t warm_up = 0;
  std::uint64_t seed = 1;
  double steady_level = 0.5;
  std::string folder;  // of the run; "" none
};

// Everything but the prompts; the server is asked for its model and endpoint.
Result<AskedLoad> asked_load(const Arguments& arguments);
// So many prompts; with another seed other words, and other lengths where they are random.
Result<load::Prompts> asked_prompts(const Arguments& arguments, const AskedLoad& asked, std::int64_t requests,
                                    std::uint64_t seed);
// Of the same lengths, with words of their own.
Result<load::Prompts> warm_up_prompts(const Arguments& arguments, const AskedLoad& asked);

struct LoadRun {
  load::LoadResult result;
  load::Figures figures;
};
// With progress on a terminal; Ctrl-C ends it well.
Result<LoadRun> run_load(const Arguments& arguments, AskedLoad& asked, const load::Prompts& prompts,
                         const load::Prompts& warm_up, const std::string& what = "");
load::About about_of(const AskedLoad& asked, const load::Prompts& prompts);
Result<void> write_load(const std::string& folder, const Arguments& arguments, const LoadRun& run);

// --sweep and --find-rate.
Result<int> run_load_series(const Arguments& arguments, AskedLoad& asked);

extern const Verb kLoad;

}  // namespace llmprof::app
