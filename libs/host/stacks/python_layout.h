#pragma once
// The offsets in CPython's structures, shared with the collector.

#include "wire/python_layout.h"

namespace llmprof::host {

using wire::python_layout;
using wire::PythonLayout;

}  // namespace llmprof::host
