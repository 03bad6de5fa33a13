// Every table of the page: described by its columns, sorted by any of them, filtered by text, the first rows at first.
import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Row, View } from "./data";
import { Copyable, Name, ShareBar, shown, usePrinting, Value } from "./parts";
import { bytesText, count, countText, digits, grouped, measureText, plural, shareText, timeText, unknown } from "./text";

// Formats are those of the report's descriptions (libs/report/table.cpp): "ns", "count", "percent", … without a unit
// where the title says it. For columns of the page itself there are more: name: of code. word: a word or two, which stay
// together. sentence: gets a wide column. share: a fraction with "%". measure: in `unit`, or in the unit that the row names.
export interface Column {
  key: string; title: string; format: string;
  unit?: string | null;
  meaning?: string;  // with its denominator
  why?: string;      // the key that says why a value is unknown
  estimate?: string | null; error?: string | null;  // keys of what is estimated of it, and of its error
  nonzero?: boolean; // 0 is unknown
  bar?: boolean;     // a fraction with a bar beside it
  show?: (row: Row) => ComponentChildren;  // what no format can draw
}
export interface Description {
  name: string; title: string; columns: Column[];
  note?: string;
  order?: string;       // the key that rows are sorted by at first, with "-" before it downwards; none: as they come
  rows_shown?: number;  // before "show all"
}
// A column in one line, for the tables that the page describes itself.
export const column = (format: string, title: string, key: string, meaning = "", more: Partial<Column> = {}): Column =>
  ({ key, title, format, ...(meaning ? { meaning } : {}), ...more });

interface Order { key: string; down: boolean }

const printedRows = 50, filteredFrom = 6;
const texts: Record<string, "name" | "word" | "text" | "sentence"> = {
  name: "name", kernel: "name", file: "name", first: "name", first_and_more: "name", stack: "name", ranges: "name", short: "name",
  word: "word", stage: "word", bound: "word", kind: "word", right: "word", text: "text", sentence: "sentence",
};
const isNumber = ({ format }: Column): boolean => texts[format] === undefined;

const threeDigits = (value: number): string => (Math.abs(value) >= 1000 ? grouped(Math.round(value)) : digits(value));
const numbers: Record<string, (value: number, row: Row, column: Column) => string> = {
  ns: timeText,
  s: (value) => timeText(value * 1e9),
  bytes: bytesText,
  gain: (value) => (value < 0 ? "" : "+") + bytesText(value),
  count: countText, whole: (value) => countText(Math.round(value)), unknown: countText,
  amount: count,
  percent: (value) => (value > 0 && value < 0.0005 ? "<0.1" : (value * 100).toFixed(1)),
  share: shareText,
  number: threeDigits,
  ratio: (value) => value.toFixed(1), times: (value) => `${value.toFixed(2)} x`,
  gauge: (value, { unit }) => (unit === "share" ? shareText(value) : digits(value)),
  measure: (value, row, { unit }) => measureText(value, unit ?? String(row["unit"] ?? "")),
  value: (value, row) => measureText(value, String(row["unit"] ?? "")),
  ratio3: (value) => value.toFixed(3),
};
const unknowns: Record<string, string> = {
  stage: "(none)", stack: "(no stack)", ranges: "(no range)", unknown: "unknown", name: "", sentence: "", first: "", first_and_more: "", file: "",
};

// "12.3 ± 0.4": the error decides how many digits there are.
function withError(value: number, error: number): string {
  const decimals = Math.min(6, Math.max(0, Math.ceil(-Math.log10(error))));
  return `${value.toFixed(decimals)} ± ${error.toFixed(decimals)}`;
}

function text(format: string, value: string): string {
  const [first = "", ...more] = value.split(",");
  if (format === "first" || (format === "first_and_more" && more.length === 0)) return first;
  if (format === "first_and_more") return `${first} +${more.length}`;
  if (format === "file") return value.slice(value.lastIndexOf("/") + 1);
  return format === "bound" && value === "unknown" ? unknown : value;
}

