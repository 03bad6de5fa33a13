// The run over time, with zoom: docs/format/page.md says where the lanes come from.
import { useEffect, useMemo, useState } from "preact/hooks";
import { byWarmTime, type RunData, type Source, type StepDetail } from "../../data";
import { time, visible } from "../../text";
import { Tip, useTheme, useWidth } from "../canvas";
import { clamp, type Range } from "../drawing";
import { inWords, Legend, SliceText, Status, TimelineTables, Toolbar } from "./controls";
import type { ColourBy } from "./draw";
import { around, fit, type Load, pan, useAsks, useGestures, useHoverKeys, useKeys, usePatches, zoom } from "./input";
import { Lanes, Minimap } from "./lanes";
import { factsOf, findSlices, inWindow, matches, type Patch, rowsOf, segments, sliceAt, type SliceRef, stagePlaces, windowOf } from "./patches";
import { selectionOf } from "./selection";
import { SelectionSums } from "./sums";

export function Timeline({ source, index }: { source: Source; index: number }) {
  const [run, setRun] = useState<RunData | null>(null);
  const [error, setError] = useState("");
  useEffect(() => {
    let stale = false;
    setRun(null);
    source.run(index).then((found) => { if (!stale) setRun(found); }, (reason: unknown) => { if (!stale) setError(String(reason)); });
    return () => { stale = true; };
  }, [source, index]);
  const load = useMemo<Load>(() => (source.live ? (window, width) => source.timeline(index, window, width, null) : null), [source, index]);
  if (error !== "") return <p role="alert">The timeline is not there: {error}</p>;
  if (!run) return <p aria-busy="true">The timeline is being read …</p>;
  if (run.timeline.lanes.length === 0 && run.timeline.curves.length === 0) return <p>Nothing of this run has a time.</p>;
  return <TimelineView run={run} load={load} />;
}

const windowOfDetail = (run: RunData, { timeline }: StepDetail): Range => (
  fit([timeline.window[0] - run.timeline.run[0], timeline.window[1] - run.timeline.run[0]],
      [0, Math.max(1, run.timeline.run[1] - run.timeline.run[0])]));

// Single steps that are known in full, and the one to begin with: of median duration, of the stage that takes most time.
export function firstPlaces(run: RunData): { first: Range | null; details: { at: Range; text: string }[] } {
  const details = run.details ?? [], medians = details.filter((detail) => (detail.which ?? "median") === "median");
  const busiest = byWarmTime(run.report).map((stage) => medians.find((detail) => detail.stage === stage["name"]));
  const chosen = busiest.find((detail) => detail) ?? medians[0];
  return {
    first: chosen ? windowOfDetail(run, chosen) : null,
    details: details.map((detail) => ({ at: windowOfDetail(run, detail), text: `${visible(detail.stage)} step, ${detail.which ?? "median"}` })),
  };
}

const reachPixels = 3;
interface Hover { x: number; y: number; slice: SliceRef }

