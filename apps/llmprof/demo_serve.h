#pragma once
// llmprof demo --serve: the embedded model as a server, recorded, under a load that is measured from outside.

#include <string>
#include <vector>

#include "base/result.h"

namespace llmprof::app {

struct ServeDemo {
  std::string llmprof, workload;      // the two programs
  std::string output;                 // name of the run; those of the two sides are named after it
  std::vector<std::string> server;    // options of the server
  std::vector<std::string> load;      // options of the load
  bool peaks = true;
};

// The folder of the merged run.
Result<std::string> run_serve_demo(const ServeDemo& demo);

}  // namespace llmprof::app
