// Keys of a tree: up and down walk the rows, right opens or goes in, left closes or goes out, Home and End.
import { useState } from "preact/hooks";
import type { ModuleNode } from "./module_tree";

export function useTreeKeys(rows: ModuleNode[], open: ReadonlySet<string>, toggle: (path: string, open: boolean) => void) {
  const [wanted, setFocused] = useState<string | null>(null);
  const focused = rows.some((row) => row.path === wanted) ? wanted : rows[0]?.path ?? null;
  const go = (table: HTMLElement, row: ModuleNode | undefined) => {
    if (!row) return;
    setFocused(row.path);
    [...table.querySelectorAll<HTMLElement>("tr[data-path]")].find((each) => each.dataset["path"] === row.path)?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (!(event.target as HTMLElement).matches("tr[data-path]")) return;
    const at = rows.findIndex((row) => row.path === focused), row = rows[at];
    if (!row) return;
    const step = move(event.key, rows, at, row, open);
    if (!step) return;
    event.preventDefault();
    if (step.toggle !== undefined) toggle(row.path, step.toggle);
    else go(event.currentTarget as HTMLElement, step.to);
  };
  return { focused, setFocused, onKeyDown };
}

export interface Step { to?: ModuleNode | undefined; toggle?: boolean }

export function move(key: string, rows: ModuleNode[], at: number, row: ModuleNode, open: ReadonlySet<string>): Step | null {
  const isOpen = open.has(row.path) && row.children.length > 0;
  switch (key) {
    case "ArrowDown": return { to: rows[at + 1] };
    case "ArrowUp": return { to: rows[at - 1] };
    case "Home": return { to: rows[0] };
    case "End": return { to: rows[rows.length - 1] };
    case "ArrowRight": return row.children.length === 0 ? {} : isOpen ? { to: rows[at + 1] } : { toggle: true };
    case "ArrowLeft": return isOpen ? { toggle: false } : { to: rows.find((each) => each.path === row.parent?.path) };
    case "Enter": case " ": return row.children.length ? { toggle: !isOpen } : {};
    default: return null;
  }
}
