// What the drawing components are given. Each fills the width of its parent, names itself for screen readers, offers
// its numbers as a table, works by keyboard, and prints.
import type { Curve, Flame, FlameDiff, Report, Roofline, Source, StepCurve } from "../data";

// Asks source.run(index) for the lanes and details, and source.timeline() for windows when source.live.
export interface TimelineProps { source: Source; index: number }
export interface FlameGraphProps { flame?: Flame; diff?: FlameDiff }  // one of them
// type: element type of the run (report.devices[0].type), whose roof points are held against.
export interface RooflineChartProps { roofline: Roofline; type?: string | null }
export interface StepCurvesProps { curves: StepCurve[] }
// Memory by kind over time (report.memory), and the readings of memory that the timeline has.
// origin_ns: begin of the run (timeline.run[0]), from which times count.
export interface MemoryChartProps { report: Report; curves: Curve[]; origin_ns?: number }
// A line without axes, about 120 x 28 pixels. `label` says in words what it shows: "decode, time of 96 steps".
export interface SparklineProps { values: number[]; label: string }
// Readings over time as small charts below each other: timeline.curves.
export interface TelemetryCurvesProps { curves: Curve[] }
