// Numbers of the real files come from Python's csv module on the same files.
#include <gmock/gmock.h>

#include <cmath>

#include "importers/ncu_csv/csv_reader.h"
#include "importers/testing_files.h"

namespace llmprof::importers {
namespace {

using ncu::ValueKind;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using trace::Loss;

std::string real(const std::string& name) { return import_text(name + ".csv.gz"); }

std::int64_t total_ns(const Imports& imports) {
  std::int64_t sum = 0;
  for (const auto& kernel : imports.sink.rows<trace::KernelRow>()) sum += kernel.end_ns - kernel.begin_ns;
  return sum;
}

double counter(const Imports& imports, std::string_view metric, std::size_t nth) {
  for (const auto& row : imports.sink.rows<trace::CounterRow>()) {
    if (imports.sink.text(row.metric) == metric && nth-- == 0) return row.value;
  }
  return NAN;
}

TEST(NcuCsv, ARowPerKernelInBaseUnits) {
  const Imports imports("ncu", real("ncu_raw_full"));
  ASSERT_EQ(imports.error(), "");
  const auto kernels = imports.sink.rows<trace::KernelRow>();
  ASSERT_EQ(kernels.size(), 12u);
  EXPECT_EQ(total_ns(imports), 39616);
  EXPECT_EQ(imports.sink.rows<trace::CounterRow>().size(), 24228u);
  EXPECT_EQ(imports.name(kernels[3].name), "nvjet_sm90_tst_8x64_64x16_2x1_v_bz_TNN");
  EXPECT_EQ(counter(imports, "sm__ops_path_tensor_src_bf16_dst_fp32.sum", 3), 134217728);
  EXPECT_EQ(counter(imports, "dram__bytes_read.sum", 3), 2121216);
  EXPECT_EQ(kernels[0].grid_x, 64);
  EXPECT_EQ(kernels[0].grid_y, 2);
  EXPECT_EQ(kernels[0].block_x, 128);
  EXPECT_EQ(kernels[1].begin_ns, kernels[0].end_ns);  // one behind the other
  EXPECT_EQ(imports.sink.clock.name, "order of profiling; not a timeline");
  EXPECT_FALSE(imports.sink.clock.wall_of_zero_ns.has_value());
  const auto device = imports.sink.rows<trace::DeviceRow>().at(0);
  EXPECT_EQ(imports.name(device.name), "NVIDIA H200");
  EXPECT_EQ(device.units, 132);
  EXPECT_EQ(device.memory_bytes, 150109880320);
  EXPECT_EQ(device.cache_bytes, 62914560);
  EXPECT_EQ(device.clock_mhz, 1980);
  for (const auto& row : imports.sink.rows<trace::CounterRow>()) ASSERT_EQ(row.passes, 38);
  EXPECT_EQ(imports.sink.lost(Loss::kInputDamaged) + imports.sink.lost(Loss::kToolLost), 0);
}

TEST(NcuCsv, ScaledUnitsAndNvtxColumns) {
  const Imports imports("ncu", real("ncu_roofline_raw"));
  ASSERT_EQ(imports.error(), "");
  EXPECT_EQ(total_ns(imports), 46464);  // printed in us
  EXPECT_EQ(imports.sink.rows<trace::CounterRow>().size(), 15540u);
  const auto kernels = imports.sink.rows<trace::KernelRow>();
  EXPECT_EQ(kernels[3].registers, 168);
  EXPECT_EQ(kernels[3].shared_bytes, 180692);  // 180.692000 Kbyte dynamic, 0 static
  for (const auto& row : imports.sink.rows<trace::CounterRow>()) {
    if (imports.sink.text(row.metric) == "dram__bytes.sum.per_second") {
      EXPECT_EQ(imports.sink.text(row.unit), "byte/s");
    }
  }
}

TEST(NcuCsv, ARowPerMetric) {
  const Imports imports("ncu", real("ncu_metrics"));
  ASSERT_EQ(imports.error(), "");
  EXPECT_EQ(imports.sink.rows<trace::KernelRow>().size(), 30u);
  EXPECT_EQ(imports.sink.rows<trace::CounterRow>().size(), 150u);
  EXPECT_EQ(total_ns(imports), 108960);
  double bytes = 0;
  for (std::size_t i = 0; i < 30; ++i) bytes += counter(imports, "dram__bytes_read.sum", i);
  EXPECT_EQ(bytes, 23224320);
  EXPECT_EQ(imports.sink.rows<trace::ProcessRow>().at(0).pid, 1682);
}

TEST(NcuCsv, DetailsWithLabelsAndRules) {
  const Imports imports("ncu", real("ncu_roofline_details"));
  ASSERT_EQ(imports.error(), "");
  EXPECT_EQ(imports.sink.rows<trace::KernelRow>().size(), 14u);
  EXPECT_EQ(imports.sink.rows<trace::CounterRow>().size(), 280u);
  EXPECT_EQ(total_ns(imports), 46470);                    // "Duration" in us, two digits behind the point
  EXPECT_EQ(imports.sink.lost(Loss::kInputIgnored), 46);  // advice
}

TEST(NcuCsv, WholeGraphs) {
  const Imports imports("ncu", real("ncu_graph"));
  EXPECT_EQ(imports.sink.rows<trace::KernelRow>().size(), 3u);
  EXPECT_EQ(total_ns(imports), 762528);
  EXPECT_EQ(imports.sink.rows<trace::CounterRow>().size(), 135u);
}

constexpr const char* kHeader =
    "\"ID\",\"Process ID\",\"Kernel Name\",\"Block Size\",\"Grid "
    "Size\",\"Device\",\"gpu__time_duration.sum\",\"x.sum\"\n"
    "\"\",\"\",\"\",\"\",\"\",\"\",\"us\",\"Kbyte\"\n";
std::string row(const std::string& x, const std::string& name = "k", const std::string& time = "1.5") {
  return "\"0\",\"7\",\"" + name + "\",\"(1, 2, 3)\",\"(4, 5, 6)\",\"0\",\"" + time + "\",\"" + x + "\"\n";
}

TEST(NcuCsv, LinesBeforeBetweenAndBehind) {
  const Imports imports("ncu", std::string("==PROF== Connected\nhello\n") + kHeader + row("1") +
                                   "==WARNING== slow\nstep 1\n" + row("2") +
                                   "==ERROR== lost it\n==PROF== Disconnected\n");
  ASSERT_EQ(imports.error(), "");
  EXPECT_EQ(imports.sink.rows<trace::KernelRow>().size(), 2u);
  EXPECT_EQ(counter(imports, "x.sum", 1), 2000);
  EXPECT_EQ(imports.sink.lost(Loss::kInputIgnored), 2);
  EXPECT_EQ(imports.sink.lost(Loss::kToolLost), 1);
  EXPECT_EQ(imports.sink.rows<trace::NoteRow>().size(), 2u);  // the warning, and what times mean
}

TEST(NcuCsv, NamesWithQuotesCommasAndNewlines) {
  const Imports imports("ncu", kHeader + row("1", "void f<\"\"a\"\",\n(int)2>(x)") + row("2"));
  const auto kernels = imports.sink.rows<trace::KernelRow>();
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(imports.name(kernels[0].name), "void f<\"a\",\n(int)2>(x)");
}

TEST(NcuCsv, AQuoteInTheWrongPlaceCostsItsLine) {
  const Imports imports("ncu", kHeader + row("1") + "\"odd\n" + row("2"));
  EXPECT_EQ(imports.sink.rows<trace::KernelRow>().size(), 2u);
  EXPECT_EQ(imports.sink.lost(Loss::kInputDamaged), 1);
  for (const std::size_t bytes : {10, 12}) {  // inside quotes and between fields
    const Imports cut("ncu", kHeader + row("1") + row("2").substr(0, bytes));
    EXPECT_EQ(cut.sink.rows<trace::KernelRow>().size(), 1u);
    EXPECT_EQ(cut.sink.lost(Loss::kInputTruncated), 1);
  }
  const Imports few("ncu", kHeader + row("1") + "\"0\",\"7\"\n");
  EXPECT_EQ(few.sink.lost(Loss::kInputDamaged), 1);
}

TEST(NcuCsv, LongRowsAreSkipped) {
  for (const char* first : {"x", "\""}) {
    MemorySink sink;
    Input input = Input::of_text("x", first + std::string(3 << 20, 'x') + "\nnext\n");
    ncu::CsvReader reader(input, sink, 1 << 20);
    const auto kind = reader.next();
    ASSERT_TRUE(kind.has_value());
    EXPECT_EQ(*kind, ncu::CsvReader::Kind::kLine);
    EXPECT_EQ(reader.line(), "next");
    sink.flush();
    EXPECT_EQ(sink.lost(Loss::kInputDamaged), 1);
  }
}

TEST(NcuCsv, ValuesThatAreNotThere) {
  const Imports imports("ncu", kHeader + row("n/a") + row("nan") + row("") + row("SomeText") + row("3", "k", ""));
  EXPECT_EQ(imports.sink.rows<trace::KernelRow>().size(), 5u);
  EXPECT_EQ(counter(imports, "x.sum", 0), 3000);
  EXPECT_EQ(total_ns(imports), 6000);
  EXPECT_EQ(imports.sink.lost(Loss::kInputIgnored), 1);
  std::vector<std::string> notes;
  for (const auto& note : imports.sink.rows<trace::NoteRow>()) notes.push_back(imports.name(note.text));
  EXPECT_THAT(notes, Contains(HasSubstr("1 kernels have no time")));
}

TEST(NcuCsv, ADecimalCommaIsRefusedWithItsPlace) {
  EXPECT_EQ(Imports("ncu", kHeader + row("1") + row("1.234,5")).error(),
            "line 4, column \"x.sum\": '1.234,5' is written with a decimal comma");
}

TEST(NcuCsv, NoPermissionIsExplained) {
  const Imports imports(
      "ncu",
      "==PROF== Connected to process 5\n==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to "
      "access NVIDIA GPU Performance Counters on the target device 0.\n");
  EXPECT_THAT(imports.error(), HasSubstr("line 2: holds no kernels: Nsight Compute was not allowed"));
  EXPECT_THAT(imports.result.error().hint, HasSubstr("NVreg_RestrictProfilingToAdminUsers=0"));
  EXPECT_THAT(Imports("ncu", real("ncu_failed")).error(), HasSubstr("Unable to access the following 4 metrics"));
  EXPECT_THAT(Imports("ncu", "\"Process ID\",\"Process Name\",\"Host Name\",\"Invocations\"\n").error(),
              HasSubstr("--print-summary"));
  EXPECT_THAT(Imports("ncu", "hello\n").error(), HasSubstr("holds no kernels"));
}

TEST(NcuValues, Numbers) {
  const auto parsed = [](std::string_view text) {
    double value = NAN;
    return ncu::parse_value(text, value) == ValueKind::kNumber ? value : NAN;
  };
  EXPECT_EQ(parsed("1,234.5"), 1234.5);
  EXPECT_EQ(parsed("15,938,884,266,666,668"), 15938884266666668);
  EXPECT_EQ(parsed("16896.000000"), 16896);
  EXPECT_EQ(parsed("-3.5"), -3.5);
  EXPECT_EQ(parsed("1e3"), 1000);
  EXPECT_EQ(parsed("7 (3; 4)"), 7);
  EXPECT_EQ(parsed("123456789012345678901234567890"), 123456789012345678901234567890.0);
  double value = 0;
  for (const char* text : {"", "n/a", "nan", "-nan", "inf"})
    EXPECT_EQ(ncu::parse_value(text, value), ValueKind::kAbsent) << text;
  for (const char* text : {"1.234,5", "0,45", "1.234.567", "1.234.567,8", "12,34"})
    EXPECT_EQ(ncu::parse_value(text, value), ValueKind::kDecimalComma) << text;
  for (const char* text : {"NVIDIA H200", "580.159.04", "(1, 2, 3)", "0x1f", "1,2,3"})
    EXPECT_EQ(ncu::parse_value(text, value), ValueKind::kText) << text;
}

TEST(NcuValues, Units) {
  const auto unit = [](std::string_view printed) {
    const ncu::Unit base = ncu::base_unit(printed);
    return std::to_string(static_cast<std::int64_t>(base.factor)) + " " + base.name;
  };
  EXPECT_EQ(unit("Gbyte/s"), "1000000000 byte/s");
  EXPECT_EQ(unit("Kbyte/block"), "1000 byte/block");
  EXPECT_EQ(unit("Mbyte/second"), "1000000 byte/s");
  EXPECT_EQ(unit("usecond"), "1000 ns");
  EXPECT_EQ(unit("s"), "1000000000 ns");
  EXPECT_EQ(unit("Ghz"), "1000000000 hz");
  EXPECT_EQ(unit("cycle/nsecond"), "1000000000 hz");
  EXPECT_EQ(unit("inst/cycle"), "1 inst/cycle");
  EXPECT_EQ(unit("%"), "1 %");
  EXPECT_EQ(unit("furlong"), "1 furlong");
}

}  // namespace
}  // namespace llmprof::importers
