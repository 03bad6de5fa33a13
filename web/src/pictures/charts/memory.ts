// Memory over time, from the parts of the report that may have it.
import type { Curve, Report } from "../../data";
import { visible } from "../../visible";
import { extentOf, type Series } from "./series";

export interface Panel { title: string; series: Series[]; capacity: number | null }

interface Sample { ts_ns: number; bytes?: number; rss_bytes?: number }

function stepsOf(name: string, samples: Sample[] | null | undefined, origin: number): Series[] {
  if (!Array.isArray(samples) || samples.length === 0) return [];
  const y = samples.map((each) => each.bytes ?? each.rss_bytes ?? 0);
  return [{ name, x: samples.map((each) => each.ts_ns - origin), y, stepped: true }];
}

export function memoryPanels(report: Report, curves: Curve[], origin: number): Panel[] {
  const devices: Panel[] = (report["device_memory"]?.devices ?? []).map((device: Record<string, any>, index: number): Panel => ({
    title: visible(String(device["name"])), capacity: device["total_bytes"] ?? null,
    series: [
      ...stepsOf("in use on the device (driver)", device["driver"]?.over_time, origin),
      ...stepsOf("allocated by the program", device["allocations"]?.over_time, origin),
      ...stepsOf("held by the framework's allocator", report["allocators"]?.devices?.[index]?.events?.held_over_time, origin),
    ],
  }));
  const host: Panel = { title: "host, all processes", series: stepsOf("resident", report["host"]?.memory, origin), capacity: null };
  const known = [...devices, host].filter((panel) => panel.series.length > 0);
  return devices.some((panel) => panel.series.length > 0) ? known : [...curvePanels(curves), ...known];
}

// What only the telemetry knows.
function curvePanels(curves: Curve[]): Panel[] {
  const groups = new Map<string, Panel>();
  for (const { group, name, unit, ts, low, high } of curves) {
    if (unit !== "bytes" && unit !== "B") continue;
    const panel = groups.get(group) ?? { title: visible(group), series: [], capacity: null };
    panel.series.push({ name: visible(name), x: ts, y: high, low });
    groups.set(group, panel);
  }
  return [...groups.values()];
}

export const peakOf = ({ series }: Panel): number => extentOf(series.flatMap((each) => each.y))[1];
