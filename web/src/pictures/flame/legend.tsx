import { useLayoutEffect, useRef } from "preact/hooks";
import { patternOf, prepare } from "../canvas";
import type { Theme } from "../theme";
import { percent } from "../units";
import { fillOf, kindNames, lookOf, textOf } from "./look";

export function KindLegend({ kinds, theme }: { kinds: string[]; theme: Theme }) {
  return (
    <ul class="p-legend" aria-label="kinds of frames">
      {kindNames(kinds).map((kind) => (
        <li key={kind} class="p-key"><Swatch kind={kind} theme={theme} />{lookOf(kind, "").name}</li>
      ))}
    </ul>
  );
}

function Swatch({ kind, theme }: { kind: string; theme: Theme }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useLayoutEffect(() => {
    const context = canvas.current && prepare(canvas.current, 16, 12, theme.printing);
    if (!context) return;
    const look = lookOf(kind, "");
    const pattern = patternOf(context, look.pattern, textOf(look, theme));
    context.fillStyle = fillOf(look, theme);
    context.fillRect(0, 0, 16, 12);
    if (pattern) { context.fillStyle = pattern; context.fillRect(0, 0, 16, 12); }
  }, [kind, theme]);
  return <canvas ref={canvas} style={{ width: "16px", height: "12px" }} aria-hidden="true" />;
}

export function ChangeLegend({ full }: { full: number }) {
  return (
    <span class="p-scale" role="img" aria-label={`colour: blue is ${percent(full)} or more less, orange ${percent(full)} or more more`}>
      −{percent(full)} <i /> +{percent(full)}, new
    </span>
  );
}
