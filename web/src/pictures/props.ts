// What the drawing components are given. Each fills the width of its parent, names itself for screen readers, offers
// its numbers as a table, works by keyboard, and prints.
import type { Curve, Flame, FlameDiff, Report, Roofline, Source, StepCurve } from "../data";

// Asks source.run(index) for the lanes and details, and source.timeline() for windows when source.live.
export interface TimelineProps { source: Source; index: number }
export interface FlameGraphProps { flame?: Flame; diff?: FlameDiff }  // one of them
export interface RooflineChartProps { roofline: Roofline }
export interface StepCurvesProps { curves: StepCurve[] }
// Memory by kind over time (report.memory), and the readings of memory that the timeline has.
export interface MemoryChartProps { report: Report; curves: Curve[] }
// A line without axes, about 120 x 28 pixels. `label` says in words what it shows: "decode, time of 96 steps".
export interface SparklineProps { values: number[]; label: string }
// One of report.waterfalls.
export interface WaterfallProps { waterfall: Waterfall }
export interface Waterfall {
  stage: string; quantity: string; samples: number; measured_ns: number; mean_ns: number; floor_ns: number | null;
  why: string | null; terms: { name: string; label: string; ns: number | null; share: number | null; why: string | null }[];
}
// Readings over time as small charts below each other: timeline.curves, window as in the timeline they come from.
export interface TelemetryCurvesProps { curves: Curve[]; origin_ns: number }
