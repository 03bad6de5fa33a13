// What annotate.h says about the NVTX v3 interface, held against NVIDIA's own headers where they are installed.

#include <gtest/gtest.h>
#include <nvtx3/nvToolsExt.h>

#include <cstddef>

#include "llmprof/annotate.h"

namespace {

using Ours = llmprof_detail_event;
using Theirs = nvtxEventAttributes_t;

static_assert(sizeof(Ours) == sizeof(Theirs));
static_assert(offsetof(Ours, size) == offsetof(Theirs, size));
static_assert(offsetof(Ours, category) == offsetof(Theirs, category));
static_assert(offsetof(Ours, color_type) == offsetof(Theirs, colorType));
static_assert(offsetof(Ours, color) == offsetof(Theirs, color));
static_assert(offsetof(Ours, payload_type) == offsetof(Theirs, payloadType));
static_assert(offsetof(Ours, payload) == offsetof(Theirs, payload));
static_assert(offsetof(Ours, message_type) == offsetof(Theirs, messageType));
static_assert(offsetof(Ours, message) == offsetof(Theirs, message));
static_assert(NVTX_VERSION == 3 && NVTX_PAYLOAD_TYPE_UNSIGNED_INT64 == 1);
static_assert(NVTX_MESSAGE_TYPE_ASCII == 1 && NVTX_MESSAGE_TYPE_REGISTERED == 3);
static_assert(NVTX_CB_MODULE_CORE2 == 5 && NVTX_ETID_CALLBACKS == 1 && NVTX_ETID_VERSIONINFO == 3);
static_assert(NVTX_CBID_CORE2_DomainMarkEx == 1 && NVTX_CBID_CORE2_DomainRangePushEx == 4 &&
              NVTX_CBID_CORE2_DomainRangePop == 5 && NVTX_CBID_CORE2_DomainNameCategoryA == 8 &&
              NVTX_CBID_CORE2_DomainRegisterStringA == 10 && NVTX_CBID_CORE2_DomainCreateA == 12);

TEST(NvtxAbi, ExportTablesLookLikeNvtx) {
  const auto* const callbacks =
      static_cast<const NvtxExportTableCallbacks*>(llmprof_detail_export_table(NVTX_ETID_CALLBACKS));
  ASSERT_NE(callbacks, nullptr);
  EXPECT_EQ(callbacks->struct_size, sizeof(NvtxExportTableCallbacks));
  const auto* const version =
      static_cast<const NvtxExportTableVersionInfo*>(llmprof_detail_export_table(NVTX_ETID_VERSIONINFO));
  ASSERT_NE(version, nullptr);
  EXPECT_EQ(version->struct_size, sizeof(NvtxExportTableVersionInfo));
  EXPECT_EQ(version->version, 3U);
  version->SetInjectionNvtxVersion(3);
  EXPECT_EQ(llmprof_detail_export_table(NVTX_ETID_RESERVED0), nullptr);
}

TEST(NvtxAbi, EveryModuleHasAsManySlotsAsNvtxGives) {
  const unsigned int expected[] = {0,
                                   NVTX_CBID_CORE_SIZE,
                                   NVTX_CBID_CUDA_SIZE,
                                   NVTX_CBID_OPENCL_SIZE,
                                   NVTX_CBID_CUDART_SIZE,
                                   NVTX_CBID_CORE2_SIZE,
                                   NVTX_CBID_SYNC_SIZE};
  const auto* const callbacks =
      static_cast<const NvtxExportTableCallbacks*>(llmprof_detail_export_table(NVTX_ETID_CALLBACKS));
  for (int module = 1; module < NVTX_CB_MODULE_SIZE; ++module) {
    NvtxFunctionTable table = nullptr;
    unsigned int size = 0;
    EXPECT_EQ(callbacks->GetModuleFunctionTable(static_cast<NvtxCallbackModule>(module), &table, &size), 1);
    EXPECT_EQ(size, expected[module]) << module;
    EXPECT_NE(table, nullptr);
  }
  EXPECT_EQ(callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_INVALID, nullptr, nullptr), 0);
  EXPECT_EQ(callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_SIZE, nullptr, nullptr), 0);
}

}  // namespace
