// Tables as the report itself describes them (libs/analyze/tables/): titles, formats, meanings and notes come with the data.
import { list, type Report, type Row } from "./data";
import { Empty } from "./parts";
import { cellText, type Column, type Description, TitledTable } from "./table";

// What is not said is not there.
interface DescribedColumn {
  key: string; title?: string; format: string; unit?: string; of?: string; estimate?: string; error?: string;
  if?: string; unless?: string; nonzero?: boolean; meaning: string;
}
interface Described {
  title?: string; titles?: string[]; meaning?: string; rows?: string; order?: string; columns: DescribedColumn[];
  above?: string[]; notes?: string[];
}

const descriptions = (report: Report): Record<string, Described> => report["tables"] ?? {};

// What "telemetry.stages[]" or "stages[]#times" names in the report.
export const at = (report: Report, path: string): unknown =>
  path.replace(/[[#].*/, "").split(".").reduce<Row | undefined>((place, key) => place?.[key], report);

// Conditions of columns and notes that hold for this run.
const holds = (report: Report, flag: string): boolean => (report["flags"] as string[] | undefined)?.includes(flag) ?? false;

// Markdown as plain text.
const plain = (text: string): string => text.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").replaceAll("`", "");

// "GPU %: of {coverage.gpu_ns}" with the value that the report has there.
function filled(report: Report, text: string): string {
  return plain(text).replace(/\{([\w.]+)\.(\w+)\}/g, (_, path: string, key: string) => {
    const column = descriptions(report)[path]?.columns.find((each) => each.key === key);
    return cellText((at(report, path) ?? {}) as Row, { key, title: "", format: column?.format ?? "text" });
  });
}

// "(if gpu) stage %: GPU time" without its condition; "" where that does not hold.
function ifApplies(report: Report, line: string): string {
  const [, word, flag = "", text = ""] = /^\((if|unless) (\w+)\) (.*)$/s.exec(line) ?? [null, "if", "", line];
  return flag && holds(report, flag) !== (word === "if") ? "" : filled(report, text);
}

const applying = (report: Report, lines: string[] = []): string[] => lines.map((line) => ifApplies(report, line)).filter(Boolean);

function columnOf(report: Report, described: DescribedColumn | undefined, first: boolean): Column | undefined {
  if (!described) return undefined;
  const { title, format, of, meaning } = described;
  return { ...described, title: title === "-" ? "" : filled(report, title ?? ""), format: first && format === "text" ? "name" : format,
           meaning: plain(meaning) + (of ? ` Of ${of}.` : ""), why: "why", bar: format === "percent" && /^(self_)?share$/.test(described.key) };
}

// By key, what the page draws in another way, and columns that only the page has; a text is the title of a described one.
export type Own = Record<string, string | Partial<Column>>;

// The columns with a title of all `paths`, each key once, then those of the page; null where the report describes nothing.
export function described(report: Report, paths: string[], own: Own = {}): Description | null {
  const tables = paths.map((path) => descriptions(report)[path]).filter((table) => table !== undefined);
  if (tables.length === 0) return null;
  const all = tables.flatMap((table) => table.columns)
    .filter((each) => (!each.if || holds(report, each.if)) && !(each.unless && holds(report, each.unless)));
  const changes = (key: string): Partial<Column> => (typeof own[key] === "string" ? { title: own[key] } : own[key] ?? {});
  const keys = new Set([...all.filter(({ title }) => title).map(({ key }) => key), ...Object.keys(own).filter((key) => changes(key).title)]);
  return {
    name: paths[0]!, title: applying(report, tables[0]!.titles)[0] ?? filled(report, tables[0]!.title ?? ""),
    ...(tables[0]!.order ? { order: `-${tables[0]!.order}` } : {}),
    columns: [...keys].map((key, index) =>
      ({ key, title: "", format: "text", ...columnOf(report, all.find((each) => each.key === key), index === 0), ...changes(key) })),
    note: tables.flatMap((table) => [...applying(report, table.above), ...applying(report, table.notes)]).join(" "),
  };
}

interface DescribedTableProps extends Partial<Omit<Description, "columns">> {
  report: Report; path: string;
  also?: string[];   // other descriptions of the same rows, whose columns follow
  rows?: Row[];      // if they are not those of `path`
  own?: Own;
  none?: string;     // what is said where there are no rows
}

// A table with its title above it. What the page gives itself stands for what is described.
export function DescribedTable({ report, path, also = [], rows = list(at(report, path)), own, none, ...more }: DescribedTableProps) {
  if (rows.length === 0) return none ? <Empty>{none}</Empty> : null;
  const found = described(report, [path, ...also], own);
  if (!found) return <Empty>{path}: the data of this page are from a version that did not describe its tables.</Empty>;
  return <TitledTable description={{ ...found, ...more }} rows={rows} />;
}

// Paths that have rows in this report, and a description with titles, whether or not a section knows them.
export const drawable = (report: Report): string[] => Object.keys(descriptions(report)).filter((path) =>
  /^[^[]+\[\](#|$)/.test(path) && descriptions(report)[path]!.columns.some((column) => column.title) && list(at(report, path)).length > 0);
