#include "trace/schema.h"

#include <algorithm>
#include <array>

#include "trace/rows.h"

namespace llmprof::trace {

const Column* Table::find(std::string_view column) const {
  const auto found = std::ranges::find(columns, column, &Column::name);
  return found == columns.end() ? nullptr : &*found;
}

std::span<const Table* const> tables() {
  static const std::array kTables{
      &table_of<ProcessRow>(),       &table_of<ThreadRow>(),
      &table_of<DeviceRow>(),        &table_of<PeakRow>(),
      &table_of<KernelRow>(),        &table_of<GraphLaunchRow>(),
      &table_of<GraphNodeRow>(),     &table_of<CopyRow>(),
      &table_of<ApiRow>(),           &table_of<OpRow>(),
      &table_of<RangeRow>(),         &table_of<GemmRow>(),
      &table_of<AllocationRow>(),    &table_of<GapRow>(),
      &table_of<SampleRow>(),        &table_of<StackRow>(),
      &table_of<FrameRow>(),         &table_of<ProcessUsageRow>(),
      &table_of<CollectorCostRow>(), &table_of<TelemetryRow>(),
      &table_of<CounterRow>(),       &table_of<CounterWindowRow>(),
      &table_of<StallRow>(),         &table_of<RequestRow>(),
      &table_of<LossRow>(),          &table_of<NoteRow>(),
      &table_of<ClockSyncRow>(),     &table_of<AttentionRow>(),
      &table_of<SummaryRow>(),       &table_of<MetricRow>(),
      &table_of<MemorySegmentRow>(), &table_of<MemoryBlockRow>(),
      &table_of<SourceRow>(),        &table_of<CommunicatorRow>(),
      &table_of<BenchRow>(),         &table_of<BenchAxisRow>(),
      &table_of<BenchSampleRow>(),   &table_of<StepRow>(),
      &table_of<AttributionRow>(),   &table_of<RangeTimeRow>(),
      &table_of<SamplePlaceRow>(),   &table_of<ModelOpRow>(),
      &table_of<LaunchPlaceRow>(),   &table_of<NodePlaceRow>(),
      &table_of<NodeShareRow>(),     &table_of<StepTimeRow>(),
      &table_of<KernelSumRow>(),     &table_of<RangeSumRow>(),
      &table_of<RangeMeaningRow>(),  &table_of<RangeTreeRow>(),
      &table_of<IdlePlaceRow>(),     &table_of<SampledStageRow>(),
  };
  return kTables;
}

const Table* find_table(std::string_view name) {
  const auto found = std::ranges::find_if(tables(), [&](const Table* table) { return table->name == name; });
  return found == tables().end() ? nullptr : *found;
}

}  // namespace llmprof::trace
