// Where GPU time, CPU time and bytes go by call path; of two runs, what changed.
import type { Flame, FlameDiff } from "../../data";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { column, type Column, DataTable } from "../../table";
import { clipped, change as changed, count, inUnit, percent, visible } from "../../text";
import { fillArea, prepare, shorten, type Theme, Tip, useTheme, useWidth } from "../canvas";
import { cssColour, divergingColour, textOn } from "../drawing";
import {
  ancestors, type Box, boxAt, byName, changeText, diffModelOf, fillOf, type FlameModel, kindNames, layout, lookOf, modelOf, relativeChange,
  search, type Side, type Step, textOf, type Tree, walk, weightNames, weightUnits,
} from "./model";

let models = 0;

export function FlameGraph({ flame, diff }: { flame?: Flame; diff?: FlameDiff }) {
  const model = useMemo(() => (diff ? diffModelOf(diff) : flame ? modelOf(flame) : null), [flame, diff]);
  const version = useMemo(() => ++models, [model]);  // another tree is another picture: zoomed to nothing, nothing searched
  if (!model || model.usable.length === 0) return <p>There are no call paths{flame?.why ? `: ${visible(flame.why)}` : "."}</p>;
  return <FlameView key={version} model={model} />;
}

const leastWidth = 0.6;
const steps: Record<string, Step> = { ArrowUp: "parent", ArrowDown: "child", ArrowLeft: "previous", ArrowRight: "next" };
interface Hover { x: number; y: number; node: number }

export function FlameView({ model }: { model: FlameModel }) {
  const { tree } = model;
  const [element, setElement, width] = useWidth<HTMLDivElement>();
  const theme = useTheme(element);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [weight, setWeight] = useState(model.usable[0] ?? 0);
  const [side, setSide] = useState<Side>("after");
  const [zoomed, setZoomed] = useState(0);
  const [focused, setFocused] = useState(-1);
  const [query, setQuery] = useState("");
  const [hover, setHover] = useState<Hover | null>(null);
  const { self, total } = model.weights(weight, side);
  const change = useMemo(() => model.change(weight), [model, weight]);
  const boxes = useMemo(() => layout(tree, total, zoomed, width, leastWidth), [tree, total, zoomed, width]);
  const match = useMemo(() => search(tree, total, query), [tree, total, query]);
  const height = rowHeight * (1 + boxes.reduce((most, box) => Math.max(most, box.depth), 0));
  useLayoutEffect(() => {
    const context = theme && canvas.current && prepare(canvas.current, width, height, theme.printing);
    const found = query.trim() === "" ? null : match.nodes;
    if (context) drawFlame(context, tree, boxes, { theme, zoomed, focused, found, change });
  }, [tree, boxes, theme, zoomed, focused, match, change, height]);

  const describe = (node: number): string => {
    const unit = weightUnits[weight]!, share = total[0]! > 0 ? `, ${percent(total[node]! / total[0]!)} of all` : "";
    const kind = lookOf(tree.kinds[node]!, tree.names[node]!).name;
    const name = node === 0 ? tree.names[node] : `${clipped(tree.names[node]!)}, ${kind}`;
    if (change) return `${name}: ${changeText(change.before[node]!, change.after[node]!, unit)}${share}`;
    return `${name}: ${inUnit(total[node]!, unit)} in total${share}, ${inUnit(self[node]!, unit)} in itself`;
  };
  const nodeAt = (event: MouseEvent): number => {
    const box = canvas.current!.getBoundingClientRect();
    return boxAt(boxes, event.clientX - box.left, Math.floor((event.clientY - box.top) / rowHeight))?.node ?? -1;
  };
  const zoomTo = (node: number) => { setZoomed(node); setFocused(node); setHover(null); };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = steps[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (step) setFocused(walk(tree, total, focused < 0 ? zoomed : focused, step));
    else if (event.key === "Enter" || event.key === " ") zoomTo(Math.max(0, focused));
    else if (event.key === "Escape") zoomTo(Math.max(0, tree.parent[zoomed]!));
    else if (event.key === "0" || event.key === "Home") zoomTo(0);
    else return;
    event.preventDefault();
  };
  const onPointerMove = (event: PointerEvent) => {
    const node = nodeAt(event), box = element!.getBoundingClientRect();
    setHover(node < 0 ? null : { node, x: event.clientX - box.left, y: event.clientY - box.top });
  };
  return (
    <div class="picture p-flame" ref={setElement} role="region"
         aria-label={model.differential ? "differential flame graph" : "flame graph"}>
      <FlameBar model={model} weight={weight} onWeight={setWeight} side={side} onSide={setSide} query={query} onQuery={setQuery}
                matched={match.nodes.size} share={total[0]! > 0 ? match.weight / total[0]! : 0} />
      <ol class="p-crumbs" aria-label="zoomed to">
        {[...ancestors(tree, zoomed), zoomed].map((node) => (
          <li key={node}><button type="button" onClick={() => zoomTo(node)}>{clipped(tree.names[node]!)}</button></li>
        ))}
      </ol>
      <div class="p-stage" tabIndex={0} role="application" onKeyDown={onKeyDown}
           aria-label={`${weightNames[weight]}: arrow keys to parent, child and siblings, Enter zooms, Escape out`}>
        <canvas ref={canvas} style={{ width: `${width}px`, height: `${height}px` }} aria-hidden="true"
                onPointerMove={onPointerMove} onPointerLeave={() => setHover(null)}
                onClick={(event) => { const node = nodeAt(event); if (node >= 0) zoomTo(node); }} />
      </div>
      {hover && <Tip x={hover.x} y={hover.y} width={width}>{describe(hover.node)}</Tip>}
      <p class="p-detail" aria-live="polite">{describe(focused >= 0 ? focused : zoomed)}</p>
      {theme && <KindLegend kinds={tree.kinds} theme={theme} neutral={change !== null} />}
      {change && <ChangeLegend full={change.full} />}
      {model.aggregated(weight) > 0 && (
        <p class="p-muted">{inUnit(model.aggregated(weight), weightUnits[weight]!)} of small paths are aggregated.</p>
      )}
      {model.why && <p class="p-muted">{visible(model.why)}</p>}
      <FlameTables model={model} weight={weight} side={side} zoomed={zoomed} />
    </div>
  );
}

