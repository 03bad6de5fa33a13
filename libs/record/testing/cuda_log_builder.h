#pragma once
// CUDA records for capture logs made in memory: what a collector writes of GPUs, without a GPU. Times are of the
// caller; definitions get their numbers here.

#include <string>
#include <vector>

#include "record/testing/log_builder.h"

namespace llmprof::record {

class CudaLogBuilder {
 public:
  explicit CudaLogBuilder(LogBuilder& log) : log_(log) {}

  void device(std::uint32_t number, const std::string& name, std::uint64_t uuid_high, std::uint64_t uuid_low) {
    wire::Record record = LogBuilder::make(wire::RecordKind::kDevice);
    record.device = {uuid_high, uuid_low, 144ull << 30, log_.name(name), number, 132, 90};
    log_.add(0, {record});
  }
  wire::DefinitionId kernel_shape(const std::string& name, std::uint32_t grid_x = 132, std::uint16_t block_x = 256) {
    wire::Record record = LogBuilder::make(wire::RecordKind::kKernelShape);
    record.kernel_shape.id = ++definitions_;
    record.kernel_shape.name = log_.name(name);
    record.kernel_shape.grid_x = grid_x;
    record.kernel_shape.grid_y = record.kernel_shape.grid_z = 1;
    record.kernel_shape.block_x = block_x;
    record.kernel_shape.block_y = record.kernel_shape.block_z = 1;
    record.kernel_shape.registers = 40;
    record.kernel_shape.static_shared_bytes = 1024;
    record.kernel_shape.dynamic_shared_bytes = 2048;
    log_.add(0, {record});
    return definitions_;
  }
  wire::DefinitionId gemm_shape(const std::string& function = "cublasGemmEx") {
    wire::Record record = LogBuilder::make(wire::RecordKind::kGemmShape);
    record.gemm_shape.id = ++definitions_;
    record.gemm_shape.function = log_.name(function);
    record.gemm_shape.library = log_.name("/usr/lib/libcublas.so.13");
    record.gemm_shape.epilogue = log_.name("relu_bias");
    record.gemm_shape.type_a = record.gemm_shape.type_b = record.gemm_shape.type_c = log_.name("bfloat16");
    record.gemm_shape.compute_type = log_.name("float32");
    record.gemm_shape.trans_a = wire::Transpose::kYes;
    log_.add(0, {record});
    return definitions_;
  }
  // A stack of one frame called by `parent`.
  wire::DefinitionId stack(const std::string& function, wire::DefinitionId parent = 0,
                           wire::FrameKind kind = wire::FrameKind::kPython, const std::string& file = "model.py",
                           std::uint32_t line = 10, std::uint64_t offset = 0) {
    wire::Record frame = LogBuilder::make(wire::RecordKind::kFrame);
    frame.frame.id = ++definitions_;
    frame.frame.function = function.empty() ? 0 : log_.name(function);
    frame.frame.file = log_.name(file);
    frame.frame.line = line;
    frame.frame.kind = kind;
    frame.frame.offset = offset;
    wire::Record stack = LogBuilder::make(wire::RecordKind::kStack);
    stack.stack = {++definitions_, parent, frame.frame.id};
    log_.add(0, {frame});
    log_.add(0, {stack});
    return definitions_;
  }

  void launch(std::uint32_t thread, wire::LaunchRecord launch) {
    wire::Record record = LogBuilder::make(wire::RecordKind::kLaunch);
    record.launch = launch;
    if (launch.op == wire::LaunchOp{}) record.launch.op = wire::LaunchOp::kKernel;
    log_.add(thread, {record});
  }
  void kernel(wire::KernelRecord kernel) {
    wire::Record record = LogBuilder::make(wire::RecordKind::kKernel);
    record.kernel = kernel;
    log_.add(0, {record});
  }
  void copy(wire::CopyRecord copy) {
    wire::Record record = LogBuilder::make(wire::RecordKind::kCopy);
    record.copy = copy;
    log_.add(0, {record});
  }
  void graph_launch(wire::GraphLaunchRecord launch) {
    wire::Record record = LogBuilder::make(wire::RecordKind::kGraphLaunch);
    record.graph_launch = launch;
    log_.add(0, {record});
  }
  void node(std::uint32_t thread, wire::GraphNodeRecord node, const std::string& name = "") {
    wire::Record record = LogBuilder::make(wire::RecordKind::kGraphNode);
    record.graph_node = node;
    record.graph_node.name = name.empty() ? 0 : log_.name(name);
    log_.add(thread, {record});
  }
  void gemm(std::uint32_t thread, wire::GpuGemmRecord gemm) {
    wire::Record record = LogBuilder::make(wire::RecordKind::kGpuGemm);
    record.gpu_gemm = gemm;
    log_.add(thread, {record});
  }
  void memory(std::uint32_t thread, wire::DeviceMemoryRecord memory) {
    wire::Record record = LogBuilder::make(wire::RecordKind::kDeviceMemory);
    record.device_memory = memory;
    log_.add(thread, {record});
  }
  void api(std::uint32_t thread, wire::ApiRecord api, const std::string& name) {
    wire::Record record = LogBuilder::make(wire::RecordKind::kApi);
    record.api = api;
    record.api.name = log_.name(name);
    log_.add(thread, {record});
  }
  void gap(std::uint64_t begin_ns, std::uint64_t end_ns, const std::string& why) {
    wire::Record record = LogBuilder::make(wire::RecordKind::kGap);
    record.gap = {begin_ns, end_ns, log_.name(why)};
    log_.add(0, {record});
  }
  void note(std::uint64_t ts_ns, const std::string& subject, const std::string& text) {
    wire::Record record = LogBuilder::make(wire::RecordKind::kNote);
    record.note = {ts_ns, log_.name(subject), log_.name(text)};
    log_.add(0, {record});
  }

  void counter_window(std::uint32_t thread, wire::CounterWindowRecord window, const std::string& name = "") {
    wire::Record record = LogBuilder::make(wire::RecordKind::kCounterWindow);
    record.counter_window = window;
    record.counter_window.name = name.empty() ? 0 : log_.name(name);
    log_.add(thread, {record});
  }
  void counter(std::uint32_t thread, std::uint64_t ts_ns, std::uint32_t measurement, const std::string& metric,
               double value) {
    wire::Record record = LogBuilder::make(wire::RecordKind::kCounter);
    record.counter = {ts_ns, value, measurement, log_.name(metric)};
    log_.add(thread, {record});
  }
  void stall(wire::StallRecord stall, const std::string& function, const std::string& reason,
             const std::string& file = "") {
    wire::Record record = LogBuilder::make(wire::RecordKind::kStall);
    record.stall = stall;
    record.stall.function = log_.name(function);
    record.stall.reason = log_.name(reason);
    record.stall.file = file.empty() ? 0 : log_.name(file);
    log_.add(0, {record});
  }

 private:
  LogBuilder& log_;
  wire::DefinitionId definitions_ = 0;
};

}  // namespace llmprof::record
