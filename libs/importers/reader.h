#pragma once
// One file read by the importer that fits it, said in frames. Runs in a child process, or in this one for tests.

#include <functional>
#include <string>

#include "importers/input.h"
#include "importers/protocol.h"

namespace llmprof::importers {

// The place in importers() of the one that reads this content, or that is called `format`; "": by content. An error
// says what the content is instead, and what to do.
Result<std::size_t> choose_importer(Input& input, const std::string& format);

// Says which format it is (kFormat), then, once `go` returned true, everything; kDone or kError comes last.
void read_file(Input& input, const std::string& format, FrameSink& sink, const std::function<bool()>& go);

}  // namespace llmprof::importers
