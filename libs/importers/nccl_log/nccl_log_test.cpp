// Counts of the real log were made with Python.
#include <gmock/gmock.h>

#include "importers/testing_files.h"

namespace llmprof::importers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using trace::Loss;

TEST(NcclLog, CollectivesAsTotals) {
  const std::string text = import_text("nccl_rank0.log.gz");
  EXPECT_EQ(sniff(text)->name, "nccl");
  const Imports imports("nccl", text);
  ASSERT_EQ(imports.error(), "");
  std::vector<std::string> rows;
  for (const auto& row : imports.sink.rows<trace::SummaryRow>())
    rows.push_back(imports.name(row.name) + " " + imports.name(row.shapes) + " x" + std::to_string(*row.calls) + " " +
                   std::to_string(static_cast<std::int64_t>(*row.moved_bytes)));
  EXPECT_THAT(rows,
              ElementsAre("ncclAllGather [8192] bfloat16, 2 ranks x5 81920", "ncclAllReduce [1] float32, 2 ranks x2 8",
                          "ncclAllReduce [8192] bfloat16, 2 ranks x15 245760",
                          "ncclBroadcast [8192] bfloat16, 2 ranks x5 81920",
                          "ncclReduceScatter [4096] bfloat16, 2 ranks x5 40960"));
  EXPECT_EQ(imports.sink.facts.tool, "NCCL 2.28.9+cuda13.0");
  const auto processes = imports.sink.rows<trace::ProcessRow>();
  ASSERT_EQ(processes.size(), 1u);
  EXPECT_EQ(processes[0].pid, 1832);
  EXPECT_EQ(processes[0].rank, 0);
  const auto communicators = imports.sink.rows<trace::CommunicatorRow>();
  ASSERT_EQ(communicators.size(), 1u);
  EXPECT_EQ(communicators[0].process_id, processes[0].id);
  EXPECT_EQ(imports.name(communicators[0].name), "0x16d69540");
  EXPECT_EQ(communicators[0].size, 2);
}

TEST(NcclLog, TornLinesAndLogsWithoutCollectives) {
  const std::string good =
      "h:1:1 [0] NCCL INFO AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x2 count 8 datatype 7 op 0 root 0 comm 0x3 "
      "[nranks=2] stream (nil)\n";
  const Imports torn("nccl", "\x1b[1mhello\n" + good + good.substr(0, 60) + good + good.substr(0, 50) + "\n");
  EXPECT_EQ(torn.error(), "");
  EXPECT_EQ(torn.sink.rows<trace::SummaryRow>().at(0).calls, 1);
  EXPECT_EQ(torn.sink.lost(Loss::kInputDamaged), 2);
  EXPECT_THAT(Imports("nccl", "h:1:1 [0] NCCL INFO Using network Socket\n").error(), HasSubstr("names no collectives"));
  EXPECT_THAT(Imports("nccl", std::string("\0\1\2", 3)).error(), HasSubstr("holds no line of NCCL"));
}

}  // namespace
}  // namespace llmprof::importers
