// The model as a tree: what each module costs. Arrow keys walk it, as in any tree.
import { useMemo, useState } from "preact/hooks";
import { mainStage, list, onGpu, type View } from "../view";
import { timeText } from "../format";
import { Filter } from "../parts/table";
import { Empty, Section } from "../parts/section";
import { shown } from "../parts/name";
import { usePrinting } from "../parts/printing";
import { ModuleRow, ModuleHead } from "./module_row";
import { allPaths, type ModuleColumn, moduleTree, openAtFirst, seen, size, sortedTree, stageTime } from "./module_tree";
import { useTreeKeys } from "./tree_keys";

export function Modules({ view }: { view: View }) {
  const report = view.data.report;
  const names = [...new Set(list(report["modules"]).map((row) => String(row["stage"])))];
  const [stage, setStage] = useState(() => mainStage(names) ?? "");
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
  const [order, setOrder] = useState<{ column: ModuleColumn; down: boolean }>({ column: "timeNs", down: true });
  const roots = useMemo(() => sortedTree(built, order.column, order.down), [built, order]);
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
  const held = built.some((node) => (node.heldBytes ?? 0) > 0);
  return (
    <>
      <div class="tools">
        <Filter label="Filter" text={filter} setText={setFilter} found={rows.length} of={size(built)} />
        <button type="button" onClick={() => setOpen(new Set(every))}>Open all</button>
        <button type="button" onClick={() => setOpen(new Set())}>Close all</button>
      </div>
      <div class="scroll tall">
        <table role="treegrid" class="tree" aria-label={`Modules of ${shown(stage)}`} onKeyDown={keys.onKeyDown}>
          <ModuleHead order={order} setOrder={setOrder} held={held} />
          <tbody>
            {rows.map((node) => (
              <ModuleRow key={node.path} node={node} open={filter || printing ? true : open.has(node.path)} toggle={toggle} held={held}
                         focused={keys.focused === node.path} onFocus={() => keys.setFocused(node.path)} />
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
