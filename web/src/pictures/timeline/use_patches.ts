// The patches of a timeline: what came with the run, and, where a server answers, the window in view in full detail.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { RunData, Timeline } from "../../data";
import type { Range } from "../scale";
import { coarseFirst, makePatch, type Patch } from "./patches";
import { fit } from "./view";

// Absolute times; null where only the data of the page are there.
export type Load = ((window: Range, width: number) => Promise<Timeline>) | null;

const settleMs = 100;     // no question while the window still moves
const surroundings = 0.25;  // of the window on each side, so that a small pan needs no question

// Whether an answer still serves the window: covers it, and is not much coarser.
export function serves(patch: Patch | null, [from, to]: Range): boolean {
  if (!patch || patch.from > from || patch.to < to) return false;
  return patch.to - patch.from <= 2.2 * (to - from);
}

// What to ask for: the window with its surroundings.
export function askFor([from, to]: Range, limits: Range): Range {
  const margin = (to - from) * surroundings;
  const [begin, end] = [Math.max(limits[0], from - margin), Math.min(limits[1], to + margin)];
  const [first, last] = fit([begin, end], limits);
  return [Math.floor(first), Math.ceil(last)];
}

export interface Patches { patches: Patch[]; loading: boolean; error: string }

export function usePatches(run: RunData, load: Load, window: Range, width: number): Patches {
  const origin = run.timeline.run[0];
  const given = useMemo(
    () => [run.timeline, ...(run.details ?? []).map((detail) => detail.timeline)].map((each) => makePatch(each, origin)), [run]);
  const [answer, setAnswer] = useState<Patch | null>(null);
  const [loading, setLoading] = useState(false);
  const [error, setError] = useState("");
  const question = useRef(0);
  useEffect(() => {
    if (!load || width === 0 || serves(answer, window) || serves(given[0]!, window)) return;
    const mine = ++question.current;  // answers to earlier questions are too late
    const timer = setTimeout(() => {
      setLoading(true);
      const [from, to] = askFor(window, [0, run.timeline.run[1] - origin]);
      const pixels = Math.round((width * (to - from)) / (window[1] - window[0]));
      load([from + origin, to + origin], pixels).then(
        (timeline) => { if (mine === question.current) { setAnswer(makePatch(timeline, origin)); setError(""); setLoading(false); } },
        (reason: unknown) => { if (mine === question.current) { setError(String(reason)); setLoading(false); } },
      );
    }, settleMs);
    return () => clearTimeout(timer);
  }, [load, run, window[0], window[1], width, answer]);
  const patches = useMemo(() => coarseFirst(answer ? [...given, answer] : given), [given, answer]);
  return { patches, loading, error };
}
