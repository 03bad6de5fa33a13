#include "base/suggest.h"

#include <gtest/gtest.h>

namespace llmprof::base {
namespace {

using Names = std::vector<std::string>;
const std::vector<std::string_view> kVerbs{"record", "report", "ranges", "roofline",
                                           "query",  "export", "import", "plot"};

TEST(Suggest, SlipsOfTheFingers) {
  EXPECT_EQ(did_you_mean("reprot", kVerbs), "did you mean report? ");
  EXPECT_EQ(did_you_mean("Report", kVerbs), "did you mean report? ");
  EXPECT_EQ(did_you_mean("polt", kVerbs), "did you mean plot? ");
  EXPECT_EQ(did_you_mean("recrd", kVerbs), "did you mean record? ");
  EXPECT_EQ(did_you_mean("frobnicate", kVerbs), "");
  EXPECT_EQ(did_you_mean("", kVerbs), "");
  EXPECT_EQ(did_you_mean(std::string(1000, 'a'), kVerbs), "");
}

TEST(Suggest, WhatBeginsOrContainsComesBeforeSpelling) {
  EXPECT_EQ(near_names("roof", kVerbs), Names{"roofline"});
  EXPECT_EQ(near_names("port", kVerbs), (Names{"report", "export", "import"}));
  EXPECT_EQ(near_names("re", kVerbs), (Names{"record", "report"}));
  EXPECT_EQ(near_names("xy", kVerbs), Names{});
}

TEST(Suggest, CaseAndPunctuationDoNotCount) {
  EXPECT_EQ(name_key("NVIDIA H100-PCIe"), "nvidiah100pcie");
  EXPECT_EQ(name_key("Llama 3.2 1B."), "llama3.21b");
  EXPECT_NE(name_key("llama-3.2"), name_key("llama-32"));
  EXPECT_EQ(near_names("h100 pcie", {"h100-sxm", "h100-pcie"}), Names{"h100-pcie"});
  EXPECT_EQ(did_you_mean("h100", std::vector<std::string_view>{"h100-sxm", "h100-pcie", "h100-nvl"}, 8),
            "did you mean h100-sxm, h100-pcie or h100-nvl? ");
}

}  // namespace
}  // namespace llmprof::base
