#pragma once
// A sink that counts rows and forgets them: what reading alone takes.

#include "importers/sink.h"

namespace llmprof::perf {

class CountingSink : public importers::Sink {
 public:
  std::int64_t rows = 0;

 private:
  void set_clock(importers::FileClock) override {}
  void set_facts(importers::FileFacts) override {}
  void take_names(trace::Name, std::span<const std::string_view>) override {}
  void take_rows(const trace::Table&, const std::byte*, std::size_t count) override {
    rows += static_cast<std::int64_t>(count);
  }
  void take_loss(trace::Loss, std::int64_t, std::string_view) override {}
  bool progress(std::uint64_t) override { return true; }
};

}  // namespace llmprof::perf