// "work.flops": of an object inside the row.
const valueOf = (row: Row, key: string): unknown => (key in row ? row[key] : key.split(".").reduce<Row | undefined>((at, part) => at?.[part], row));

// What is not there at all is blank; null is unknown.
export function cellText(row: Row, column: Column): string {
  const { key, format, estimate, error } = column, value = valueOf(row, key);
  if (value === undefined) return "";
  if (value === null) return unknowns[format] ?? unknown;
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "object" && format === "quantile") return quantileText(value as Row);
  if (typeof value !== "number") return text(format, String(value));
  if (!Number.isFinite(value) || (column.nonzero && value === 0)) return unknown;
  const beside = (other: string | null | undefined): number => Number((other && row[other]) || 0);
  if (beside(error) > 0) return withError(value, beside(error));
  return (beside(estimate) > 0 ? "~" : "") + (isNumber(column) ? (numbers[format] ?? threeDigits)(value, row, column) : String(value));
}

// Interpolated in a bucket, with its bounds.
function quantileText({ value_s, low_s, high_s }: Row): string {
  const [value, low, high] = [value_s, low_s, high_s].map((seconds: unknown) => timeText(Number(seconds) * 1e9));
  return high_s === null ? `over ${low}` : `${value} (${low} to ${high})`;
}

function cell(row: Row, column: Column): ComponentChildren {
  if (column.show) return column.show(row);
  const drawn = cellText(row, column);
  switch (texts[column.format]) {
    case "name": return <Name text={drawn} full={valueOf(row, column.key)} />;
    case "word": return <span class="word">{shown(drawn)}</span>;
    case "text": return shown(drawn);
    case "sentence": return <span class="long">{shown(drawn)}</span>;
    default:
      if (column.bar) return <><ShareBar share={valueOf(row, column.key) as number} /><span class="percent">{drawn}</span></>;
      return <Value text={drawn} why={column.why ? row[column.why] : null} />;
  }
}

export function Table({ description, rows }: { description: Description; rows: Row[] }) {
  const { title, note, columns, rows_shown: first = 15 } = description;
  const printing = usePrinting();
  const [order, setOrder] = useState<Order | null>(() => orderOf(description.order));
  const [all, setAll] = useState(false);
  const [text, setText] = useState("");
  const found = useMemo(() => sorted(matching(rows, columns, text), order), [rows, columns, text, order]);
  if (rows.length === 0) return null;
  const limit = printing ? printedRows : all ? found.length : first;
  const left = found.length - limit;
  return (
    <div class="table">
      {rows.length >= filteredFrom && rows.length > first / 2 &&
        <Filter text={text} setText={setText} found={found.length} of={rows.length} />}
      <div class="scroll" tabIndex={0} role="region" aria-label={title || description.name}>
        <table>
          {title && <caption class="spoken">{title}</caption>}
          <thead>
            <tr>{columns.map((column) => <Head key={column.key} column={column} order={order} setOrder={setOrder} />)}</tr>
          </thead>
          <tbody>
            {found.slice(0, limit).map((row, at) => (
              <tr key={at}>{columns.map((column, index) => <Cell key={column.key} column={column} row={row} head={index === 0} />)}</tr>
            ))}
          </tbody>
        </table>
      </div>
      {note && <p class="dim">{note}</p>}
      {left > 0 && printing && <p class="more">{plural(left, "more row")} in the page itself.</p>}
      {!printing && found.length > first && (
        <button type="button" class="more" aria-expanded={all} onClick={() => setAll(!all)}>
          {all ? `Show the first ${first}` : `Show all ${found.length}`}
        </button>
      )}
    </div>
  );
}

// With its title, if any, above it; nothing where there are no rows.
export function TitledTable({ description, rows }: { description: Description; rows: Row[] }) {
  return rows.length > 0 ? <>{description.title && <h3>{description.title}</h3>}<Table description={description} rows={rows} /></> : null;
}

