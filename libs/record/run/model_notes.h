#pragma once
// The models that a recording knows of: the one the user names, and those whose files the program was seen to use.

#include <string>
#include <vector>

#include "base/result.h"
#include "host/model_files.h"
#include "trace/run_info.h"

namespace llmprof::record {

// --model NAME|PATH.
Result<trace::NotedModel> given_model(const std::string& name_or_path);

// Reads what is still there. What is no model that we know is left out; so is what is there already.
void note_opened_models(const std::vector<host::ModelFile>& files, std::vector<trace::NotedModel>& models);

}  // namespace llmprof::record
