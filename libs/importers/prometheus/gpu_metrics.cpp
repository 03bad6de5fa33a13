#include "importers/prometheus/gpu_metrics.h"

namespace llmprof::importers {
namespace {

using hw::MetricId;

constexpr double kMiB = 1 << 20;

constexpr GpuMetric kMetrics[] = {
    {"DCGM_FI_DEV_SM_CLOCK", MetricId::kSmClock},
    {"DCGM_FI_DEV_MEM_CLOCK", MetricId::kMemoryClock},
    {"DCGM_FI_DEV_GPU_TEMP", MetricId::kTemperature},
    {"DCGM_FI_DEV_MEMORY_TEMP", MetricId::kMemoryTemperature},
    {"DCGM_FI_DEV_POWER_USAGE", MetricId::kPower},
    {"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", MetricId::kEnergy, 1e-3},  // mJ
    {"DCGM_FI_DEV_POWER_MGMT_LIMIT", MetricId::kPowerLimit},
    {"DCGM_FI_DEV_GPU_UTIL", MetricId::kGpuUtilization},
    {"DCGM_FI_DEV_MEM_COPY_UTIL", MetricId::kMemoryUtilization},
    {"DCGM_FI_DEV_FB_USED", MetricId::kMemoryUsed, kMiB},
    {"DCGM_FI_DEV_FB_TOTAL", MetricId::kMemoryTotal, kMiB},
    {"DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", MetricId::kClockLimits},
    {"DCGM_FI_DEV_PSTATE", MetricId::kPerformanceState},
    {"DCGM_FI_PROF_SM_ACTIVE", MetricId::kSmActive, 100},  // shares of 1
    {"DCGM_FI_PROF_SM_OCCUPANCY", MetricId::kSmOccupancy, 100},
    {"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", MetricId::kTensorActive, 100},
    {"DCGM_FI_PROF_DRAM_ACTIVE", MetricId::kDramActive, 100},
    {"DCGM_FI_PROF_PIPE_FP64_ACTIVE", MetricId::kFp64Active, 100},
    {"DCGM_FI_PROF_PIPE_FP32_ACTIVE", MetricId::kFp32Active, 100},
    {"DCGM_FI_PROF_PIPE_FP16_ACTIVE", MetricId::kFp16Active, 100},
    {"DCGM_FI_PROF_PCIE_TX_BYTES", MetricId::kPcieSent},  // bytes per second, whatever its name says
    {"DCGM_FI_PROF_PCIE_RX_BYTES", MetricId::kPcieReceived},
    {"DCGM_FI_PROF_NVLINK_TX_BYTES", MetricId::kNvlinkSent},
    {"DCGM_FI_PROF_NVLINK_RX_BYTES", MetricId::kNvlinkReceived},
    {"nv_gpu_utilization", MetricId::kGpuUtilization, 100},  // share of 1
    {"nv_gpu_memory_used_bytes", MetricId::kMemoryUsed},
    {"nv_gpu_memory_total_bytes", MetricId::kMemoryTotal},
    {"nv_gpu_power_usage", MetricId::kPower},
    {"nv_gpu_power_limit", MetricId::kPowerLimit},
    {"nv_energy_consumption", MetricId::kEnergy},  // J
};

}  // namespace

const GpuMetric* find_gpu_metric(std::string_view name) {
  for (const GpuMetric& metric : kMetrics) {
    if (metric.name == name) return &metric;
  }
  return nullptr;
}

}  // namespace llmprof::importers
