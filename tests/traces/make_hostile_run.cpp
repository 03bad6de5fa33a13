// make_hostile_run OUT: writes the run of hostile names (tests/traces/hostile.cpp) into the folder OUT.
// make_hostile_run --names: prints the names, one JSON string a line.

#include <cstdio>
#include <string_view>

#include "base/json.h"
#include "traces.h"

int main(int count, char** words) {
  if (count != 2) {
    std::fputs("usage: make_hostile_run OUT | --names\n", stderr);
    return 1;
  }
  if (std::string_view(words[1]) == "--names") {
    for (const std::string_view name : llmprof::traces::hostile_names())
      std::puts(llmprof::base::to_line(llmprof::base::Json(std::string(name))).c_str());
    return 0;
  }
  const llmprof::Result<void> written = llmprof::traces::write_hostile(words[1]);
  if (written) return 0;
  std::fprintf(stderr, "make_hostile_run: %s\n", written.error().message.c_str());
  return 2;
}
