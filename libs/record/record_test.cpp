#include "record/record.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "record/open_run.h"
#include "record/run/capture.h"
#include "record/testing/folder.h"
#include "record/watch/host_watch.h"

namespace llmprof::record {
namespace {

using testing::HasSubstr;

class RecordTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"libllmprof_inject.so", "libllmprof_blas.so"}) {
      std::filesystem::create_directories(folder_ / "lib");
      std::filesystem::copy_file(EMPTY_LIBRARY, folder_ / "lib/" + name);
    }
    ::setenv("LLMPROF_LIBDIR", (folder_ / "lib").c_str(), 1);
    ::setenv("LLMPROF_CACHE_DIR", (folder_ / "cache").c_str(), 1);  // no peaks, whatever this machine has cached
    ::unsetenv("LD_PRELOAD");
  }
  void TearDown() override {
    ::unsetenv("LLMPROF_LIBDIR");
    ::unsetenv("LLMPROF_CACHE_DIR");
  }

  RecordOptions options(std::vector<std::string> words) const {
    RecordOptions options;
    words.insert(words.begin(), PROGRAM);
    options.command = std::move(words);
    options.output = folder_ / "x";
    options.peaks = false;
    return options;
  }
  std::string run_folder() const { return folder_ / "x.llmprof"; }

  std::int64_t losses_named(const std::string& name) const {
    auto run = open_run(folder_ / "x", base::no_progress);
    EXPECT_TRUE(run);
    return run->query("SELECT coalesce(sum(count), 0)::BIGINT FROM loss WHERE name = '" + name + "'")
        ->rows[0][0]
        .as_int();
  }

  TestFolder folder_;
};

TEST_F(RecordTest, ReturnsTheStatusAndLeavesARun) {
  const auto outcome = record(options({"exit", "3"}), base::no_progress);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->exit_status, 3);
  EXPECT_FALSE(outcome->problem);
  ASSERT_TRUE(outcome->tally);
  EXPECT_EQ(outcome->tally->processes, 1);
  EXPECT_EQ(outcome->folder, run_folder());
  EXPECT_FALSE(base::is_directory(capture_folder(run_folder())));
  const auto run = open_run(folder_ / "x.llmprof", base::no_progress);  // the same name
  ASSERT_TRUE(run);
  EXPECT_EQ(run->query("SELECT exit_status FROM process")->rows[0][0].as_int(), 3);
  EXPECT_EQ(run->info().command.at(1), "exit");
}

TEST_F(RecordTest, AProgramThatEndsAtOnceIsStillKnownByItsLog) {
  // A log of the root process itself, whose end may come before the recorder has looked at it.
  RecordOptions all = options({});
  all.keep_capture = true;
  all.command = {"sh", "-c", "exit 0"};
  for (int i = 0; i < 10; ++i) {
    all.force = true;
    ASSERT_TRUE(record(all, base::no_progress));
    EXPECT_NE(read_capture_info(capture_folder(run_folder()))->root_start_ticks, 0);
  }
}

TEST_F(RecordTest, StatusOfSignalsAndOfWhatDoesNotStart) {
  EXPECT_EQ(record(options({"signal", "15"}), base::no_progress)->exit_status, 128 + 15);
  RecordOptions missing = options({});
  missing.output = folder_ / "y";
  missing.command = {"no-such-command-anywhere"};
  auto outcome = record(missing, base::no_progress);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->exit_status, 127);
  EXPECT_TRUE(outcome->problem);
  missing.command = {folder_.write("plain", "text", 0644)};
  EXPECT_EQ(record(missing, base::no_progress)->exit_status, 126);
  missing.command = {folder_.write("script", "#!/no/such/interpreter\n", 0755)};
  EXPECT_EQ(record(missing, base::no_progress)->exit_status, 127);
  EXPECT_FALSE(base::is_directory(folder_ / "y.llmprof"));  // nothing is left behind
}

TEST_F(RecordTest, RefusesToOverwriteUnlessForced) {
  ASSERT_TRUE(record(options({"exit", "0"}), base::no_progress));
  auto again = record(options({"exit", "0"}), base::no_progress);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kUsage);
  EXPECT_THAT(again.error().hint, HasSubstr("-f"));
  RecordOptions forced = options({"exit", "7"});
  forced.force = true;
  EXPECT_EQ(record(forced, base::no_progress)->exit_status, 7);

  folder_.write("x.llmprof/notes.txt", "mine");
  EXPECT_TRUE(record(forced, base::no_progress));
  EXPECT_TRUE(base::is_file(folder_ / "x.llmprof/notes.txt"));  // only what is ours was replaced
  std::filesystem::remove_all(run_folder());
  folder_.write("x.llmprof/thesis.tex", "years of work");
  EXPECT_FALSE(record(forced, base::no_progress));
  EXPECT_TRUE(base::is_file(folder_ / "x.llmprof/thesis.tex"));
}

TEST_F(RecordTest, StaticProgramsRunUnharmedAndAreReported) {
  RecordOptions all = options({"exit", "4"});
  all.command[0] = STATIC_PROGRAM;
  const auto outcome = record(all, base::no_progress);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->exit_status, 4);
  EXPECT_THAT(outcome->not_injectable.value_or(""), HasSubstr("statically linked"));
  EXPECT_EQ(losses_named("not_injected"), 1);
  EXPECT_EQ(losses_named("no_peaks"), 1);
}