interface FlameBarProps {
  model: FlameModel; weight: number; onWeight: (weight: number) => void; side: Side; onSide: (side: Side) => void;
  query: string; onQuery: (query: string) => void; matched: number; share: number;
}

export function FlameBar({ model, weight, onWeight, side, onSide, query, onQuery, matched, share }: FlameBarProps) {
  return (
    <div class="p-bar" role="toolbar" aria-label="flame graph">
      <span class="p-group" role="group" aria-label="width is">
        {model.usable.map((each) => (
          <button key={each} type="button" aria-pressed={each === weight} onClick={() => onWeight(each)}>{weightNames[each]}</button>
        ))}
      </span>
      {model.differential && (
        <span class="p-group" role="group" aria-label="width of the run">
          {(["before", "after"] as const).map((each) => (
            <button key={each} type="button" aria-pressed={each === side} onClick={() => onSide(each)}>width: {each}</button>
          ))}
        </span>
      )}
      <input type="search" placeholder="search frames" aria-label="search frames" value={query}
             onInput={(event) => onQuery(event.currentTarget.value)} />
      {query.trim() !== "" && <span role="status">{count(matched)} frames, {percent(share)} of {weightNames[weight]}</span>}
    </div>
  );
}

// neutral: colours say something else, kinds differ by pattern only.
export function KindLegend({ kinds, theme, neutral }: { kinds: string[]; theme: Theme; neutral: boolean }) {
  return (
    <ul class="p-legend" aria-label="kinds of frames">
      {kindNames(kinds).map((kind) => (
        <li key={kind} class="p-key"><Swatch kind={kind} theme={theme} neutral={neutral} />{lookOf(kind, "").name}</li>
      ))}
    </ul>
  );
}

function Swatch({ kind, theme, neutral }: { kind: string; theme: Theme; neutral: boolean }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useLayoutEffect(() => {
    const context = canvas.current && prepare(canvas.current, 16, 12, theme.printing);
    if (!context) return;
    const look = lookOf(kind, "");
    const [fill, ink] = neutral ? [cssColour(theme.diverging.none), textOn(theme.diverging.none)] : [fillOf(look, theme), textOf(look, theme)];
    fillArea(context, { x: 0, y: 0, width: 16, height: 12 }, fill, look.pattern, ink);
  }, [kind, theme, neutral]);
  return <canvas ref={canvas} style={{ width: "16px", height: "12px" }} aria-hidden="true" />;
}

export function ChangeLegend({ full }: { full: number }) {
  return (
    <span class="p-scale" role="img" aria-label={`colour: blue is ${percent(full)} or more less, orange ${percent(full)} or more more`}>
      −{percent(full)} <i /> +{percent(full)}, new
    </span>
  );
}

export const rowHeight = 19;
const fontSize = 11;

export interface Change { before: Float64Array; after: Float64Array; full: number }
export interface FlameStyle {
  theme: Theme; zoomed: number; focused: number;
  found: Set<number> | null;  // null: no search
  change: Change | null;      // null: colours are those of the kinds
}

export function drawFlame(context: CanvasRenderingContext2D, tree: Tree, boxes: Box[], style: FlameStyle): void {
  context.font = `${fontSize}px ${style.theme.font}`;
  context.textBaseline = "middle";
  for (const box of boxes) drawBox(context, tree, box, style);
}

