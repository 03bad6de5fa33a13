// llmprof-docs [--check] ROOT: renews the generated parts of docs/: the options in the manual pages, the tables in
// format/run.md, the objects in format/json.md, the catalogues in format/measures.md and format/counters.md, the rules
// in format/diagnosis.md.
// --check changes nothing and fails when a page is not what the code says.

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/file.h"
#include "hw/counters/passes.h"
#include "report/reference.h"
#include "trace/schema.h"
#include "verb.h"

namespace {

using namespace llmprof;

bool check_only = false;

template <class Renew>
Result<void> renew(const std::string& path, const Renew& current) {
  LLMPROF_LET(const std::string page, base::read_file(path, 4u << 20));
  const std::string renewed = current(page);
  if (renewed == page) return {};
  if (check_only) return Error{ErrorCode::kCorruptInput, path + " is not what the code says", "make docs renews it"};
  fmt::print("renewed {}\n", path);
  LLMPROF_TRY(base::write_file(path, renewed));
  ::chmod(path.c_str(), 0644);
  return {};
}

Result<void> renew_all(const std::string& root) {
  LLMPROF_TRY(
      renew(root + "/docs/format/run.md", [](const std::string& page) { return trace::with_current_tables(page); }));
  LLMPROF_TRY(renew(root + "/docs/format/diagnosis.md",
                    [](const std::string& page) { return report::with_current_rules(page); }));
  for (const char* page : {"json", "json-bench", "json-diff", "json-load", "json-model", "json-plan", "json-predict",
                           "json-roofline", "json-counters", "json-whatif"})
    LLMPROF_TRY(renew(fmt::format("{}/docs/format/{}.md", root, page), report::with_current_descriptions));
  LLMPROF_TRY(renew(root + "/docs/format/measures.md",
                    [](const std::string& page) { return report::with_current_measures(page); }));
  LLMPROF_TRY(renew(root + "/docs/format/counters.md",
                    [](const std::string& page) { return hw::counters::with_current_catalog(page); }));
  for (const app::Verb* verb : app::verbs()) {
    const std::string path = fmt::format("{}/docs/manual/{}.md", root, verb->name);
    if (!base::is_file(path)) continue;  // tools/check_docs.py misses it
    LLMPROF_TRY(renew(path, [&](const std::string& page) { return app::with_current_options(*verb, page); }));
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  check_only = argc > 1 && std::string_view(argv[1]) == "--check";
  const int root = check_only ? 2 : 1;
  const auto done = renew_all(argc > root ? argv[root] : ".");
  return done ? 0 : app::fail(done.error());
}
