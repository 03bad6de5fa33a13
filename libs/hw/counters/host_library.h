#pragma once
// CUPTI's host library: which metrics a chip has and in how many passes they can be read. Needs no GPU and no driver.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "hw/counters/catalog.h"

namespace llmprof::hw::counters {

class HostLibrary {
 public:
  // Found as the collector finds it (LLMPROF_CUPTI, beside CUDA); an error says what was tried.
  static Result<std::unique_ptr<HostLibrary>> open();
  virtual ~HostLibrary() = default;

  virtual std::string path() const = 0;
  virtual std::uint32_t version() const = 0;  // CUPTI's own, 130000 for that of CUDA 13.0
  virtual std::vector<std::string> chips() const = 0;
  // Base names (without ".sum") of what the chip offers.
  virtual Result<std::vector<std::string>> metrics(const std::string& chip, Method method) const = 0;
  // Passes that these metrics need together; an error names the first that the chip does not have.
  virtual Result<int> passes(const std::string& chip, Method method, const std::vector<std::string>& metrics) const = 0;
  struct Description {
    std::string text, unit;
  };
  virtual Result<Description> describe(const std::string& chip, Method method, const std::string& metric) const = 0;
};

}  // namespace llmprof::hw::counters
