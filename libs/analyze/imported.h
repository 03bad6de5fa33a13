#pragma once

#include "analyze/basis.h"
#include "analyze/summary.h"

namespace llmprof::analyze {

Result<void> fill_imported(const trace::Run& run, const Basis& basis, Imported& imported);

// Operators nest on their thread by time. Rows come by thread, begin and falling end, as sql/framework_ops orders them.
class OpNesting {
 public:
  struct Row {
    std::int64_t thread_id, begin_ns, end_ns, name, device_ns, launches;  // name: a code
  };
  struct Sums {
    std::int64_t calls = 0, host_ns = 0, self_host_ns = 0, device_ns = 0, self_device_ns = 0, launches = 0;
  };
  void add(const Row& row);
  void finish();
  const std::vector<Sums>& by_name() const { return sums_; }  // by code

 private:
  struct Open {
    Row row;
    std::int64_t child_host_ns = 0, child_device_ns = 0;
  };
  void close();
  std::vector<Open> open_;
  std::vector<Sums> sums_;
};

}  // namespace llmprof::analyze
