// Columns of tables over rows of the report, by key.
import { bandwidthText, bytesText, countText, flopsText, type Maybe, shareText, timeText, unknown } from "../format";
import type { Row } from "../view";
import { ShareBar } from "./bar";
import { Name, shown } from "./name";
import type { Column } from "./table";
import { Value } from "./unknown";

// why: the key that says why a value is unknown. blank: nothing stands where there is nothing.
interface Options { hint?: string; why?: string; blank?: boolean }

export function numeric(title: string, key: string, format: (value: Maybe) => string, { hint, why, blank }: Options = {}): Column<Row> {
  const show = (row: Row) => {
    if (blank && !row[key]) return "";
    return <Value text={format(row[key])} why={why ? row[why] : null} />;
  };
  return { title, value: (row) => row[key], show, number: true, ...(hint ? { hint } : {}) };
}

export const time = (title: string, key: string, options?: Options) => numeric(title, key, timeText, options);
export const count = (title: string, key: string, options?: Options) => numeric(title, key, countText, options);
export const bytes = (title: string, key: string, options?: Options) => numeric(title, key, bytesText, options);
export const share = (title: string, key: string, options?: Options) => numeric(title, key, shareText, options);
export const flops = (title: string, key: string, options?: Options) => numeric(title, key, flopsText, options);
export const bandwidth = (title: string, key: string, options?: Options) => numeric(title, key, bandwidthText, options);

export const bar = (title: string, key: string, hint: string): Column<Row> =>
  ({ title, value: (row) => row[key], show: (row) => <BarAndText share={row[key]} />, number: true, hint });

export function BarAndText({ share: value }: { share: Maybe }) {
  return <><ShareBar share={value} /><span class="percent">{shareText(value)}</span></>;
}

// A word or two, which stay together.
export const word = (title: string, key: string): Column<Row> =>
  ({ title, value: (row) => row[key], show: (row) => <span class="word">{shown(row[key] ?? unknown)}</span> });
export const name = (title: string, key: string): Column<Row> =>
  ({ title, value: (row) => row[key], show: (row) => <Name text={row[key] ?? ""} /> });
// Sentences.
export const long = (title: string, key: string): Column<Row> =>
  ({ title, value: (row) => row[key], show: (row) => <span class="long">{shown(row[key] ?? "")}</span> });
