// Our declarations of the NVTX injection interface against the real headers.

#include <gtest/gtest.h>
#include <nvtx3/nvToolsExt.h>

#include "collect/nvtx_abi.h"

namespace llmprof::collect::nvtx {
namespace {

static_assert(sizeof(EventAttributes) == sizeof(nvtxEventAttributes_t));
#define SAME_FIELD(ours, theirs) \
  static_assert(offsetof(EventAttributes, ours) == offsetof(nvtxEventAttributes_t, theirs))
SAME_FIELD(version, version);
SAME_FIELD(size, size);
SAME_FIELD(category, category);
SAME_FIELD(payload_type, payloadType);
SAME_FIELD(payload, payload);
SAME_FIELD(message_type, messageType);
SAME_FIELD(message, message);

static_assert(sizeof(CallbackTable) == sizeof(NvtxExportTableCallbacks));
static_assert(offsetof(CallbackTable, get_module_function_table) ==
              offsetof(NvtxExportTableCallbacks, GetModuleFunctionTable));

TEST(NvtxAbi, NumbersAreTheHeaders) {
  EXPECT_EQ(int(kCallbacks), int(NVTX_ETID_CALLBACKS));
  EXPECT_EQ(int(kCore), int(NVTX_CB_MODULE_CORE));
  EXPECT_EQ(int(kCore2), int(NVTX_CB_MODULE_CORE2));
  EXPECT_EQ(int(kCoreSize), int(NVTX_CBID_CORE_SIZE));
  EXPECT_EQ(int(kMarkEx), int(NVTX_CBID_CORE_MarkEx));
  EXPECT_EQ(int(kRangePop), int(NVTX_CBID_CORE_RangePop));
  EXPECT_EQ(int(kNameOsThreadW), int(NVTX_CBID_CORE_NameOsThreadW));
  EXPECT_EQ(int(kCore2Size), int(NVTX_CBID_CORE2_SIZE));
  EXPECT_EQ(int(kDomainMarkEx), int(NVTX_CBID_CORE2_DomainMarkEx));
  EXPECT_EQ(int(kDomainRangePop), int(NVTX_CBID_CORE2_DomainRangePop));
  EXPECT_EQ(int(kDomainRegisterStringA), int(NVTX_CBID_CORE2_DomainRegisterStringA));
  EXPECT_EQ(int(kDomainCreateW), int(NVTX_CBID_CORE2_DomainCreateW));
  EXPECT_EQ(int(kInitialize), int(NVTX_CBID_CORE2_Initialize));
  EXPECT_EQ(int(kRegistered), int(NVTX_MESSAGE_TYPE_REGISTERED));
  EXPECT_EQ(int(kUnicode), int(NVTX_MESSAGE_TYPE_UNICODE));
  EXPECT_EQ(int(kUint64), int(NVTX_PAYLOAD_TYPE_UNSIGNED_INT64));
  EXPECT_EQ(int(kFloat), int(NVTX_PAYLOAD_TYPE_FLOAT));
  EXPECT_EQ(kNoPushPopTracking, NVTX_NO_PUSH_POP_TRACKING);
}

}  // namespace
}  // namespace llmprof::collect::nvtx
