// Requests over time: a lane for each, by arrival. Zoomed out, several share a row; `llmprof view` reads again as you zoom.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { RequestData, RequestLanes } from "../../data";
import { count, moment, plural, time, visible } from "../../text";
import { prepare, type Theme, Tip, useTheme, useWidth } from "../canvas";
import { clamp, type Range } from "../drawing";
import { around, askFor, fit, pan, useGestures, useHoverKeys, windowKey, zoom } from "../timeline/input";
import { axisHeight, TimeAxis } from "../timeline/lanes";
import { drawRows, leastLane } from "./draw";
import { filters, hasFailed, inView, type Lane, lanesOf, lookOf, packed, partAt } from "./model";

export type Ask = ((window: Range, width: number) => Promise<RequestLanes>) | null;  // of the run's clock; null: only the file

const mostHeight = 420, lineHeight = 16, reachPixels = 4;

interface Props { data: RequestData; ask: Ask; selected: number | null; onSelect: (id: number | null) => void; onLanes: (lanes: Lane[]) => void }

export function RequestGantt({ data, ask, selected, onSelect, onLanes }: Props) {
  const [element, setElement, width] = useWidth<HTMLDivElement>();
  const theme = useTheme(element), scroller = useRef<HTMLDivElement>(null);
  const limits: Range = [0, Math.max(1, (data.span[1] - data.span[0]) * 1.01)];
  const [wanted, setWindow] = useState<Range>(limits);
  const window = fit(wanted, limits);
  const [filter, setFilter] = useState("all");
  const [query, setQuery] = useState("");
  const [each, setEach] = useState(false);  // a line for each, scrolled
  const [top, setTop] = useState(0);
  const [hover, setHover] = useState<{ x: number; y: number; lane: Lane; at: number } | null>(null);
  const left = clamp(Math.round(width * 0.16), 72, 190);
  const { lanes: all, whole, answer, loading, error } = useLanes(data, ask, window, limits, width);
  useEffect(() => onLanes(all), [all]);
  const lanes = useMemo(() => inView(all, window, filter, query), [all, window[0], window[1], filter, query]);
  const fits = lanes.length * lineHeight <= mostHeight, one = fits || each, perPixel = (window[1] - window[0]) / Math.max(1, width - left);
  const rows = useMemo(() => (one ? lanes.map((lane) => [lane]) : packed(lanes, perPixel)), [lanes, one, perPixel]);
  const lane = one ? lineHeight : Math.min(lineHeight, mostHeight / Math.max(1, rows.length));
  const height = Math.max(lineHeight * 2, Math.min(mostHeight, rows.length * lane));
  const move = (next: Range) => { setHover(null); setWindow(fit(next, limits)); };
  const at = lanes.findIndex(({ id }) => id === selected);
  const under = (event: MouseEvent): Lane | null => {
    const y = event.clientY - scroller.current!.getBoundingClientRect().top + (one ? scroller.current!.scrollTop : 0);
    const row = rows[Math.floor(y / lane)] ?? [], at = gestures.timeOf(gestures.pixelOf(event)), reach = reachPixels * perPixel;
    return one ? row[0] ?? null : row.find(({ begin, end }) => begin - reach <= at && at <= end + reach) ?? null;
  };
  const gestures = useGestures({ window, limits, width: Math.max(1, width - left), left }, move, move, (event) => onSelect(under(event)?.id ?? null));
  const zoomTo = (to: Lane) => move(around([to.begin, to.end], limits));
  const step = (by: number) => {
    const next = lanes[clamp(at < 0 ? 0 : at + by, 0, lanes.length - 1)];
    if (next) onSelect(next.id);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const next = windowKey(event.key, keys);
    if (next) move(next);
    else if (event.key === "ArrowDown") step(1);
    else if (event.key === "ArrowUp") step(-1);
    else if (event.key === "Enter" && lanes[at]) zoomTo(lanes[at]!);
    else if (event.key === "Escape" && selected !== null) onSelect(null);
    else return;
    event.preventDefault();
  };
  const nothing = () => undefined;
  const keys = { window, limits, parts: [], selected: null, onWindow: move, onSelect: nothing, onZoomTo: nothing, marked: false, onMark: nothing };
  useHoverKeys(element, keys);
  useEffect(() => {  // what was selected elsewhere comes into view
    const now = [...all, ...whole].find(({ id }) => id === selected), box = scroller.current;
    if (now && (now.end < window[0] || now.begin > window[1])) zoomTo(now);
    if (each && box && at >= 0 && (at * lane < box.scrollTop || (at + 1) * lane > box.scrollTop + height)) box.scrollTop = at * lane - height / 2;
  }, [selected]);
  const states = data.states.filter((state) => all.some(({ parts }) => parts.some((part) => part.state === state)));
  return (
    <div class="picture p-requests p-timeline" ref={setElement} role="region" aria-label="requests over time">
      <Toolbar onZoom={(factor) => move(zoom(window, (window[0] + window[1]) / 2, factor, limits))} onReset={() => move(limits)}
               onPan={(share) => move(pan(window, share * (window[1] - window[0]), limits))}
               {...{ all, fits, each, setEach, filter, setFilter, query, setQuery }} />
      {theme && width > 0 && (
        <div class="p-lanes" tabIndex={0} role="application" aria-label={`${plural(lanes.length, "request")} over time: arrow keys select one`}
             onKeyDown={onKeyDown} {...gestures.handlers} onPointerLeave={() => setHover(null)}
             onWheel={(event) => { if (!each || event.ctrlKey || event.metaKey || event.shiftKey) gestures.handlers.onWheel(event); }}
             onPointerMove={(event) => {
               gestures.handlers.onPointerMove(event);
               if (event.pointerType === "touch" || gestures.dragging.current) return setHover(null);
               const found = under(event), box = element!.getBoundingClientRect(), pixel = gestures.pixelOf(event);
               if (!found || pixel < 0) return setHover(null);
               setHover({ x: event.clientX - box.left, y: event.clientY - box.top, lane: found, at: gestures.timeOf(pixel) });
             }}>
          <div class="p-row p-axis-row" style={{ height: `${axisHeight}px` }}>
            <div class="p-label" style={{ width: `${left}px` }}>{one ? "request" : "requests"}</div>
            <TimeAxis window={window} width={Math.max(0, width - left - 2)} />
          </div>
          {gestures.mark && <div class="p-select" style={{ left: `${left + gestures.mark[0]}px`,
                                                           width: `${gestures.mark[1] - gestures.mark[0]}px` }} />}
          <div ref={scroller} class="p-scroller" style={{ height: `${height}px` }} onScroll={(event) => setTop(event.currentTarget.scrollTop)}>
            <Drawn rows={rows} states={data.states} top={one ? top : 0} width={width - 2}
                   named={one} {...{ window, left, height, lane, theme, selected }} />
            <div style={{ height: `${Math.max(0, Math.round(rows.length * lane - height))}px` }} />
          </div>
        </div>
      )}
      <Legend states={states} lanes={all} />
      {hover && <Tip x={hover.x} y={hover.y} width={width}><LaneText {...hover} /></Tip>}
      <Status {...{ data, answer, window, lanes, lane, loading, error, live: ask !== null, whole: limits[1] }} shared={!one} />
      <p class="p-spoken" aria-live="polite">{lanes[at] ? inWords(lanes[at]!) : `window from ${time(window[0])} to ${time(window[1])}`}</p>
    </div>
  );
}

