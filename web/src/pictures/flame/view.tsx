// Where GPU time, CPU time and bytes go by call path; of two runs, what changed.
import type { Flame, FlameDiff } from "../../data";
import { useMemo, useRef, useState } from "preact/hooks";
import { clipped, count, inUnit, percent, plural, visible } from "../../text";
import { Tip, useTheme, useWidth } from "../canvas";
import { ChangeLegend, FlameCanvas, KindLegend } from "./draw";
import {
  ancestors, changeText, choicesOf, type Choices, diffModelOf, type FlameModel, lookOf, modelOf, nodeAtPath, pathOf, search, type Shape, type Side,
  type Step, tooSmall, walk, type Weights, weightNames, weightUnits,
} from "./model";
import { type Grown, sandwich } from "./shape";
import { FlameTables } from "./tables";

let models = 0;

export function FlameGraph({ flame, diff }: { flame?: Flame; diff?: FlameDiff }) {
  const [shape, setShape] = useState<Shape>({ stage: "", layers: false, wrappers: false });
  const model = useMemo(() => (diff ? diffModelOf(diff, shape.stage) : flame ? modelOf(flame, shape) : null), [flame, diff, shape]);
  const choices = useMemo(() => choicesOf((diff ?? flame)!), [flame, diff]);
  const version = useMemo(() => ++models, [model]);  // of another tree only the path to the zoomed frame is the same
  const path = useRef<string[]>([]);
  const [weight, setWeight] = useState(-1);
  const [query, setQuery] = useState("");
  if (!model || model.tree.parent.length < 2 || (model.usable.length === 0 && shape.stage === ""))
    return <p>There are no call paths{flame?.why ? `: ${visible(flame.why)}` : "."}</p>;
  const shown = model.usable.includes(weight) ? weight : model.usable[0] ?? 0;
  return <FlameView key={version} model={model} path={path} shape={shape} onShape={setShape} choices={choices} query={query} onQuery={setQuery}
                    weight={shown} onWeight={setWeight} />;
}

const steps: Record<string, Step> = { ArrowUp: "parent", ArrowDown: "child", ArrowLeft: "previous", ArrowRight: "next" };
interface Hover { x: number; y: number; text: string }
interface FlameViewProps {
  model: FlameModel; path: { current: string[] }; shape: Shape; onShape: (shape: Shape) => void; choices: Choices;
  query: string; onQuery: (query: string) => void; weight: number; onWeight: (weight: number) => void;
}

