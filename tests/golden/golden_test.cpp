// Runs every *.test file of this folder. A case is three parts that a reader can check by hand:
//   trace   tiny_decode          a run built by tests/traces
//   query   sql/stages           an analysis (CSV), or "report" [--waterfall] [--counters] [--by line] (text), or "screen 80", or "report --json"
//   ----
//   the expected text
// golden_test --update rewrites the expected texts; the review reads the difference.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>

#include "analyze/questions.h"
#include "analyze/summary.h"
#include "base/file.h"
#include "base/json.h"
#include "report/layout.h"
#include "report/page.h"
#include "traces.h"

namespace llmprof {
namespace {

namespace fs = std::filesystem;

bool update = false;

struct Case {
  std::string head;  // up to and with the line "----"
  std::string trace, query, expected;
};

Case read_case(const std::string& path) {
  const std::string text = base::read_file(path, 1 << 20).value();
  const std::size_t cut = text.find("----\n");
  Case found{.head = text.substr(0, cut + 5), .expected = text.substr(cut + 5)};
  std::istringstream lines(found.head);
  for (std::string line; std::getline(lines, line);) {
    line = line.substr(0, line.find('#'));
    std::istringstream words(line);
    std::string key, value;
    words >> key >> value;
    if (key == "trace") found.trace = value;
    if (key != "query") continue;
    found.query = value;
    for (std::string more; words >> more;) found.query += " " + more;
  }
  return found;
}

// Each trace is written once per program run, into one folder that main removes.
const fs::path& work_folder() {
  static const fs::path folder = [] {
    std::string pattern = (fs::temp_directory_path() / "llmprof_golden_XXXXXX").string();
    return fs::path(::mkdtemp(pattern.data()));
  }();
  return folder;
}

std::string trace_folder(const std::string& name) {
  static std::map<std::string, std::string> folders;
  std::string& folder = folders[name];
  if (folder.empty()) {
    folder = (work_folder() / (name + ".llmprof")).string();
    const Result<void> written = traces::write_trace(name, folder);
    EXPECT_TRUE(written) << written.error().message;
  }
  return folder;
}

std::string csv(const trace::ResultTable& table) {
  std::ostringstream out;
  for (std::size_t i = 0; i < table.columns.size(); ++i) out << (i > 0 ? "," : "") << table.columns[i];
  out << "\n";
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) out << ",";
      switch (row[i].type) {
        case trace::Value::Type::kNull:
          break;
        case trace::Value::Type::kDouble:
          out << row[i].real;
          break;
        case trace::Value::Type::kText:
          out << (row[i].text.find(',') == std::string::npos ? row[i].text : '"' + row[i].text + '"');
          break;
        default:
          out << row[i].integer;
      }
    }
    out << "\n";
  }
  return out.str();
}

// What the attribution of kernels adds up to.
constexpr const char* kKernelTimeByOp =
    "SELECT stage, op, sum(executions)::BIGINT AS kernels, sum(time_ns)::BIGINT AS kernel_ns, "
    "coalesce(sum(time_ns) FILTER (source = 'estimated'), 0)::BIGINT AS estimated_ns "
    "FROM work_sum GROUP BY stage, op ORDER BY kernel_ns DESC, stage, op";

Result<std::string> answer(trace::Run& run, const std::string& query, const std::string& name) {
  const std::size_t by = query.find("--by ");
  analyze::Options options;
  if (by != std::string::npos) options.by = query.substr(by + 5);
  LLMPROF_LET(analyze::Summary summary, analyze::summarise(run, options));
  constexpr std::string_view kQuestion = "sql/";
  if (query.starts_with(kQuestion)) {
    const std::string_view question = std::string_view(query).substr(kQuestion.size());
    LLMPROF_LET(const trace::ResultTable table,
                question == "kernel_time_by_op" ? run.query(kKernelTimeByOp) : analyze::ask(run, question));
    return csv(table);
  }
  report::Page page{.run = name + ".llmprof", .info = run.info(), .summary = std::move(summary)};
  page.waterfall = query == "report --waterfall";
  page.counters = query == "report --counters";
  if (query == "report" || page.waterfall || page.counters || by != std::string::npos) return report::to_text(page, false);
  constexpr std::string_view kScreen = "screen ";  // and its columns
  if (query.starts_with(kScreen)) {
    report::set_line_width(std::stoul(query.substr(kScreen.size())));
    const std::string text = report::screen_text(page, false);
    report::set_line_width(100);
    return text;
  }
  base::Json json;
  report::to_json(page, json);
  json.erase("measures");  // the same numbers again, by name: unit tests hold them
  return base::to_text(json);
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, Matches) {
  const Case wanted = read_case(GetParam());
  Result<trace::Run> run = trace::Run::open(trace_folder(wanted.trace));
  ASSERT_TRUE(run) << run.error().message;
  const Result<std::string> text = answer(*run, wanted.query, wanted.trace);
  ASSERT_TRUE(text) << text.error().message;
  if (update) {
    ASSERT_TRUE(base::write_file(GetParam(), wanted.head + *text));
  } else {
    EXPECT_EQ(*text, wanted.expected);
  }
}