export function TimelineView({ run, load }: { run: RunData; load: Load }) {
  const [element, setElement, fullWidth] = useWidth<HTMLDivElement>();
  const theme = useTheme(element);
  const labelWidth = clamp(Math.round(fullWidth * 0.16), 72, 190);
  const width = Math.max(0, fullWidth - labelWidth - 3);
  const limits: Range = [0, Math.max(1, run.timeline.run[1] - run.timeline.run[0])];
  const places = useMemo(() => firstPlaces(run), [run]);
  const [wanted, setWindow] = useState<Range>(places.first ?? limits);
  const [selection, setSelection] = useState<Range | null>(null);
  const window = fit(wanted, limits);
  const [colourBy, setColourBy] = useState<ColourBy>("stage");
  const [query, setQuery] = useState("");
  const [selected, setSelected] = useState<SliceRef | null>(null);
  const [hover, setHover] = useState<Hover | null>(null);
  const { patches, loading, error } = usePatches(run, load, window, width);
  const parts = useMemo(() => segments(patches, window), [patches, window[0], window[1]]);
  const curveParts = useMemo(() => segments(patches.filter((patch) => patch.timeline.curves.length > 0), window), [patches, parts]);
  const groups = useMemo(() => rowsOf(patches), [patches]);
  const used = element?.contains(document.activeElement) ? (document.activeElement as HTMLElement).dataset["lane"] : undefined;
  const filled = useMemo(() => inWindow(groups, parts, curveParts, used), [groups, parts, curveParts, used]);
  const lanes = useMemo(() => filled.flatMap((group) => group.lanes), [filled]);
  const empty = groups.reduce((sum, group) => sum + group.lanes.length + group.curves.length, 0) -
    filled.reduce((sum, group) => sum + group.lanes.length + group.curves.length, 0);
  const found = useMemo(
    () => (query.trim() === "" ? null : new Map<Patch, Uint8Array>(patches.map((patch) => [patch, matches(patch.names, query)]))),
    [patches, query]);
  const stages = useMemo(() => stagePlaces(patches[0]!), [patches[0]]);
  const sums = useMemo(() => selection && selectionOf(patches, groups, selection), [patches, groups, selection]);
  const results = useMemo(() => (found ? findSlices(parts, lanes.map((row) => row.key), query) : []), [found, parts]);

  const move = (next: Range) => { setHover(null); setWindow(fit(next, limits)); };
  useAsks(run, (range) => {
    move(around(range, limits));
    setSelection(fit(range, limits));
    element?.scrollIntoView({ block: "start" });
  });
  const zoomTo = (slice: SliceRef) => move(around(windowOf(slice), limits));
  const under = (event: MouseEvent, pixel: number): SliceRef | null => {
    const lane = document.elementFromPoint(event.clientX, event.clientY)?.closest<HTMLElement>("[data-lane]")?.dataset["lane"];
    if (lane === undefined || pixel < 0) return null;
    return sliceAt(parts, lane, gestures.timeOf(pixel), (reachPixels * (window[1] - window[0])) / Math.max(1, width));
  };
  const same = (a: SliceRef | null, b: SliceRef | null) => a?.patch === b?.patch && a?.lane === b?.lane && a?.index === b?.index;
  const gestures = useGestures({ window, limits, width, left: labelWidth }, move, setSelection, (event) => {
    const slice = under(event, gestures.pixelOf(event));
    if (slice && same(slice, selected)) zoomTo(slice);
    else setSelected(slice);
  });
  const keys = {
    window, limits, parts, selected, onWindow: move, onSelect: setSelected, onZoomTo: zoomTo, marked: selection !== null, onMark: setSelection,
  };
  const onKeyDown = useKeys(keys);
  useHoverKeys(element, keys);
  const showTip = (event: PointerEvent) => {
    gestures.handlers.onPointerMove(event);
    if (event.pointerType === "touch" || gestures.dragging.current) return setHover(null);
    const slice = under(event, gestures.pixelOf(event));
    const box = element!.getBoundingClientRect();
    setHover(slice && { x: event.clientX - box.left, y: event.clientY - box.top, slice });
  };
  const facts = selected && factsOf(selected);
  const span = window[1] - window[0];
  return (
    <div class="picture p-timeline" ref={setElement} role="region" aria-label="timeline">
      <Toolbar onZoom={(factor) => move(zoom(window, (window[0] + window[1]) / 2, factor, limits))}
               onPan={(share) => move(pan(window, share * span, limits))} onReset={() => move(limits)}
               colourBy={colourBy} onColourBy={setColourBy} query={query} onQuery={setQuery}
               found={results} onFound={({ longest }) => { if (longest) { setSelected(longest); zoomTo(longest); } }}
               stages={stages} onStage={(place) => move(around(place.window, limits))}
               details={run.details ?? []} onDetail={(detail) => move(windowOfDetail(run, detail))} />
      {theme && width > 0 && (
        <>
          <div style={{ marginLeft: `${labelWidth + 1}px` }}>
            <Minimap overview={patches[0]!} window={window} width={width} theme={theme} onWindow={move} />
          </div>
          <Lanes groups={filled} parts={parts} curveParts={curveParts} labelWidth={labelWidth} mark={gestures.mark} selection={selection}
                 style={{ window, width, height: 0, theme, colourBy, found, selected }} onKeyDown={onKeyDown}
                 handlers={{ ...gestures.handlers, onPointerMove: showTip, onPointerLeave: () => setHover(null) }} />
        </>
      )}
      {colourBy !== "name" && <Legend by={colourBy} stages={stages.map((place) => place.name)} lanes={lanes} />}
      {sums && <SelectionSums sums={sums} live={load !== null} onZoom={() => move(selection!)} onClear={() => setSelection(null)} />}
      {hover && <Tip x={hover.x} y={hover.y} width={fullWidth}><SliceText facts={factsOf(hover.slice)} /></Tip>}
      <p class="p-detail">
        {facts ? <><SliceText facts={facts} share={facts.duration / span} full />{" "}
          <span class="p-bar p-group"><button type="button" onClick={() => zoomTo(selected)}>zoom to it</button></span></>
          : <span class="p-muted">Click a slice for its details, click it again to zoom to it. Drag to sum up a part of the time.</span>}
      </p>
      <Status where={places.details.find(({ at }) => at[0] === window[0] && at[1] === window[1])?.text ?? ""}
              empty={empty} window={window} whole={limits[1]} parts={parts} lanes={lanes} live={load !== null} loading={loading} error={error} />
      <p class="p-spoken" aria-live="polite">
        {facts ? inWords(facts) : `window from ${time(window[0])} to ${time(window[1])}`}
      </p>
      <TimelineTables parts={parts} lanes={lanes} window={window} lane={lanes.find((row) => row.key === selected?.lane) ?? null} />
    </div>
  );
}
