#pragma once
// What `llmprof model` was asked for, from its options.

#include "analyze/design/design.h"
#include "model/config.h"
#include "verb.h"

namespace llmprof::app {

// A built-in name, a folder or a file, with the types that the options ask for.
Result<analyze::design::Subject> open_subject(const std::string& name_or_path, const model::Types& types);
model::Types types_of(const Arguments& arguments);

// "180ms", "21.5us", "1s"; `what` names the option in errors.
Result<double> time_ns(std::string_view what, std::string_view text);

Result<analyze::design::Options> design_options(const Arguments& arguments);
Result<analyze::design::Measurement> measurement(const Arguments& arguments);
// A device by name, else the best one of this machine; without peaks it has no name and says why.
Result<analyze::design::Roof> roof_of(const std::string& device);

// A printed profile held against the model: --measured.
Result<std::string> measured_page(const Arguments& arguments, const analyze::design::Subject& subject,
                                  const analyze::design::Roof& roof);

// Every built-in name.
Result<int> list_models(const Arguments& arguments);

}  // namespace llmprof::app