// Every question says in words what it asks, and can be asked, of a run with everything and of one with nothing.
TEST(Questions, CanBeAskedAndAreExplained) {
  EXPECT_GE(analyze::question_names().size(), 100u);
  for (const char* name : {"tiny_decode", "gpu_graph", "nothing"}) {
    Result<trace::Run> run = trace::Run::open(trace_folder(name));
    ASSERT_TRUE(run) << run.error().message;
    const auto summary = analyze::summarise(*run, {});
    ASSERT_TRUE(summary) << summary.error().message;
    for (const std::string_view question : analyze::question_names()) {
      EXPECT_TRUE(analyze::sql_of(question).starts_with("-- ")) << question;
      const auto table = analyze::ask(*run, question);
      EXPECT_TRUE(table) << question << ": " << (table ? "" : table.error().message);
    }
  }
}

// A derived folder whose files were damaged is not trusted but made again.
TEST(Derived, DamagedTablesAreRebuilt) {
  const std::string folder = trace_folder("tiny_decode");
  const auto steps = [&]() -> std::int64_t {
    Result<trace::Run> run = trace::Run::open(folder);
    if (!run) return -1;
    const auto summary = analyze::summarise(*run, {});
    return summary ? summary->stages.back().steps : -1;
  };
  EXPECT_EQ(steps(), 3);
  int damaged = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder + "/derived")) {
    if (entry.path().extension() == ".parquet") fs::resize_file(entry.path(), 10), ++damaged;
  }
  EXPECT_GT(damaged, 3);
  EXPECT_EQ(steps(), 3);
}

// --model replaces the model of the run; its results live beside, not instead of, those of the declared one.
TEST(Model, AFileOverridesTheDeclaredModel) {
  const std::string folder = trace_folder("tiny_decode");
  const std::string file = (work_folder() / "one_layer.json").string();
  ASSERT_TRUE(base::write_file(
      file, R"({"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 4, "num_attention_heads": 2,
    "num_key_value_heads": 1, "intermediate_size": 8, "vocab_size": 10, "tie_word_embeddings": false, "torch_dtype": "float32"})"));
  Result<trace::Run> run = trace::Run::open(folder);
  ASSERT_TRUE(run) << run.error().message;
  const auto summary = analyze::summarise(*run, {.model = file});
  ASSERT_TRUE(summary) << summary.error().message;
  EXPECT_EQ(summary->stages[1].efficiency.flops, 2080.0);  // 6·288 + 2·6·16 + 2·80: half the layers of tiny_decode.cpp
  const auto declared = analyze::summarise(*run, {});
  ASSERT_TRUE(declared) << declared.error().message;
  EXPECT_EQ(declared->stages[1].efficiency.flops, 4000.0);
  EXPECT_FALSE(analyze::summarise(*run, {.model = "/no/such/file"}));
}

std::vector<std::string> all_cases() {
  std::vector<std::string> paths;
  for (const std::string& name : base::list_directory(GOLDEN_DIR)) {
    if (name.ends_with(".test")) paths.push_back(std::string(GOLDEN_DIR) + "/" + name);
  }
  return paths;
}

INSTANTIATE_TEST_SUITE_P(Cases, Golden, testing::ValuesIn(all_cases()),
                         [](const auto& test) { return fs::path(test.param).stem().string(); });

}  // namespace
}  // namespace llmprof

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--update") llmprof::update = true;
  }
  const int status = RUN_ALL_TESTS();
  std::filesystem::remove_all(llmprof::work_folder());
  return status;
}