export function FlameView({ model, path, shape, onShape, choices, query, onQuery, weight, onWeight }: FlameViewProps) {
  const { tree } = model;
  const [element, setElement, width] = useWidth<HTMLDivElement>();
  const theme = useTheme(element);
  const [side, setSide] = useState<Side>("after");
  const [zoomed, setZoomed] = useState(() => nodeAtPath(tree, path.current));
  const [focused, setFocused] = useState(-1);
  const [picked, setPicked] = useState(-1);  // whose callers and callees are shown; -1: all call paths
  const [hover, setHover] = useState<Hover | null>(null);
  const weights = model.weights(weight, side), { total } = weights;
  const change = useMemo(() => model.change(weight), [model, weight]);
  const match = useMemo(() => search(tree, total, query), [tree, total, query]);
  const both = useMemo(() => (picked < 0 ? null : sandwich(tree, weights, picked)), [tree, weights, picked]);
  const found = query.trim() === "" ? null : match.nodes;
  const describe = (node: number): string => {
    if (!change) return frameText({ tree, weights }, node, total[0]!, weight);
    const share = total[0]! > 0 ? `, ${percent(total[node]! / total[0]!)} of all` : "";
    return `${frameName(tree.names[node]!, node === 0 ? "" : tree.kinds[node]!)}: ${
      changeText(change.before[node]!, change.after[node]!, weightUnits[weight]!)}${share}`;
  };
  const zoomTo = (node: number) => { setZoomed(node); setFocused(node); setHover(null); path.current = pathOf(tree, node); };
  const isFolded = (node: number) => choices.layers && !shape.layers && tree.kinds[node] === "module" && tree.names[node]!.endsWith(".*");
  const click = (node: number) => { if (node === zoomed && isFolded(node)) onShape({ ...shape, layers: true }); else zoomTo(node); };
  const chosen = focused >= 0 ? focused : zoomed;
  const onKeyDown = (event: KeyboardEvent) => {
    const step = steps[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (step) setFocused(walk(tree, total, chosen, step));
    else if (event.key === "Enter" || event.key === " ") click(Math.max(0, chosen));
    else if (event.key === "Escape" && picked >= 0) setPicked(-1);
    else if (event.key === "Escape") zoomTo(Math.max(0, tree.parent[zoomed]!));
    else if (event.key === "0" || event.key === "Home") zoomTo(0);
    else if (event.key === "c" && chosen > 0 && !model.differential) setPicked(chosen);
    else return;
    event.preventDefault();
  };
  const tip = (text: (node: number) => string) => (node: number, event: PointerEvent | null) => {
    if (node < 0 || !event) return setHover(null);
    const box = element!.getBoundingClientRect();
    setHover({ text: text(node), x: event.clientX - box.left, y: event.clientY - box.top });
  };
  const canvas = theme && { width, theme, change: null, focused: -1, zoomed: 0 };
  const left = tooSmall(tree, total);
  return (
    <div class="picture p-flame" ref={setElement} role="region"
         aria-label={model.differential ? "differential flame graph" : "flame graph"}>
      <FlameBar model={model} weight={weight} onWeight={onWeight} side={side} onSide={setSide} query={query} onQuery={onQuery}
                matched={match.nodes.size} share={total[0]! > 0 ? match.weight / total[0]! : 0} shape={shape} onShape={onShape} choices={choices} />
      <ol class="p-crumbs" aria-label="zoomed to">
        {[...ancestors(tree, zoomed), zoomed].map((node) => (
          <li key={node}><button type="button" onClick={() => zoomTo(node)}>{clipped(tree.names[node]!)}</button></li>
        ))}
      </ol>
      <div class="p-stage" tabIndex={0} role="application" onKeyDown={onKeyDown}
           aria-label={`${weightNames[weight]}: arrow keys to parent, child and siblings, Enter zooms, c shows callers and callees, Escape out`}>
        {canvas && !both && <FlameCanvas {...canvas} tree={tree} total={total} zoomed={zoomed} focused={focused} found={found} change={change}
                                         onPick={click} onHover={tip(describe)} />}
        {canvas && both && (["callers", "callees"] as const).map((which) => (
          <>
            <p class="p-caption" key={`${which} name`}>{which === "callers" ? "Callers of" : "Callees of"} {clipped(tree.names[picked]!)}</p>
            <FlameCanvas {...canvas} key={which} tree={both[which].tree} total={both[which].weights.total} found={matching(both[which], query)}
                         upwards={which === "callers"} onHover={tip((node) => frameText(both[which], node, total[0]!, weight))}
                         onPick={(node) => setPicked(same(tree, both[which], node, picked))} />
          </>
        ))}
      </div>
      {hover && <Tip x={hover.x} y={hover.y} width={width}>{hover.text}</Tip>}
      <p class="p-detail" aria-live="polite">
        {both ? `${describe(picked)}; ${plural(both.places, "place")}, ${inUnit(both.callees.weights.total[0]!, weightUnits[weight]!)} together`
          : describe(chosen)}
      </p>
      <p class="p-bar">
        {both && <button type="button" onClick={() => setPicked(-1)}>back to all call paths</button>}
        {!both && chosen > 0 && !model.differential && (
          <button type="button" onClick={() => setPicked(chosen)} title="key c">callers and callees of this frame</button>
        )}
        {!both && isFolded(chosen) && <button type="button" onClick={() => onShape({ ...shape, layers: true })}>unfold its layers</button>}
      </p>
      {theme && <KindLegend tree={tree} total={total} theme={theme} neutral={change !== null} />}
      {change && <ChangeLegend full={change.full} />}
      <p class="p-muted">
        {choices.wrappers > 0 && (shape.wrappers ? "Framework wrappers are shown. " : `${plural(choices.wrappers, "framework wrapper")} hidden. `)}
        {left > 0 && `Frames too small to draw: ${percent(left / total[0]!)} of ${weightNames[weight]}.`}
        {left > 0 && weight === 0 && " Their kernels are drawn."}
      </p>
      <FlameTables model={model} weight={weight} side={side} zoomed={zoomed} />
    </div>
  );
}

const frameName = (name: string, kind: string): string => (kind === "" ? name : `${clipped(name)}, ${lookOf(kind).name}`);

function frameText({ tree, weights: { self, total } }: { tree: Grown["tree"]; weights: Weights }, node: number, all: number, weight: number): string {
  const unit = weightUnits[weight]!, share = all > 0 ? `, ${percent(total[node]! / all)} of all` : "";
  const name = frameName(tree.names[node]!, tree.kinds[node] === "root" ? "" : tree.kinds[node]!);
  return `${name}: ${inUnit(total[node]!, unit)} in total${share}, ${inUnit(self[node]!, unit)} in itself`;
}

const matching = ({ tree, weights }: Grown, query: string): Set<number> | null =>
  (query.trim() === "" ? null : search(tree, weights.total, query).nodes);

// Of a frame of a sandwich, one of the same name in the whole tree.
function same(tree: Grown["tree"], from: Grown, node: number, otherwise: number): number {
  const found = tree.names.findIndex((name, at) => at > 0 && name === from.tree.names[node] && tree.kinds[at] === from.tree.kinds[node]);
  return found < 0 ? otherwise : found;
}

interface FlameBarProps extends Pick<FlameViewProps, "model" | "shape" | "onShape" | "choices" | "query" | "onQuery" | "weight" | "onWeight"> {
  side: Side; onSide: (side: Side) => void; matched: number; share: number;
}

export function FlameBar({ model, weight, onWeight, side, onSide, query, onQuery, matched, share, shape, onShape, choices }: FlameBarProps) {
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
      {choices.stages.length > 1 && (
        <label class="p-group">stage
          <select value={shape.stage} onChange={(event) => onShape({ ...shape, stage: event.currentTarget.value })}>
            <option value="">all</option>
            {choices.stages.map((stage) => <option key={stage} value={stage}>{visible(stage)}</option>)}
          </select>
        </label>
      )}
      {choices.layers && <Switch on={shape.layers} onChange={(layers) => onShape({ ...shape, layers })}>unfold layers</Switch>}
      {choices.wrappers > 0 && <Switch on={shape.wrappers} onChange={(wrappers) => onShape({ ...shape, wrappers })}>framework wrappers</Switch>}
      <input type="search" placeholder="search frames" aria-label="search frames" value={query}
             onInput={(event) => onQuery(event.currentTarget.value)} />
      {query.trim() !== "" && <span role="status">{count(matched)} frames, {percent(share)} of {weightNames[weight]}</span>}
    </div>
  );
}

function Switch({ on, onChange, children }: { on: boolean; onChange: (on: boolean) => void; children: string }) {
  return (
    <label class="p-group">
      <input type="checkbox" checked={on} onChange={(event) => onChange(event.currentTarget.checked)} />{children}
    </label>
  );
}