TEST_F(RecordTest, KeepsAnExistingPreload) {
  folder_.write("mine.so", base::read_file(EMPTY_LIBRARY, 1 << 24).value());
  ::setenv("LD_PRELOAD", (folder_ / "mine.so").c_str(), 1);
  // The program itself compares: both libraries, ours last.
  const std::string script = "case $LD_PRELOAD in *mine.so:*libllmprof_blas.so) exit 11;; *) exit 12;; esac";
  RecordOptions all = options({});
  all.command = {"sh", "-c", script};
  const auto outcome = record(all, base::no_progress);
  ::unsetenv("LD_PRELOAD");
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->exit_status, 11);
  EXPECT_EQ(losses_named("existing_injection"), 1);
}

TEST_F(RecordTest, WithoutLibrariesNothingIsLaunched) {
  ::setenv("LLMPROF_LIBDIR", (folder_ / "nothing").c_str(), 1);
  const auto outcome = record(options({"exit", "0"}), base::no_progress);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(base::is_directory(run_folder()));
}

TEST_F(RecordTest, AnInterruptedIngestCanBeFinishedLater) {
  RecordOptions all = options({});
  all.command = {"sh", "-c", "printf torn > $LLMPROF_CAPTURE_DIR/some.log"};  // anything to ingest
  const auto outcome = record(all, [](const base::ProgressUpdate&) { return false; });
  ASSERT_TRUE(outcome);
  if (outcome->problem) {  // the writer may finish before it asks
    EXPECT_EQ(outcome->problem->code, ErrorCode::kInterrupted);
    EXPECT_THAT(outcome->problem->hint, HasSubstr("llmprof report"));
    EXPECT_FALSE(base::is_file(run_folder() + "/run.json"));
  }
  EXPECT_EQ(losses_named("log_unreadable"), 1);
}

TEST_F(RecordTest, NoIngestLeavesTheCapture) {
  RecordOptions all = options({"exit", "0"});
  all.ingest = false;
  const auto outcome = record(all, base::no_progress);
  ASSERT_TRUE(outcome);
  EXPECT_FALSE(outcome->tally);
  EXPECT_FALSE(base::is_file(run_folder() + "/run.json"));
  EXPECT_TRUE(open_run(run_folder(), base::no_progress));
  EXPECT_TRUE(base::is_file(run_folder() + "/run.json"));
}

TEST_F(RecordTest, TellsTheCollectorsWhenTheLogsAreTooBig) {
  // Writes 2 kB, then waits for the file that says stop.
  const std::string script =
      "head -c 2000 /dev/zero > $LLMPROF_CAPTURE_DIR/big.log; i=0; "
      "while [ $i -lt 100 ]; do [ -e $LLMPROF_CAPTURE_DIR/full ] && exit 21; sleep 0.1; i=$((i+1)); done; exit 22";
  RecordOptions all = options({});
  all.command = {"sh", "-c", script};
  all.max_bytes = 1000;
  const auto outcome = record(all, base::no_progress);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->exit_status, 21);
}

TEST(ParseBytes, ReadsSizes) {
  EXPECT_EQ(*parse_bytes("4096"), 4096u);
  EXPECT_EQ(*parse_bytes("10GiB"), 10ull << 30);
  EXPECT_EQ(*parse_bytes("500MB"), 500'000'000u);
  EXPECT_EQ(*parse_bytes("1.5k"), 1536u);
  for (const char* bad : {"", "GB", "-1", "0", "10 GB", "1XB", "nan", "1e30", "10GiBs"})
    EXPECT_FALSE(parse_bytes(bad)) << bad;
}

TEST(DefaultName, IsMadeOfTheCommandAndTheTime) {
  ::setenv("TZ", "UTC", 1);
  const std::int64_t wall_ns = 1'794'737'700'000'000'000;  // 2026-11-15 10:15:00 UTC: 20772 days * 86400 + 36900
  EXPECT_EQ(default_name("/usr/bin/python3", wall_ns), "python3-20261115-101500");
  EXPECT_EQ(default_name("./my prog;rm", wall_ns), "my-prog-rm-20261115-101500");
  EXPECT_EQ(default_name("--", wall_ns), "run---20261115-101500");
}

TEST(Contention, IsSaidWhereItMatters) {
  EXPECT_EQ(contention_text({.waited_ns = 100'000'000, .lived_ns = 200'000'000, .others = 0.5}), "") << "0.1 s";
  EXPECT_EQ(contention_text({.waited_ns = 1'000'000'000, .lived_ns = 100'000'000'000}), "") << "1 %";
  const std::string others = contention_text({.waited_ns = 1'000'000'000, .lived_ns = 10'000'000'000, .others = 0.4});
  EXPECT_THAT(others, testing::HasSubstr("waited 10 % of its time for a core (other programs used 40 %"));
  const std::string own = contention_text({.waited_ns = 1'000'000'000, .lived_ns = 10'000'000'000, .others = 0.01});
  EXPECT_THAT(own, testing::HasSubstr("its own threads had them"));
  EXPECT_EQ(contention_text({.stolen = 0.25}), "a hypervisor took away 25 % of the machine's CPU time");
}

}  // namespace
}  // namespace llmprof::record
