// Why a GPU executed no kernel, as the program names it (libs/pictures/timeline_idle.cpp), and how that looks.
import { hash } from "../drawing";

export interface Gap { name: string; variable: string; idle: boolean }  // idle: neither kernel nor copy

export const gaps: Gap[] = [
  { name: "GPU idle, waiting for CPU", variable: "--p-gap-cpu", idle: true },
  { name: "GPU idle after synchronization", variable: "--p-gap-sync", idle: true },
  { name: "GPU idle, launched but not started", variable: "--p-gap-launch", idle: true },
  { name: "copy only, no kernel", variable: "--p-gap-copy", idle: false },
  { name: "GPU idle, gaps shorter than a pixel", variable: "--p-gap-short", idle: true },
  { name: "GPU idle, cause unknown", variable: "--p-gap-unknown", idle: true },
];

// A place in `gaps`; what has another name is of unknown cause.
export function gapOf(name: string): number {
  const known = gaps.findIndex((gap) => gap.name === name);
  return known >= 0 ? known : gaps.length - 1;
}

// What kernels do, as the program tells from their names.
export const kernelClasses = ["GEMM", "attention", "norm", "activation", "elementwise, copy", "softmax, loss, sampling", "communication", "other"];
export const classVariable = (index: number): string => `--p-class-${index}`;
export function classOf(name: string | null | undefined): number {
  const known = kernelClasses.indexOf(name ?? "");
  return known >= 0 ? known : name ? hash(name) % kernelClasses.length : kernelClasses.length - 1;
}
