// Sums of the real tables were made with Python, splitting lines at two spaces.
#include "importers/key_averages/table.h"

#include <gmock/gmock.h>

#include "importers/testing_files.h"

namespace llmprof::importers {
namespace {

using testing::HasSubstr;
using trace::Loss;

constexpr const char* kTable =
    "-----------------------  ------------  ------------  ------------  ------------  ------------  \n"
    "                   Name    Self CPU %      Self CPU     Self CUDA    CUDA total    # of Calls  \n"
    "-----------------------  ------------  ------------  ------------  ------------  ------------  \n"
    "           aten::linear         0.89%     131.999ms       0.000us        3.846s         21357  \n"
    "  void  two  spaces<8>         0.00%       0.000us       1.500us       1.500us             2  \n"
    "-----------------------  ------------  ------------  ------------  ------------  ------------  \n"
    "Self CPU time total: 14.759s\n"
    "Self CUDA time total: 5.590s\n";

TEST(KeyAverages, RowsAndTotals) {
  const Result<MeasuredTable> table = parse_key_averages(kTable, "x.txt");
  ASSERT_TRUE(table) << table.error().message;
  ASSERT_EQ(table->rows.size(), 2U);
  EXPECT_EQ(table->device, "CUDA");
  EXPECT_DOUBLE_EQ(*table->cpu_total_ns, 14.759e9);
  EXPECT_DOUBLE_EQ(*table->device_total_ns, 5.59e9);
  const MeasuredRow* linear = table->find("aten::linear");
  ASSERT_NE(linear, nullptr);
  EXPECT_EQ(linear->calls, 21357);
  EXPECT_DOUBLE_EQ(*linear->self_cpu_ns, 131.999e6);
  EXPECT_DOUBLE_EQ(*linear->device_ns, 3.846e9);
  EXPECT_FALSE(linear->cpu_ns.has_value());  // the table has no such column
  ASSERT_NE(table->find("void  two  spaces<8>"), nullptr);
  EXPECT_DOUBLE_EQ(*table->find("void  two  spaces<8>")->self_device_ns, 1500);
}

TEST(KeyAverages, TextAroundTheTableIsSkipped) {
  const Result<MeasuredTable> table =
      parse_key_averages("loading model\r\n\n" + std::string(kTable) + "done\n", "x.txt");
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->rows.size(), 2U);
}

TEST(KeyAverages, BadTextSaysWhatAndWhere) {
  const auto message = [](std::string text) {
    const Result<MeasuredTable> table = parse_key_averages(text, "x.txt");
    return table ? "accepted" : table.error().message;
  };
  const auto changed = [](const std::string& from, const std::string& to) {
    std::string text = kTable;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  EXPECT_THAT(message(""), HasSubstr("x.txt: has no table of torch.profiler"));
  EXPECT_THAT(message("Name  Self CPU\n"), HasSubstr("x.txt:1: the table has no column \"# of Calls\""));
  EXPECT_THAT(message("Name  # of Calls\n"), HasSubstr("x.txt: has a table of torch.profiler without rows"));
  EXPECT_EQ(message(changed("131.999ms", "131.999xs")), "x.txt:4: '131.999xs' is not a time");
  EXPECT_EQ(message(changed("131.999ms", "-13.999ms")), "x.txt:4: '-13.999ms' is not a time");
  EXPECT_EQ(message(changed("21357", "21.35")), "x.txt:4: '21.35' is not a number of calls");
  EXPECT_EQ(message(changed("14.759s", "nan")), "x.txt:7: 'nan' is not a time");
  EXPECT_THAT(message(changed("       0.000us        3.846s", "")), HasSubstr("x.txt:4: a row of 4 cells"));
}

struct Sums {
  std::int64_t calls = 0, rows = 0;
  double self_cpu = 0, cpu = 0, self_device = 0, device = 0, cpu_bytes = 0, device_bytes = 0, flops = 0;
};

Sums sums(const Imports& imports) {
  Sums sum;
  for (const auto& row : imports.sink.rows<trace::SummaryRow>()) {
    if (imports.sink.text(row.kind) == "total") continue;
    ++sum.rows;
    sum.calls += row.calls.value_or(0);
    sum.self_cpu += row.self_cpu_ns.value_or(0), sum.cpu += row.cpu_ns.value_or(0);
    sum.self_device += row.self_device_ns.value_or(0), sum.device += row.device_ns.value_or(0);
    sum.cpu_bytes += row.cpu_bytes.value_or(0), sum.device_bytes += row.device_bytes.value_or(0);
    sum.flops += row.flops.value_or(0);
  }
  return sum;
}

std::int64_t rows_of_kind(const Imports& imports, std::string_view kind) {
  std::int64_t count = 0;
  for (const auto& row : imports.sink.rows<trace::SummaryRow>()) count += imports.sink.text(row.kind) == kind ? 1 : 0;
  return count;
}

TEST(KeyAveragesImport, TheT4TableKeepsEveryNumber) {
  const std::string text = import_text("table_t4_llama32_1b.txt.gz");
  EXPECT_EQ(sniff(text)->name, "key-averages");
  const Imports imports("key-averages", text);
  ASSERT_EQ(imports.error(), "");
  const Sums sum = sums(imports);
  EXPECT_EQ(sum.rows, 10);
  EXPECT_EQ(sum.calls, 122919);
  EXPECT_DOUBLE_EQ(sum.self_cpu, 7368506000.0);
  EXPECT_DOUBLE_EQ(sum.cpu, 15382800000.0);
  EXPECT_DOUBLE_EQ(sum.self_device, 10175000000.0);
  EXPECT_DOUBLE_EQ(sum.device, 20575704000.0);
  EXPECT_EQ(rows_of_kind(imports, "kernel"), 2);  // a gemv and the copies
  const auto total = imports.sink.rows<trace::SummaryRow>().back();
  EXPECT_EQ(imports.name(total.kind), "total");
  EXPECT_DOUBLE_EQ(*total.self_cpu_ns, 14.759e9);
  EXPECT_DOUBLE_EQ(*total.self_device_ns, 5.590e9);
  EXPECT_TRUE(imports.sink.losses.empty());
}

TEST(KeyAveragesImport, MemoryFlopsAndShapes) {
  const Imports imports("key-averages", import_text("table_train_flops_mem.txt.gz"));
  ASSERT_EQ(imports.error(), "");
  const Sums sum = sums(imports);
  EXPECT_EQ(sum.rows, 30);
  EXPECT_EQ(sum.calls, 136);
  EXPECT_NEAR(sum.self_device, 671227, 1e-6);
  EXPECT_NEAR(sum.device_bytes, 28607979.52, 1e-6);
  EXPECT_EQ(sum.cpu_bytes, 8);
  EXPECT_NEAR(sum.flops, 671219712, 1e-3);
  for (const auto& row : imports.sink.rows<trace::SummaryRow>()) {
    if (imports.name(row.name) == "aten::addmm") {
      EXPECT_EQ(imports.name(row.shapes), "[[1024], [64, 512], [512, 1024], [], []]");
      return;
    }
  }
  FAIL();
}

TEST(KeyAveragesImport, WhatTheDeviceDidUnderAnAnnotationIsNoKernel) {
  const Imports imports("key-averages", import_text("table_default.txt.gz"));
  const Sums sum = sums(imports);
  EXPECT_EQ(sum.rows, 100);
  EXPECT_EQ(sum.calls, 1447);
  EXPECT_NEAR(sum.device_bytes, 32973271.04, 1e-6);
  // 37 rows have time of the device only; prefill and decode_step are there with time of the host, too.
  EXPECT_EQ(rows_of_kind(imports, "kernel"), 35);
  EXPECT_EQ(rows_of_kind(imports, "range"), 2);
}

TEST(KeyAveragesImport, RowsThatCannotBeReadAreCounted) {
  std::string text = kTable;
  text.replace(text.find("131.999ms"), 9, "131.999xs");
  const Imports imports("key-averages", text + kTable);
  EXPECT_EQ(imports.error(), "");
  EXPECT_EQ(sums(imports).rows, 1);
  EXPECT_EQ(imports.sink.lost(Loss::kInputDamaged), 1);
  EXPECT_EQ(imports.sink.lost(Loss::kInputIgnored), 1);  // the second table
  EXPECT_THAT(Imports("key-averages", "nothing\n").error(), HasSubstr("line 1: has no table of torch.profiler"));
}

TEST(KeyAverages, OtherDevicesStacksAndUnits) {
  const Result<MeasuredTable> table = parse_key_averages(
      "Name  Self CPU  CPU total  Self XPU  XPU total  XPU Mem  Self XPU Mem  # of Calls  Source Location  Total "
      "GFLOPs\n"
      " aten::mm  1.0us  2.0us  3.0us  4.0us  -1.50 Kb  2 B  5  a.py(3): f  0.002\n"
      "      b.py(4): g\n"
      " aten::add  1.0us  2.0us  3.0us  4.0us  0 B  0 B  5  a.py(3): f  --\n",
      "x");
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->device, "XPU");
  ASSERT_EQ(table->rows.size(), 2u);
  EXPECT_EQ(table->rows[0].device_bytes, -1536);
  EXPECT_EQ(table->rows[0].self_device_bytes, 2);
  EXPECT_EQ(table->rows[0].flops, 2e6);
  EXPECT_EQ(table->rows[0].device_ns, 4000);
  EXPECT_FALSE(table->rows[1].flops.has_value());
}

}  // namespace
}  // namespace llmprof::importers
