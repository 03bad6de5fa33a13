#pragma once
// Names of functions as people read them.

#include <string>

namespace llmprof::host {

// Demangles C++ names and leaves out what makes them long: template arguments, parameters, the return type.
// "at::native::(anonymous namespace)::copy_kernel". Others stay as they are.
std::string readable_function(const std::string& symbol);

// The shortening alone, of a demangled name.
std::string shorten_function(const std::string& demangled);

}  // namespace llmprof::host
