#pragma once
// Names of GPU kernels as people read them.

#include <string>
#include <string_view>

namespace llmprof::base {

// Demangled, with its template arguments (they tell one kernel of a library from another), without return type and
// parameters. What is no C++ name, or too long to be demangled safely, stays as it is.
std::string kernel_name(std::string_view symbol);
// The same of a name that is demangled already: "void scale<4>(float*)" is "scale<4>".
std::string_view without_signature(std::string_view demangled);
// The function alone: "void at::native::(anonymous namespace)::softmax<4>(float*)" is "softmax".
std::string kernel_function(std::string_view demangled);
// The function and what a generic one was made for, for tables and small boxes:
// "at::native::foo<4, at::native::AddFunctor<float>, …>" is "foo<AddFunctor>".
std::string short_kernel_name(std::string_view demangled);

}  // namespace llmprof::base
