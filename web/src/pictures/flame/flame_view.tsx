import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { visible } from "../../visible";
import { prepare } from "../canvas";
import { clipped } from "../short_name";
import { useTheme } from "../theme";
import { Tip } from "../tip";
import { inUnit, percent } from "../units";
import { useWidth } from "../use_width";
import { changeText } from "./change";
import { drawFlame, rowHeight } from "./draw";
import { FlameBar } from "./flame_bar";
import { ChangeLegend, KindLegend } from "./legend";
import { lookOf } from "./look";
import { type FlameModel, type Side, weightNames, weightUnits } from "./model";
import { FlameTables } from "./tables";
import { ancestors, boxAt, layout, search, type Step, walk } from "./tree";

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
      {model.putTogether(weight) > 0 && (
        <p class="p-muted">{inUnit(model.putTogether(weight), weightUnits[weight]!)} of small paths are put together.</p>
      )}
      {model.why && <p class="p-muted">{visible(model.why)}</p>}
      <FlameTables model={model} weight={weight} side={side} zoomed={zoomed} />
    </div>
  );
}
