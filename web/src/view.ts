// The run that is shown, as every section gets it.
import type { Report, RunData, Source } from "./data";

export interface View { source: Source; index: number; data: RunData }

// A row of the report's JSON: read with care, any key may be missing.
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type Row = Record<string, any>;

export const list = (value: unknown): Row[] => (Array.isArray(value) ? (value as Row[]).filter((row) => row !== null) : []);

export const onGpu = (report: Report): boolean => list(report["devices"])[0]?.["kind"] === "gpu";

export const stageNames = (report: Report): string[] => list(report["stages"]).map((stage) => String(stage["name"]));

// The stage that most people come for.
export function mainStage(names: string[]): string | undefined {
  return ["decode", "forward", "prefill"].find((name) => names.includes(name)) ?? names[0];
}