interface ToolbarProps {
  onZoom: (factor: number) => void; onPan: (share: number) => void; onReset: () => void; all: Lane[]; fits: boolean;
  each: boolean; setEach: (each: boolean) => void; filter: string; setFilter: (filter: string) => void;
  query: string; setQuery: (query: string) => void;
}

function Toolbar({ onZoom, onPan, onReset, all, fits, each, setEach, filter, setFilter, query, setQuery }: ToolbarProps) {
  return (
    <div class="p-bar" role="toolbar" aria-label="requests over time">
      <span class="p-group">
        <button type="button" onClick={() => onZoom(0.5)} aria-label="zoom in">+</button>
        <button type="button" onClick={() => onZoom(2)} aria-label="zoom out">−</button>
        <button type="button" onClick={() => onPan(-0.5)} aria-label="earlier">←</button>
        <button type="button" onClick={() => onPan(0.5)} aria-label="later">→</button>
        <button type="button" onClick={onReset}>all of it</button>
      </span>
      <label class="p-group">show
        <select value={filter} onChange={(event) => setFilter(event.currentTarget.value)}>
          {Object.entries(filters).filter(([name, { holds }]) => name === "all" || all.some(holds))
            .map(([name, { text }]) => <option key={name} value={name}>{text}</option>)}
        </select>
      </label>
      {!fits && <button type="button" aria-pressed={each} onClick={() => setEach(!each)}>a line for each</button>}
      <input type="search" placeholder="search requests" aria-label="search requests by name" value={query}
             onInput={(event) => setQuery(event.currentTarget.value)} />
    </div>
  );
}