// The numbers of a picture: the alternative for readers of the screen, and for copying. `rows` is asked only when it is open.
export function DataTable({ description, rows }: { description: Description; rows: () => Row[] }) {
  const [open, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen((event.currentTarget as HTMLDetailsElement).open)}>
      <summary>{description.title}</summary>
      {open && <Table description={{ rows_shown: 1000, ...description, title: "" }} rows={rows()} />}
    </details>
  );
}

interface FilterProps { text: string; setText: (text: string) => void; found: number; of: number }
export function Filter({ text, setText, found, of }: FilterProps) {
  return (
    <p class="filter">
      <label>Filter <input type="search" value={text} onInput={(event) => setText(event.currentTarget.value)} /></label>
      {" "}<span role="status">{text ? `${found} of ${of}` : ""}</span>
    </p>
  );
}

interface HeadProps { column: Column; order: Order | null; setOrder: (order: Order) => void }
export function Head({ column, order, setOrder }: HeadProps) {
  const mine = order?.key === column.key ? order : null;
  const sort = () => setOrder({ key: column.key, down: mine ? !mine.down : isNumber(column) });
  return (
    <th scope="col" class={isNumber(column) ? "number" : ""} aria-sort={mine ? (mine.down ? "descending" : "ascending") : "none"}>
      <button type="button" onClick={sort} title={column.meaning}>
        {column.title}<span class="order" aria-hidden="true">{mine ? (mine.down ? "▼" : "▲") : ""}</span>
      </button>
    </th>
  );
}

export function Cell({ column, row, head = false }: { column: Column; row: Row; head?: boolean }) {
  const content = cell(row, column), name = isNumber(column) ? "number" : "";
  return head ? <th scope="row" class={name}>{content}</th> : <td class={name}>{content}</td>;
}

const orderOf = (text: string | undefined): Order | null =>
  (text ? { key: text.replace(/^-/, ""), down: text.startsWith("-") } : null);

export function matching(rows: Row[], columns: Column[], text: string): Row[] {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return rows;
  return rows.filter((row) => columns.some((column) => !isNumber(column) && String(valueOf(row, column.key) ?? "").toLowerCase().includes(wanted)));
}

// Unknown values come last, whichever way it is sorted.
export function sorted(rows: Row[], order: Order | null): Row[] {
  if (!order) return rows;
  const sign = order.down ? -1 : 1;
  return [...rows].sort((one, other) => {
    const a = valueOf(one, order.key) ?? null, b = valueOf(other, order.key) ?? null;
    if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
    if (typeof a === "number" && typeof b === "number") return sign * (a - b);
    return sign * String(a).localeCompare(String(b), "en", { numeric: true });
  });
}

// The rows behind a number: from the server where there is one, else the query to run.
export function Rows({ view, sql }: { view: View; sql: string }) {
  const command = `llmprof query ${quoted(view.data.name)} ${quoted(sql)}`;
  return (
    <details class="rows">
      <summary>{view.source.live ? "rows" : "query"}</summary>
      <Copyable text={command} what="the query" />
      {view.source.live && <LiveRows view={view} sql={sql} />}
    </details>
  );
}

// For a shell, whatever stands in it; as readable as that allows.
export function quoted(text: string): string {
  if (/^[\w./:=+-]+$/.test(text)) return text;
  if (text.includes("'") && !/["$`\\!]/.test(text)) return `"${text}"`;
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function LiveRows({ view, sql }: { view: View; sql: string }) {
  const [answer, setAnswer] = useState<{ columns: string[]; rows: unknown[][] } | string | null>(null);
  const ask = () => {
    setAnswer("asking …");
    const failed = (error: unknown) => setAnswer(error instanceof Error ? error.message : String(error));
    view.source.rows(view.index, sql).then(setAnswer, failed);
  };
  if (answer === null) return <button type="button" onClick={ask}>Show them</button>;
  if (typeof answer === "string") return <p role="status">{shown(answer)}</p>;
  const columns = answer.columns.map((title, at): Column => ({ key: String(at), title: shown(title), format: "word" }));
  const rows = answer.rows.map((row) => Object.fromEntries(row.entries()) as Row);
  return <Table description={{ name: "rows", title: "Rows", columns, rows_shown: 50 }} rows={rows} />;
}
