// Readings of devices and processes over the run, one small chart each.
import { visible } from "../visible";
import { LineChart } from "./charts/line_chart";
import { extentOf, summary } from "./charts/series";
import "./pictures.css";
import type { TelemetryCurvesProps } from "./props";

export function TelemetryCurves({ curves }: TelemetryCurvesProps) {
  if (curves.length === 0) return <p>No readings over time were recorded.</p>;
  const xs = extentOf(curves.flatMap((curve) => curve.ts));
  return (
    <>
      {curves.map(({ group, name, unit, ts, low, high }) => {
        const series = { name: visible(name), x: ts, y: high, low };
        return (
          <LineChart key={`${group} ${name}`} title={`${visible(group)}: ${visible(name)}`}
                     caption={`${visible(group)}, ${summary([series], unit)}`} series={[series]} unit={unit} xs={xs} height={90} />
        );
      })}
    </>
  );
}