function drawBox(context: CanvasRenderingContext2D, tree: Tree, { node, x, width, depth }: Box, style: FlameStyle): void {
  const look = lookOf(tree.kinds[node]!, tree.names[node]!);
  const [y, height] = [depth * rowHeight, rowHeight - 1];
  const wide = width > 3 ? width - 0.75 : width;
  const colour = style.change ? changeColour(node, style.change, style.theme) : null;
  const text = colour ? colour.text : textOf(look, style.theme);
  const dimmed = (style.found && !style.found.has(node)) || depth < tree.depth[style.zoomed]!;
  context.globalAlpha = dimmed ? 0.35 : 1;
  const fill = colour ? colour.fill : fillOf(look, style.theme);
  fillArea(context, { x, y, width: wide, height }, fill, look.pattern, text);
  const name = width > 26 ? shorten(labelOf(tree, node), width - 8, fontSize) : "";
  if (name !== "") {
    context.fillStyle = fill;  // the pattern stays out of the text
    if (look.pattern !== "plain") context.fillRect(x + 2, y + 2, Math.min(wide - 4, context.measureText(name).width + 4), height - 5);
    context.globalAlpha = 1;
    context.fillStyle = dimmed ? style.theme.text : text;
    context.fillText(name, x + 4, y + height / 2 + 0.5);
  }
  context.globalAlpha = 1;
  if (node === style.focused) {
    context.strokeStyle = style.theme.text;
    context.lineWidth = 2;
    context.strokeRect(x + 1, y + 1, Math.max(1, wide - 2), height - 2);
  }
}

function labelOf(tree: Tree, node: number): string {
  return tree.shortNames[node] || tree.names[node]!;
}

function changeColour(node: number, { before, after, full }: Change, theme: Theme): { fill: string; text: string } {
  const colour = divergingColour(theme.diverging, relativeChange(before[node]!, after[node]!), full);
  return { fill: cssColour(colour), text: textOn(colour) };
}

interface FlameTablesProps { model: FlameModel; weight: number; side: Side; zoomed: number }

const most = 40;
const frameColumns = [column("name", "frame", "name"), column("word", "kind", "kind")];

export function FlameTables(props: FlameTablesProps) {
  return props.model.differential ? <ChangeTable {...props} /> : <Top {...props} />;
}

function Top({ model, weight, side, zoomed }: FlameTablesProps) {
  const { tree } = model, weights = model.weights(weight, side), unit = weightUnits[weight]!, all = weights.total[0]!;
  const rows = (by: "self" | "total") => byName(tree, weights, zoomed).filter((row) => row.kind !== "root" && row[by] > 0)
    .sort((a, b) => b[by] - a[by]).slice(0, most)
    .map((row) => ({ ...row, name: clipped(row.name), kind: lookOf(row.kind, row.name).name, self_share: row.self / all,
                     total_share: row.total / all }));
  const columns: Column[] = [...frameColumns, column("measure", "self", "self", "", { unit }), column("share", "self of all", "self_share"),
    column("measure", "total", "total", "", { unit }), column("share", "total of all", "total_share")];
  const where = zoomed === 0 ? "" : ` inside ${tree.names[zoomed]}`;
  return (
    <>
      {(["self", "total"] as const).map((by) => (
        <DataTable key={by} rows={() => rows(by)} description={{ name: by, columns,
          title: `Most ${weightNames[weight]} in ${by === "self" ? "itself" : "total"}${where}` }} />
      ))}
    </>
  );
}

// Paths whose own weight changed most: no change is counted at its ancestors again.
function ChangeTable({ model, weight }: FlameTablesProps) {
  const { tree } = model, unit = weightUnits[weight]!;
  const before = model.weights(weight, "before").self, after = model.weights(weight, "after").self;
  const path = (node: number): string => {
    const names = [clipped(tree.names[node]!)];
    for (let at = tree.parent[node]!; at > 0; at = tree.parent[at]!) names.unshift(labelOf(tree, at));
    return names.join(" › ");
  };
  const rows = () => Array.from(before, (_, node) => node)
    .filter((node) => relativeChange(before[node]!, after[node]!) !== 0)
    .sort((a, b) => Math.abs(after[b]! - before[b]!) - Math.abs(after[a]! - before[a]!)).slice(0, most)
    .map((node) => ({ name: path(node), kind: lookOf(tree.kinds[node]!, "").name, before: before[node]!, after: after[node]!,
                      change: after[node]! - before[node]!, relative: changed(before[node]!, after[node]!) }));
  const columns = [...frameColumns, ...["before", "after", "change"].map((key) => column("measure", key, key, "", { unit })),
                   column("share", "relative", "relative")];
  return <DataTable rows={rows} description={{ name: "changes", columns, title: `Paths whose own ${weightNames[weight]} changed most` }} />;
}
