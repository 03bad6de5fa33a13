#pragma once
// Cells of comma-separated values (RFC 4180).

#include <string>
#include <string_view>

namespace llmprof::base {

// A name may begin like a formula; spreadsheets would run it, so such text is marked with a quote.
std::string csv_text(std::string_view text);
// As it is, quoted where the separator asks for it: numbers, and "" for what is not there.
std::string csv_raw(std::string_view text);

}  // namespace llmprof::base