interface DrawnProps {
  rows: Lane[][]; states: string[]; top: number; window: Range; left: number; width: number; height: number; lane: number;
  theme: Theme; selected: number | null; named: boolean;
}

function Drawn({ rows, states, theme, ...style }: DrawnProps) {
  const canvas = useRef<HTMLCanvasElement>(null), { width, height } = style;
  useLayoutEffect(() => {
    const context = canvas.current && prepare(canvas.current, width, height, theme.printing);
    if (!context) return;
    const read = getComputedStyle(canvas.current!);
    const colours = Object.fromEntries(states.map((state) => [state, read.getPropertyValue(lookOf(state).variable).trim()]));
    context.font = `11px ${theme.font}`;
    context.textBaseline = "middle";
    drawRows(context, rows, states, { ...style, theme, colours });
  }, [rows, states, theme, style.window[0], style.window[1], width, height, style.left, style.lane, style.top, style.named, style.selected]);
  return <canvas ref={canvas} class="p-stays" style={{ width: `${width}px`, height: `${height}px` }} aria-hidden="true" />;
}

const settleMs = 100;

// What the file has, or what the server answered for the window in view.
function useLanes(data: RequestData, ask: Ask, window: Range, limits: Range, width: number) {
  const [answer, setAnswer] = useState<RequestLanes | null>(null);
  const [loading, setLoading] = useState(false);
  const [error, setError] = useState("");
  const origin = data.span[0], question = useRef(0), span = window[1] - window[0];
  const serves = ({ window: [from, to] }: RequestLanes) =>
    from - origin <= window[0] && to - origin >= Math.min(window[1], data.span[1] - origin) && to - from <= 2.2 * span;
  const known = answer && serves(answer) ? answer : null, needed = ask !== null && width > 0 && !known && !serves(data);
  useEffect(() => {
    if (!needed) return;
    const mine = ++question.current, [from, to] = askFor(window, limits);
    const timer = setTimeout(() => {
      setLoading(true);
      const done = (found: RequestLanes | null, reason: string) => {
        if (mine !== question.current) return;
        if (found) setAnswer(found);
        setLoading(false);
        setError(reason);
      };
      ask!([from + origin, to + origin], (width * (to - from)) / span)
        .then((found) => done(found, ""), (reason: unknown) => done(null, String(reason)));
    }, settleMs);
    return () => clearTimeout(timer);
  }, [needed, ask, window[0], window[1], width]);
  const whole = useMemo(() => lanesOf(data), [data]);
  const lanes = useMemo(() => (known ? lanesOf(known) : whole), [known, whole]);
  return { lanes, whole, answer: known, loading, error };
}

