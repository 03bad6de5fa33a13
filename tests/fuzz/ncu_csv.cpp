// CSV of Nsight Compute, both forms, with lines between.

#include "import_fuzz.h"

namespace llmprof::fuzz {
namespace {

void run(std::string_view input) { check_importer("ncu", input); }

std::vector<std::string> seeds() {
  return {
      "==PROF== Connected to process 1100 (/usr/bin/python3.12)\n"
      "\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel Name\",\"Context\",\"Stream\",\"Block Size\","
      "\"Grid Size\",\"Device\",\"CC\",\"device__attribute_display_name\",\"device__attribute_total_memory\","
      "\"dram__bytes.sum.per_second\",\"gpu__time_duration.sum\",\"launch__registers_per_thread\","
      "\"profiler__replayer_passes\"\n"
      "\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"Gbyte/s\",\"us\",\"register/"
      "thread\",\"pass\"\n"
      "\"0\",\"1100\",\"python3.12\",\"127.0.0.1\",\"void f<\"\"a\"\",\n2>(x)\",\"1\",\"7\",\"(128, 1, 1)\",\"(64, 2, "
      "1)\",\"0\",\"9.0\",\"NVIDIA H200\",\"150,109,880,320\",\"48.73\",\"2.78\",\"32\",\"38\"\n"
      "==PROF== Disconnected from process 1100\n",
      "\"ID\",\"Process ID\",\"Kernel Name\",\"Device\",\"Section Name\",\"Metric Name\",\"Metric Unit\",\"Metric "
      "Value\",\"Rule Name\"\n"
      "\"0\",\"3926\",\"nvjet\",\"0\",\"GPU Speed Of Light Throughput\",\"DRAM "
      "Frequency\",\"hz\",\"3,186,703,096.54\",\n"
      "\"0\",\"3926\",\"nvjet\",\"0\",\"GPU Speed Of Light Throughput\",\"Duration\",\"us\",\"7 (3; 4)\",\n"
      "\"0\",\"3926\",\"nvjet\",\"0\",\"SpeedOfLight\",\"\",\"\",\"\",\"SOLBottleneck\"\n",
      "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n"};
}

std::vector<std::string> dictionary() {
  return {"\"ID\"",
          "\"Process ID\"",
          "\",\"",
          "\"\"",
          "\r\n",
          "n/a",
          "nan",
          "1.234,5",
          "1,234.5",
          "Kbyte",
          "==ERROR==",
          "\"Metric Name\"",
          "\"Metric Value\"",
          "gpu__time_duration.sum",
          "1e308"};
}

}  // namespace

const Target kTarget{run, seeds, dictionary};

}  // namespace llmprof::fuzz
