// Tables: sortable by any column, filtered by text, the first rows at first. They scroll inside themselves.
import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { plural } from "../format";
import { usePrinting } from "./printing";
import { shown } from "./name";

export interface Column<Row> {
  title: string;
  value: (row: Row) => number | string | null | undefined;  // what is sorted by, and filtered
  show?: (row: Row) => ComponentChildren;                    // else value as text
  number?: boolean;
  hint?: string;  // what it means, with its denominator
}

interface TableProps<Row> {
  caption: string; columns: Column<Row>[]; rows: Row[];
  first?: number;    // rows shown before "show all"
  filter?: string;   // label of the filter; none without
}

interface Order { column: number; down: boolean }
const printedRows = 50;

export function Table<Row>({ caption, columns, rows, first = 15, filter }: TableProps<Row>) {
  const printing = usePrinting();
  const [order, setOrder] = useState<Order | null>(null);
  const [all, setAll] = useState(false);
  const [text, setText] = useState("");
  const found = useMemo(() => sorted(matching(rows, columns, text), columns, order), [rows, columns, text, order]);
  const limit = printing ? printedRows : all ? found.length : first;
  const left = found.length - limit;
  return (
    <div class="table">
      {filter && rows.length > 5 && <Filter label={filter} text={text} setText={setText} found={found.length} of={rows.length} />}
      <div class="scroll" tabIndex={0} role="region" aria-label={caption}>
        <table>
          <caption class="spoken">{caption}</caption>
          <thead>
            <tr>{columns.map((column, at) => <Head key={column.title} column={column} at={at} order={order} setOrder={setOrder} />)}</tr>
          </thead>
          <tbody>
            {found.slice(0, limit).map((row, at) => (
              <tr key={at}>{columns.map((column, index) => <Cell key={column.title} column={column} row={row} head={index === 0} />)}</tr>
            ))}
          </tbody>
        </table>
      </div>
      {left > 0 && printing && <p class="more">{plural(left, "more row")} in the page itself.</p>}
      {!printing && found.length > first && (
        <button type="button" class="more" aria-expanded={all} onClick={() => setAll(!all)}>
          {all ? `Show the first ${first}` : `Show all ${found.length}`}
        </button>
      )}
    </div>
  );
}

interface FilterProps { label: string; text: string; setText: (text: string) => void; found: number; of: number }
export function Filter({ label, text, setText, found, of }: FilterProps) {
  return (
    <p class="filter">
      <label>{label} <input type="search" value={text} onInput={(event) => setText(event.currentTarget.value)} /></label>
      {" "}<span role="status">{text ? `${found} of ${of}` : ""}</span>
    </p>
  );
}

interface HeadProps<Row> { column: Column<Row>; at: number; order: Order | null; setOrder: (order: Order) => void }
function Head<Row>({ column, at, order, setOrder }: HeadProps<Row>) {
  const mine = order?.column === at ? order : null;
  const sort = () => setOrder({ column: at, down: mine ? !mine.down : column.number ?? false });
  return (
    <th scope="col" class={column.number ? "number" : ""} aria-sort={mine ? (mine.down ? "descending" : "ascending") : "none"}>
      <button type="button" onClick={sort} title={column.hint}>
        {column.title}<span class="order" aria-hidden="true">{mine ? (mine.down ? "▼" : "▲") : ""}</span>
      </button>
    </th>
  );
}

function Cell<Row>({ column, row, head }: { column: Column<Row>; row: Row; head: boolean }) {
  const content = column.show ? column.show(row) : shown(column.value(row) ?? "–");
  const name = column.number ? "number" : "";
  return head ? <th scope="row" class={name}>{content}</th> : <td class={name}>{content}</td>;
}

export function matching<Row>(rows: Row[], columns: Column<Row>[], text: string): Row[] {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return rows;
  return rows.filter((row) => columns.some((column) => !column.number && String(column.value(row) ?? "").toLowerCase().includes(wanted)));
}

// Unknown values come last, whichever way it is sorted.
export function sorted<Row>(rows: Row[], columns: Column<Row>[], order: Order | null): Row[] {
  const column = order ? columns[order.column] : undefined;
  if (!order || !column) return rows;
  const sign = order.down ? -1 : 1;
  return [...rows].sort((one, other) => {
    const a = column.value(one) ?? null, b = column.value(other) ?? null;
    if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
    if (typeof a === "number" && typeof b === "number") return sign * (a - b);
    return sign * String(a).localeCompare(String(b), "en", { numeric: true });
  });
}
