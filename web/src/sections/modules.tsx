// The model as a tree: what each module costs. Arrow keys walk it, as in any tree.
import { useMemo, useState } from "preact/hooks";
import { list, mainStage, onGpu, type Report, type View } from "../data";
import { described, DescribedTable } from "../described";
import { Empty, Section, shown, usePrinting } from "../parts";
import { Cell, type Column, column, Filter, Head } from "../table";
import { timeText } from "../text";
import { allPaths, type ModuleNode, moduleTree, openAtFirst, seen, size, sortedTree, stageTime } from "./module_tree";

export function Modules({ view }: { view: View }) {
  const report = view.data.report;
  const names = [...new Set(list(report["modules"]).map((row) => String(row["stage"])))];
  const [stage, setStage] = useState(() => mainStage(names) ?? "");
  const of = (part: "modules" | "operators") => list(report[part]).filter((row) => row["stage"] === stage);
  return (
    <Section id="modules" title="Modules of the model" lead={names.length ? lead(view, stage) : undefined}>
      {names.length === 0
        ? <Empty>No module is known: record with --modules, or let ranges name them.</Empty>
        : (
          <>
            <p class="choice">
              <label>Stage{" "}
                <select value={stage} onChange={(event) => setStage(event.currentTarget.value)}>
                  {names.map((name) => <option key={name} value={name}>{shown(name)}</option>)}
                </select>
              </label>
            </p>
            <Tree key={stage} view={view} stage={stage} />
            <DescribedTable report={report} path="modules[]#cost" rows={of("modules")} rows_shown={8} />
            <DescribedTable report={report} path="operators[]#time" rows={of("operators")} />
            <DescribedTable report={report} path="operators[]#cost" rows={of("operators")} />
          </>
        )}
    </Section>
  );
}

function lead(view: View, stage: string): string {
  const gpu = onGpu(view.data.report), of = gpu ? "all kernels" : "all steps";
  const what = gpu ? "time of the kernels launched in a module and in those inside it" : "time from begin to end of a module";
  return `Time is the ${what}; its share is of ${timeText(stageTime(view.data.report, stage))}, ${of} of ${shown(stage)}.`;
}

function Tree({ view, stage }: { view: View; stage: string }) {
  const printing = usePrinting();
  const built = useMemo(() => moduleTree(view.data.report, stage), [view, stage]);
  const [order, setOrder] = useState({ key: "time_ns", down: true });
  const roots = useMemo(() => sortedTree(built, order.key, order.down), [built, order]);
  const [open, setOpen] = useState<ReadonlySet<string>>(() => openAtFirst(built));
  const [filter, setFilter] = useState("");
  const every = useMemo(() => allPaths(built), [built]);
  const rows = seen(roots, printing ? new Set(every) : open, filter);
  const toggle = (path: string, wanted: boolean) => {
    const next = new Set(open);
    if (wanted) next.add(path); else next.delete(path);
    setOpen(next);
  };
  const keys = useTreeKeys(rows, open, toggle);
  const columns = columnsOf(view.data.report, built.some((node) => node.row["held_bytes"]));
  return (
    <>
      <div class="tools">
        <Filter text={filter} setText={setFilter} found={rows.length} of={size(built)} />
        <button type="button" onClick={() => setOpen(new Set(every))}>Open all</button>
        <button type="button" onClick={() => setOpen(new Set())}>Close all</button>
      </div>
      <div class="scroll tall">
        <table role="treegrid" class="tree" aria-label={`Modules of ${shown(stage)}`} onKeyDown={keys.onKeyDown}>
          <thead><tr>{columns.map((each) => <Head key={each.key} column={each} order={order} setOrder={setOrder} />)}</tr></thead>
          <tbody>
            {rows.map((node) => (
              <ModuleRow key={node.path} node={node} open={filter || printing ? true : open.has(node.path)} toggle={toggle} columns={columns}
                         focused={keys.focused === node.path} onFocus={() => keys.setFocused(node.path)} />
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

// Time and bytes of a module are with those inside it; the other columns are those of the terminal.
function columnsOf(report: Report, held: boolean): Column[] {
  const others = described(report, ["modules[]#time"])?.columns.filter(({ key }) => !["name", "stage", "share", "total_ns"].includes(key)) ?? [];
  const moved = column("bytes", "bytes", "bytes", "that must move: weights, KV cache, activations; all calls");
  const memory = column("bytes", "held at peak", "held_bytes", "device memory allocated in it that was there at the peak");
  return [column("name", "module", "label", "path in the model"), column("ns", "time", "time_ns", "with the modules inside it"),
          column("percent", "stage %", "share", "of the stage, see above", { bar: true }), ...others, moved, ...(held ? [memory] : [])];
}

interface RowProps {
  node: ModuleNode; columns: Column[]; open: boolean; focused: boolean;
  toggle: (path: string, open: boolean) => void; onFocus: () => void;
}

function ModuleRow({ node, columns, open, focused, toggle, onFocus }: RowProps) {
  const inner = node.children.length > 0;
  return (
    <tr role="row" aria-level={node.level} {...(inner ? { "aria-expanded": open } : {})} tabIndex={focused ? 0 : -1} data-path={node.path}
        onFocus={onFocus} title={node.row["why"] ? shown(node.row["why"]) : undefined}>
      <th scope="row" role="rowheader">
        <span class="twig" style={{ paddingLeft: `${(node.level - 1) * 1.1}em` }} onClick={() => inner && toggle(node.path, !open)}>
          <span class="sign" aria-hidden="true">{inner ? (open ? "▾" : "▸") : ""}</span><code>{shown(node.label)}</code>
          {inner && !node.recorded && <small>{node.children.length}</small>}
        </span>
      </th>
      {columns.slice(1).map((each) => <Cell key={each.key} column={each} row={node.row} />)}
    </tr>
  );
}

// Keys of a tree: up and down walk the rows, right opens or goes in, left closes or goes out, Home and End.
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
