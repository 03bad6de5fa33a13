// Results of llama-bench.

#include "import_fuzz.h"

namespace llmprof::fuzz {
namespace {

void run(std::string_view input) {
  check_importer("llama-bench", input);
}

std::vector<std::string> seeds() {
  return {
      R"j([{"build_commit":"8","build_number":1,"model_filename":"a/b","model_type":"t","n_prompt":512,"n_gen":0,"n_depth":0,"avg_ns":75,"stddev_ns":5,
"avg_ts":71.0,"stddev_ts":1.3,"samples_ns":[70,80],"samples_ts":[7.0]}])j"};
}

std::vector<std::string> dictionary() {
  return {"\"n_gen\": ", "\"avg_ts\": ", "-9223372036854775808", "1e308"};
}

}  // namespace

const Target kTarget{run, seeds, dictionary};

}  // namespace llmprof::fuzz
