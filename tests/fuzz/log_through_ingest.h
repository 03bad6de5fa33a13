#pragma once
// One capture log through the reader and the ingest, with tables that check their rows and keep nothing.

#include <string>
#include <string_view>
#include <vector>

namespace llmprof::fuzz {

void log_through_ingest(std::string_view log);

// Logs as collectors make them: nested ranges, BLAS calls, names, losses; an ordinary end and a killed process.
std::vector<std::string> sample_logs();
std::vector<std::string> log_words();

}  // namespace llmprof::fuzz
