// Numbers of the real files come from Python's json module.
#include <gmock/gmock.h>

#include "importers/testing_files.h"

namespace llmprof::importers {
namespace {

using testing::HasSubstr;
using trace::Loss;

TEST(Proton, ATreeOfScopesAndKernels) {
  const std::string text = import_text("proton_cli.hatchet.gz");
  EXPECT_EQ(sniff(text)->name, "proton");
  const Imports imports("proton", text);
  ASSERT_EQ(imports.error(), "");
  const auto rows = imports.sink.rows<trace::SummaryRow>();
  ASSERT_EQ(rows.size(), 8u);
  EXPECT_EQ(imports.name(rows[0].name), "ROOT");
  EXPECT_FALSE(rows[0].parent_id.has_value());
  EXPECT_EQ(rows[0].device_ns, 49888);
  double self = 0, flops = 0, bytes = 0;
  std::int64_t calls = 0;
  for (const auto& row : rows) {
    self += row.self_device_ns.value_or(0), flops += row.flops.value_or(0), bytes += row.moved_bytes.value_or(0);
    calls += row.calls.value_or(0);
    EXPECT_TRUE(row.id == rows[0].id || row.parent_id.has_value());
  }
  EXPECT_EQ(self, 49888);
  EXPECT_EQ(calls, 15);
  EXPECT_EQ(flops, 4194304);
  EXPECT_EQ(bytes, 50331648);
  const auto device = imports.sink.rows<trace::DeviceRow>().at(0);
  EXPECT_EQ(device.units, 132);
  EXPECT_EQ(device.clock_mhz, 1980);
}

TEST(Proton, PythonFrames) {
  const Imports imports("proton", import_text("proton_python.hatchet.gz"));
  const auto rows = imports.sink.rows<trace::SummaryRow>();
  ASSERT_EQ(rows.size(), 19u);
  EXPECT_EQ(rows[0].device_ns, 29024);
}

TEST(Proton, WhatIsNoTree) {
  EXPECT_THAT(Imports("proton", "[{\"frame\": 3}]").error(), HasSubstr("not a tree"));
  EXPECT_THAT(Imports("proton", "{}").error(), HasSubstr("byte 0: is JSON, but not a tree"));
  EXPECT_THAT(Imports("proton", "[{\"frame\"").error(), HasSubstr("not valid JSON"));
  const Imports nameless(
      "proton", R"j([{"frame": {"name": "a"}, "metrics": {"time (ns)": 1e999, "x": 1}, "children": [{}, 7]}])j");
  EXPECT_THAT(nameless.error(), HasSubstr("byte"));  // no double holds 1e999
  const Imports odd("proton", R"([{"frame": {"name": "a"}, "metrics": {"x": 1}, "children": [{}, 7]}, 5])");
  EXPECT_EQ(odd.error(), "");
  EXPECT_EQ(odd.sink.lost(Loss::kInputDamaged), 2);
  EXPECT_EQ(odd.sink.lost(Loss::kInputIgnored), 1);
  EXPECT_THAT(Imports("proton", std::string(100'000, '[')).error(), HasSubstr("byte"));
}

}  // namespace
}  // namespace llmprof::importers
