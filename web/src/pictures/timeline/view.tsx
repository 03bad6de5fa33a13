// The run over time, with zoom: docs/format/page.md says where the lanes come from.
import { useEffect, useMemo, useState } from "preact/hooks";
import type { RunData, Source } from "../../data";
import { time } from "../../text";
import { Tip, useTheme, useWidth } from "../canvas";
import { clamp, type Range } from "../drawing";
import { inWords, SliceText, StageLegend, Status, TimelineTables, Toolbar } from "./controls";
import { around, fit, type Load, pan, useGestures, useKeys, usePatches, zoom } from "./input";
import { Lanes, Minimap } from "./lanes";
import { factsOf, findSlices, matches, type Patch, rowsOf, segments, sliceAt, type SliceRef, stagePlaces, windowOf } from "./patches";

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

const reachPixels = 3;
interface Hover { x: number; y: number; slice: SliceRef }

export function TimelineView({ run, load }: { run: RunData; load: Load }) {
  const [element, setElement, fullWidth] = useWidth<HTMLDivElement>();
  const theme = useTheme(element);
  const labelWidth = clamp(Math.round(fullWidth * 0.16), 72, 190);
  const width = Math.max(0, fullWidth - labelWidth - 3);
  const limits: Range = [0, Math.max(1, run.timeline.run[1] - run.timeline.run[0])];
  const [wanted, setWindow] = useState<Range>(limits);
  const window = fit(wanted, limits);
  const [colourBy, setColourBy] = useState<"stage" | "name">("stage");
  const [query, setQuery] = useState("");
  const [selected, setSelected] = useState<SliceRef | null>(null);
  const [hover, setHover] = useState<Hover | null>(null);
  const { patches, loading, error } = usePatches(run, load, window, width);
  const parts = useMemo(() => segments(patches, window), [patches, window[0], window[1]]);
  const curveParts = useMemo(() => segments(patches.filter((patch) => patch.timeline.curves.length > 0), window), [patches, parts]);
  const groups = useMemo(() => rowsOf(patches), [patches]);
  const lanes = useMemo(() => groups.flatMap((group) => group.lanes), [groups]);
  const found = useMemo(
    () => (query.trim() === "" ? null : new Map<Patch, Uint8Array>(patches.map((patch) => [patch, matches(patch.names, query)]))),
    [patches, query]);
  const places = useMemo(() => stagePlaces(patches[0]!), [patches[0]]);
  const results = useMemo(() => (found ? findSlices(parts, lanes.map((row) => row.key), query) : []), [found, parts]);

  const move = (next: Range) => { setHover(null); setWindow(fit(next, limits)); };
  const zoomTo = (slice: SliceRef) => move(around(windowOf(slice), limits));
  const under = (event: MouseEvent, pixel: number): SliceRef | null => {
    const lane = document.elementFromPoint(event.clientX, event.clientY)?.closest<HTMLElement>("[data-lane]")?.dataset["lane"];
    if (lane === undefined || pixel < 0) return null;
    return sliceAt(parts, lane, gestures.timeOf(pixel), (reachPixels * (window[1] - window[0])) / Math.max(1, width));
  };
  const same = (a: SliceRef | null, b: SliceRef | null) => a?.patch === b?.patch && a?.lane === b?.lane && a?.index === b?.index;
  const gestures = useGestures({ window, limits, width, left: labelWidth }, move, (event) => {
    const slice = under(event, gestures.pixelOf(event));
    if (slice && same(slice, selected)) zoomTo(slice);
    else setSelected(slice);
  });
  const onKeyDown = useKeys({ window, limits, parts, selected, onWindow: move, onSelect: setSelected, onZoomTo: zoomTo });
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
               stages={places} onStage={(place) => move(around(place.window, limits))}
               details={run.details ?? []} onDetail={({ timeline }) => move(timeline.window.map((ns) => ns - run.timeline.run[0]) as Range)} />
      {theme && width > 0 && (
        <>
          <div style={{ marginLeft: `${labelWidth + 1}px` }}>
            <Minimap overview={patches[0]!} window={window} width={width} theme={theme} onWindow={move} />
          </div>
          <Lanes groups={groups} parts={parts} curveParts={curveParts} labelWidth={labelWidth} mark={gestures.mark}
                 style={{ window, width, height: 0, theme, colourBy, found, selected }} onKeyDown={onKeyDown}
                 handlers={{ ...gestures.handlers, onPointerMove: showTip, onPointerLeave: () => setHover(null) }} />
        </>
      )}
      {colourBy === "stage" && <StageLegend stages={places.map((place) => place.name)} />}
      {hover && <Tip x={hover.x} y={hover.y} width={fullWidth}><SliceText facts={factsOf(hover.slice)} /></Tip>}
      <p class="p-detail">
        {facts ? <><SliceText facts={facts} share={facts.duration / span} full />{" "}
          <span class="p-bar p-group"><button type="button" onClick={() => zoomTo(selected)}>zoom to it</button></span></>
          : <span class="p-muted">Click a slice for its details, click it again to zoom to it.</span>}
      </p>
      <Status window={window} whole={limits[1]} parts={parts} lanes={lanes} live={load !== null} loading={loading} error={error} />
      <p class="p-spoken" aria-live="polite">
        {facts ? inWords(facts) : `window from ${time(window[0])} to ${time(window[1])}`}
      </p>
      <TimelineTables parts={parts} lanes={lanes} window={window} lane={lanes.find((row) => row.key === selected?.lane) ?? null} />
    </div>
  );
}
