// Pickles as they should not be. The good ones are in snapshot_test.cpp. Bytes are written by hand, opcode by opcode.
#include <gtest/gtest.h>

#include "importers/importer.h"
#include "importers/input.h"
#include "importers/testing_sink.h"
#include "importers/memory_snapshot/pickle.h"

namespace llmprof::importers {
namespace {

using namespace std::string_literals;

Result<void> parse(const std::string& bytes, MemorySink& sink) {
  Input input = Input::of_text("input", bytes);
  return find_importer("memory-snapshot")->parse(input, sink);
}

std::string message(const std::string& bytes) {
  MemorySink sink;
  const auto result = parse(bytes, sink);
  return result ? "accepted" : result.error().message;
}

const std::string kEmpty =
    "}(\x8c\x08segments]\x8c\x0d"
    "device_traces]u."s;

TEST(Pickle, anEmptySnapshotIsOne) {
  MemorySink sink;
  ASSERT_TRUE(parse("\x80\x04"s + kEmpty, sink));
  EXPECT_EQ(sink.lost(trace::Loss::kNoDeviceWork), 0);  // handed over by flush
  sink.flush();
  EXPECT_EQ(sink.lost(trace::Loss::kNoDeviceWork), 1);
}

TEST(Pickle, codeIsNamedAndNotExecuted) {
  // Each: what pickle.dumps of an object with __reduce__ holds, by protocol.
  EXPECT_EQ(message("cos\nsystem\n(S'true'\ntR."), "byte 0: contains code (os.system at byte 0); not executed");
  EXPECT_EQ(message("\x80\x04}\x8c\x02os\x8c\x06system\x93."s),
            "byte 15: contains code (os.system at byte 15); not executed");
  EXPECT_EQ(message("(ios\nsystem\n."), "byte 1: contains code (os.system at byte 1); not executed");
  for (const auto& [code, name] : {std::pair{'R', "REDUCE"},
                                   {'b', "BUILD"},
                                   {'o', "OBJ"},
                                   {'\x81', "NEWOBJ"},
                                   {'\x92', "NEWOBJ_EX"},
                                   {'\x82', "EXT1"},
                                   {'\x83', "EXT2"},
                                   {'\x84', "EXT4"}}) {
    EXPECT_EQ(message("))"s + code), "byte 2: contains code ("s + name + " at byte 2); not executed");
  }
  for (const auto& [code, name] : {std::pair{'P', "PERSID"}, {'Q', "BINPERSID"}, {'\x97', "NEXT_BUFFER"}}) {
    EXPECT_EQ(message(")"s + code),
              "byte 1: refers to objects outside the file ("s + name + " at byte 1); not executed");
  }
}

TEST(Pickle, lengthsAreHeldAgainstTheFile) {
  EXPECT_EQ(message("X\x00\x00\x00\x80"s + "abc"),
            "byte 5: 2147483648 more bytes are announced, but the file ends before the pickle does");
  EXPECT_EQ(message("\x8d\xff\xff\xff\xff\xff\xff\xff\xff"s + "abc"),
            "byte 9: 18446744073709551615 more bytes are announced, but the file ends before the pickle does");
  EXPECT_EQ(message("\x80\x04\x95\x00\x10\x00\x00\x00\x00\x00\x00}."s),
            "byte 2: a frame of 4096 bytes, more than the file has");
  EXPECT_EQ(message("\x80\x04}"s), "byte 3: the file ends before the pickle does");
  EXPECT_EQ(message("I12"), "byte 1: 3 more bytes are announced, but the file ends before the pickle does");
}

TEST(Pickle, stacksAndMarksAreChecked) {
  EXPECT_EQ(message("u."), "byte 0: a mark is missing");
  EXPECT_EQ(message("(u."), "byte 1: a container is missing");
  EXPECT_EQ(message("a."), "byte 0: a list is missing");
  EXPECT_EQ(message("}(Nu."), "byte 3: a key without a value");
  EXPECT_EQ(message("N(Ne."), "byte 3: values are put into what is no list");
  EXPECT_EQ(message("0."), "byte 0: nothing to pop");
  EXPECT_EQ(message("h\x05."), "byte 0: memo number 5 was never stored");
  EXPECT_EQ(message("Nr\xff\xff\xff\xff."), "byte 1: memo number 4294967295 after 0");
  EXPECT_EQ(message("NN."), "byte 2: the pickle ends with 2 values instead of one");
  EXPECT_EQ(message("."), "byte 0: the pickle ends with 0 values instead of one");
  EXPECT_EQ(message("\x80\x09N."s), "byte 0: pickle protocol 9; 0 to 5 are known");
  EXPECT_EQ(message("\xffN."s), "byte 0: 0xff is no opcode of a pickle");
  EXPECT_EQ(message("Ixyz\n."), "byte 0: an int that is no number");
  EXPECT_EQ(message("F1e999\n."), "byte 0: a float that is no number");
}

TEST(Pickle, nothingContainsItself) {
  EXPECT_EQ(message("]q\x00h\x00"s + "a."), "byte 5: a container that contains itself");
  // a = [], b = [a], a.append(b)
  EXPECT_EQ(message("]q\x00]q\x01h\x00"s + "a0h\x00h\x01"s + "a."), "byte 14: a container that contains itself");
}

TEST(Pickle, depthIsLimited) {
  const auto nested = [](int depth) { return std::string(depth, ']') + std::string(depth - 1, 'a') + "."; };
  EXPECT_NE(message(nested(100)).find("no memory snapshot"), std::string::npos);
  EXPECT_EQ(message(nested(102)), "byte 202: more than 100 containers in each other");
}

// Ten lists, each holding the one before ten times: 10^10 values in 200 bytes.
TEST(Pickle, aBillionLaughsAreRefused) {
  std::string bytes = "]q\x00"s;
  for (char level = 1; level <= 10; ++level) {
    bytes += "](";
    for (int i = 0; i < 10; ++i) bytes += "h"s + static_cast<char>(level - 1);
    bytes += "eq"s + level;
  }
  EXPECT_NE(message(bytes + ".").find("more than 1000000000 values when its references are followed"),
            std::string::npos);
}

TEST(Pickle, otherPicklesAreDescribed) {
  EXPECT_EQ(message("}(X\x01\x00\x00\x00"s + "aK\x01X\x01\x00\x00\x00"s + "bNu."),
            "byte 0: a pickle, but no memory snapshot: it is a dict with the keys a, b");
  EXPECT_EQ(message("](K\x01K\x02"
                    "e."),
            "byte 0: a pickle, but no memory snapshot: it is a list of 2");
  EXPECT_EQ(message("N."), "byte 0: a pickle, but no memory snapshot: it is None");
}

TEST(Pickle, aZipFileOfTorchSaveIsExplained) {
  const std::string zip = "PK\x03\x04\0\0\0\0archive/data.pkl"s;
  EXPECT_EQ(sniff(zip)->name, "memory-snapshot");
  EXPECT_EQ(message(zip), "byte 0: a zip file as torch.save writes it, not a memory snapshot");
}

TEST(Pickle, ctrlCEndsReading) {
  MemorySink sink;
  sink.stop_after = 0;
  const auto result = parse(kEmpty, sink);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kInterrupted);
}

// One event by hand with a time that no clock shows, and one with a size that is a text.
TEST(Pickle, unusableEventsAreCounted) {
  const auto text = [](const std::string& value) { return "\x8c"s + static_cast<char>(value.size()) + value; };
  const auto event = [&](const std::string& size, const std::string& time) {
    return "}(" + text("action") + text("alloc") + text("addr") + "K\x10" + text("size") + size + text("time_us") +
           time + "u";
  };
  const std::string traces = "](](" + event("K\x08", "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f"s) +
                             event(text("many"), "K\x05") + event("K\x08", "K\x05") + "ee";
  MemorySink sink;
  const auto result = parse("\x80\x04}(" + text("segments") + "]" + text("device_traces") + traces + "u.", sink);
  ASSERT_TRUE(result) << result.error().message;
  sink.flush();
  EXPECT_EQ(sink.lost(trace::Loss::kInputDamaged), 2);
  ASSERT_EQ(sink.rows<trace::AllocationRow>().size(), 1u);
  EXPECT_EQ(sink.rows<trace::AllocationRow>().front().begin_ns, 5000);
  EXPECT_EQ(sink.rows<trace::AllocationRow>().front().bytes, 8);
}

}  // namespace
}  // namespace llmprof::importers
