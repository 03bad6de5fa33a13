// The numbers of a picture as a table: the alternative for readers of the screen, and for copying.
import { useState } from "preact/hooks";

export interface Column { name: string; number?: boolean }

interface DataTableProps { title: string; columns: Column[]; rows: () => string[][] }

// Closed at first; `rows` is asked only when it is open.
export function DataTable({ title, columns, rows }: DataTableProps) {
  const [open, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen((event.currentTarget as HTMLDetailsElement).open)}>
      <summary>{title}</summary>
      {open && (
        <div class="p-scroll" tabIndex={0} role="region" aria-label={title}>
          <table class="p-table">
            <thead>
              <tr>{columns.map((column) => <th key={column.name} scope="col" class={cellClass(column)}>{column.name}</th>)}</tr>
            </thead>
            <tbody>
              {rows().map((row, at) => (
                <tr key={at}>{row.map((cell, index) => <td key={index} class={cellClass(columns[index])}>{cell}</td>)}</tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </details>
  );
}

const cellClass = (column: Column | undefined): string => (column?.number ? "p-number" : "p-name");
