// Every table of the page: described by its columns, sorted by any of them, filtered by text, the first rows at first.
import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Row, View } from "./data";
import { Copyable, Name, ShareBar, shown, usePrinting, Value } from "./parts";
import { bytesText, countText, measureText, plural, shareText, timeText, unknown } from "./text";

// name: of code. word: a word or two, which stay together. sentence: gets a wide column. bar: a share with a bar beside it.
// number: in `unit`. measure: in the unit that the row names.
export type Format = "name" | "word" | "text" | "sentence" | "time" | "bytes" | "count" | "share" | "bar" | "number" | "measure";

export interface Column {
  key: string; title: string; format: Format;
  unit?: string;
  meaning?: string;  // with its denominator
  why?: string;      // the key that says why a value is unknown
  show?: (row: Row) => ComponentChildren;  // what no format can draw
}
export interface Description {
  name: string; title: string; columns: Column[];
  note?: string;
  order?: string;       // the key that rows are sorted by at first, with "-" before it downwards; none: as they come
  rows_shown?: number;  // before "show all"
}
// A column in one line, for the tables that the page describes itself.
export const column = (format: Format, title: string, key: string, meaning = "", more: Partial<Column> = {}): Column =>
  ({ key, title, format, ...(meaning ? { meaning } : {}), ...more });

interface Order { key: string; down: boolean }

const printedRows = 50, filteredFrom = 6;
const isNumber = ({ format }: Column): boolean => !["name", "word", "text", "sentence"].includes(format);

// What is not there at all is blank; null is unknown.
function numberText(row: Row, { key, format, unit = "" }: Column): string {
  const value = row[key];
  if (value === undefined) return "";
  if (typeof value === "string") return value;
  switch (format) {
    case "time": return timeText(value);
    case "bytes": return bytesText(value);
    case "count": return countText(value);
    case "measure": return measureText(value, String(row["unit"] ?? ""));
    case "number": return measureText(value, unit);
    default: return shareText(value);
  }
}

function cell(row: Row, column: Column): ComponentChildren {
  if (column.show) return column.show(row);
  const value = row[column.key];
  switch (column.format) {
    case "name": return <Name text={value ?? ""} />;
    case "word": return <span class="word">{shown(value ?? unknown)}</span>;
    case "text": return shown(value ?? unknown);
    case "sentence": return <span class="long">{shown(value ?? "")}</span>;
    case "bar": return <BarAndText share={value} />;
    default: return <Value text={numberText(row, column)} why={column.why ? row[column.why] : null} />;
  }
}

export function BarAndText({ share }: { share: number | null | undefined }) {
  return <><ShareBar share={share} /><span class="percent">{shareText(share)}</span></>;
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

// With its title above it; nothing where there are no rows.
export function TitledTable({ description, rows }: { description: Description; rows: Row[] }) {
  return rows.length > 0 ? <><h3>{description.title}</h3><Table description={description} rows={rows} /></> : null;
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
  return rows.filter((row) => columns.some((column) => !isNumber(column) && String(row[column.key] ?? "").toLowerCase().includes(wanted)));
}

// Unknown values come last, whichever way it is sorted.
export function sorted(rows: Row[], order: Order | null): Row[] {
  if (!order) return rows;
  const sign = order.down ? -1 : 1;
  return [...rows].sort((one, other) => {
    const a: unknown = one[order.key] ?? null, b: unknown = other[order.key] ?? null;
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
