#pragma once
// The ranges of a run as the passes want them: one vector per column, in sweep order (thread, begin, longest first).
// Marks are left out: they have no inside.

#include <cstdint>
#include <string>
#include <vector>

#include "base/nesting.h"
#include "trace/run.h"

namespace llmprof::analyze {

inline constexpr std::int64_t kNull = trace::Columns::kNull;
inline constexpr std::int32_t kNone = -1;  // no range, no step

struct Ranges {
  std::vector<std::int64_t> id, begin_ns, end_ns, thread_id, process_id, depth;
  std::vector<std::int64_t> name, domain, category;  // codes into texts; 0 is NULL
  std::vector<std::int64_t> payload;                 // kNull if there is none
  std::vector<std::string> texts;

  std::size_t size() const { return id.size(); }
};

// Puts ranges that come in any order into sweep order. Linear when they are already sorted by begin, as files are.
void sort_for_sweep(Ranges& ranges);

// Calls visit(index, parent) in sweep order. The parent is the innermost range of the thread that contains this one
// wholly: ranges that merely overlap (start_end ranges may) are not each other's parents.
template <class Visit>
void sweep(const Ranges& ranges, Visit visit);

// ---- implementation of the template -------------------------------------------------------------------------

template <class Visit>
void sweep(const Ranges& ranges, Visit visit) {
  base::Nesting<std::int32_t> nesting;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (i > 0 && ranges.thread_id[i] != ranges.thread_id[i - 1]) nesting.clear();
    const auto* parent = nesting.around(ranges.begin_ns[i], ranges.end_ns[i]);
    visit(static_cast<std::int32_t>(i), parent == nullptr ? kNone : parent->item);
    nesting.open(ranges.end_ns[i], static_cast<std::int32_t>(i));
  }
}

}  // namespace llmprof::analyze
