#pragma once
// What advice about other tools uses of Nsight Systems, too.

#include "advise/advise.h"

namespace llmprof::advise {

// Up to the program: "nsys profile … -o OUTPUT".
std::vector<std::string> nsys_words(const Tool& nsys, const std::string& output);
Step nsys_export(const Tool& nsys, const std::string& output);

}  // namespace llmprof::advise
