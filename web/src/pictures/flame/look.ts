// How the kinds of frames look: colour and pattern, so that neither is needed alone.
import type { Pattern } from "../canvas";
import { stageCategory } from "../colours";
import type { Theme } from "../theme";

export interface Look { category: number; pattern: Pattern; name: string }  // category -1: the colour of nothing special

const looks: Record<string, Look> = {
  root: { category: -1, pattern: "plain", name: "all" },
  stage: { category: 0, pattern: "plain", name: "stage" },
  python: { category: 3, pattern: "plain", name: "Python function" },
  native: { category: 5, pattern: "hatched", name: "native function" },
  range: { category: 2, pattern: "dotted", name: "range" },
  module: { category: 2, pattern: "plain", name: "module" },
  kernel: { category: 1, pattern: "underlined", name: "kernel" },
  copy: { category: 6, pattern: "underlined", name: "copy" },
  other: { category: 7, pattern: "crossed", name: "put together" },
};

export function lookOf(kind: string, name: string): Look {
  const look = looks[kind] ?? { category: 7, pattern: "plain" as const, name: kind };
  return kind === "stage" ? { ...look, category: stageCategory(name) } : look;
}

// For the legend: stages stand under their names, in colours of their own.
export const kindNames = (kinds: Iterable<string>): string[] => {
  const order = Object.keys(looks);
  return [...new Set(kinds)].filter((kind) => kind !== "root" && kind !== "stage").sort((a, b) => order.indexOf(a) - order.indexOf(b));
};

export const fillOf = (look: Look, theme: Theme): string => (look.category < 0 ? theme.idle : theme.categories[look.category]!);
export const textOf = (look: Look, theme: Theme): string => (look.category < 0 ? theme.text : theme.onCategories[look.category]!);
