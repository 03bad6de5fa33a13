#pragma once
// The Markdown of docs/manual, as a terminal shows it.

#include <string>
#include <string_view>

#include "verb.h"

namespace llmprof::app {

// Headings in capitals, text wrapped, code and lists indented, tables aligned; nothing of the markup is left.
std::string rendered_page(std::string_view markdown, const PageStyle& style);
// Code, emphasis and links of one sentence as plain text.
std::string plain_text(std::string_view markdown);

}  // namespace llmprof::app
