#pragma once
// The GPUs. Kernels name them by the number CUDA gives them in their process; TARGET_INFO_CUDA_DEVICE tells which of
// the machine's GPUs that is.

#include <map>
#include <string>
#include <utility>

#include "importers/nsys_sqlite/actors.h"

namespace llmprof::importers::nsys {

class Devices {
 public:
  explicit Devices(Database& database) : database_(database) {}

  // Reads TARGET_INFO_GPU and writes its rows.
  Result<void> read(const std::string& driver);
  trace::Id of_cuda(std::int64_t pid, std::int64_t cuda_ordinal);
  trace::Id of_gpu(std::int64_t gpu);  // the machine's own number, as GPU metrics use it

 private:
  trace::Id add_unknown(std::int64_t gpu);

  Database& database_;
  std::map<std::int64_t, trace::Id> by_gpu_;
  std::map<std::int64_t, std::int64_t> gpu_of_ordinal_;                        // where the process is not known
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> gpu_of_cuda_;  // by process id and CUDA's number
  std::int64_t last_pid_ = -1, last_ordinal_ = -1;
  trace::Id last_id_ = 0;
};

}  // namespace llmprof::importers::nsys