function Legend({ states, lanes }: { states: string[]; lanes: Lane[] }) {
  return (
    <ul class="p-legend" aria-label="what requests wait for">
      {states.map((state) => {
        const look = lookOf(state);
        return (
          <li key={state} class="p-key" title={look.meaning}>
            <span class={look.hatched ? "p-swatch p-hatched" : "p-swatch"}
                  style={{ backgroundColor: `var(${look.variable})`, opacity: look.faint ? 0.35 : 1 }} />
            {look.text}
          </li>
        );
      })}
      {lanes.some(({ row }) => row["steps"] > 0) && <li class="p-key"><span class="p-line" aria-hidden="true" />between steps</li>}
      <li class="p-key"><span aria-hidden="true">◆</span>first token</li>
      {lanes.some(({ row }) => row["client"]) && <li class="p-key"><span aria-hidden="true">◇</span>first token at the client</li>}
      {lanes.some(hasFailed) && <li class="p-key"><span class="p-failed" aria-hidden="true">✕</span>failed</li>}
    </ul>
  );
}

const stepsText = (steps: number): string => (steps > 0 ? `, ${plural(steps, "step")}` : "");

function LaneText({ lane, at }: { lane: Lane; at: number }) {
  const part = partAt(lane, at), look = part && lookOf(part.state);
  return (
    <>
      <b>{visible(lane.name)}</b>{hasFailed(lane) && `, ${visible(String(lane.row["error"] ?? lane.row["status"]))}`}<br />
      {part && look ? <>{look.text}{stepsText(part.steps)}: {time(part.end - part.begin)}
        {part.stalled > 0 && `, of it ${time(part.stalled)} by prompts of others`}
        <br /><span class="p-muted">{look.meaning}, from {moment(part.begin, part.end - part.begin)}</span></>
        : <span class="p-muted">{at < lane.begin ? "not there yet" : at > lane.end ? "done" : "between steps"}</span>}
    </>
  );
}

function inWords({ name, row }: Lane): string {
  const first = typeof row["ttft_ns"] === "number" ? `, first token after ${time(row["ttft_ns"])}` : "";
  return `${visible(name)}, arrives at ${time(row["arrival_ns"])}${first}, ${visible(String(row["status"] ?? "its end was not seen"))}`;
}

interface StatusProps {
  data: RequestData; answer: RequestLanes | null; window: Range; lanes: Lane[]; lane: number; loading: boolean; error: string;
  live: boolean; whole: number; shared: boolean;
}

function Status({ data, answer, window, lanes, lane, loading, error, live, whole, shared }: StatusProps) {
  const now = answer ?? data, drawn = now.rows["id"]?.length ?? 0, span = window[1] - window[0];
  return (
    <div class="p-muted">
      {time(span)}{span < whole && <> of {time(whole)}</>} in view, {plural(lanes.length, "request")}
      {shared && ", one after the other in as many rows as are there at once"}
      {lane < leastLane && <>; up to {Math.ceil(1 / lane)} rows share a line of pixels, whose colour is the mean of what they do</>}.
      {drawn < now.in_window && (
        <> Of {plural(now.in_window, "request")}{answer ? " around this window" : ""}, {count(drawn)} are drawn: those that failed, those
          with the longest TTFT and E2E, and of the others every few{live ? "; zoom in to see all" : <>; <code>llmprof view</code> has all</>}.</>
      )}
      {lanes.length > 0 && now.pixel_ns > 1000 && <> What is shorter than {time(now.pixel_ns)} is merged, drawn as what took most of its time.</>}
      {" "}Click one for its details.
      {loading && " Asking for details …"}
      {error !== "" && <span role="alert"> No details: {error}</span>}
      <details class="p-noprint">
        <summary>Keys and gestures</summary>
        ↑ ↓ select a request, Enter zooms to it, Esc lets it go; w s or + − zoom, a d or ← → move, 0 all. Drag zooms to a part of the time,
        Shift and drag moves; the wheel zooms with Ctrl or once the picture was clicked; two fingers zoom.
      </details>
    </div>
  );
}
