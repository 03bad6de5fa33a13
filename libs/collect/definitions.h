#pragma once
// Domains, categories and libraries: defined rarely, from any thread, and written into every log of the process.

#include "collect/state.h"

namespace llmprof::collect {

// The number of the domain of this name (a second creation gives the same); 0, the default domain, when full.
std::uint32_t define_domain(wire::StringId name);
void define_category(std::uint32_t domain, std::uint32_t category, wire::StringId name);
void define_library(wire::StringId path, std::uint8_t hooked);  // as LibraryRecord has it

}  // namespace llmprof::collect
