import { useLayoutEffect, useRef } from "preact/hooks";
import { fillArea, prepare } from "../canvas";
import { cssColour, textOn } from "../colours";
import type { Theme } from "../theme";
import { percent } from "../units";
import { fillOf, kindNames, lookOf, textOf } from "./look";

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
