import { bytesText, countText, shareText, timeText } from "../format";
import { BarAndText } from "../parts/columns";
import { shown } from "../parts/name";
import type { ModuleColumn, ModuleNode } from "./module_tree";

interface Order { column: ModuleColumn; down: boolean }
interface Head { column: ModuleColumn; title: string; hint: string }

const heads: Head[] = [
  { column: "label", title: "Module", hint: "path in the model" },
  { column: "timeNs", title: "Time", hint: "with the modules inside it" },
  { column: "share", title: "Share", hint: "of the stage, see above" },
  { column: "mfu", title: "MFU", hint: "model FLOPs by its time, of the peak FLOP/s of the device" },
  { column: "mbu", title: "MBU", hint: "bytes that must move by its time, of the peak bandwidth of the device" },
  { column: "bytes", title: "Bytes moved", hint: "that must move: weights, KV cache, activations; all calls" },
  { column: "heldBytes", title: "Held at peak", hint: "device memory allocated in it that was there at the peak" },
  { column: "calls", title: "Calls", hint: "times it was called" },
];

export function ModuleHead({ order, setOrder, held }: { order: Order; setOrder: (order: Order) => void; held: boolean }) {
  return (
    <thead>
      <tr>
        {heads.filter((head) => held || head.column !== "heldBytes").map(({ column, title, hint }) => {
          const mine = order.column === column;
          return (
            <th key={column} scope="col" class={column === "label" ? "" : "number"}
                aria-sort={mine ? (order.down ? "descending" : "ascending") : "none"}>
              <button type="button" title={hint} onClick={() => setOrder({ column, down: mine ? !order.down : column !== "label" })}>
                {title}<span class="order" aria-hidden="true">{mine ? (order.down ? "▼" : "▲") : ""}</span>
              </button>
            </th>
          );
        })}
      </tr>
    </thead>
  );
}

interface RowProps {
  node: ModuleNode; open: boolean; held: boolean; focused: boolean;
  toggle: (path: string, open: boolean) => void; onFocus: () => void;
}

export function ModuleRow({ node, open, held, focused, toggle, onFocus }: RowProps) {
  const inner = node.children.length > 0;
  return (
    <tr role="row" aria-level={node.level} {...(inner ? { "aria-expanded": open } : {})} tabIndex={focused ? 0 : -1} data-path={node.path}
        onFocus={onFocus} title={node.why ? shown(node.why) : undefined}>
      <th scope="row" role="rowheader">
        <span class="twig" style={{ paddingLeft: `${(node.level - 1) * 1.1}em` }} onClick={() => inner && toggle(node.path, !open)}>
          <span class="sign" aria-hidden="true">{inner ? (open ? "▾" : "▸") : ""}</span><code>{shown(node.label)}</code>
          {inner && !node.row && <small>{node.children.length}</small>}
        </span>
      </th>
      <td class="number">{timeText(node.timeNs)}</td>
      <td class="number"><BarAndText share={node.share} /></td>
      <td class="number">{shareText(node.mfu)}</td>
      <td class="number">{shareText(node.mbu)}</td>
      <td class="number">{bytesText(node.bytes)}</td>
      {held && <td class="number">{node.heldBytes ? bytesText(node.heldBytes) : ""}</td>}
      <td class="number">{node.row ? countText(node.calls) : ""}</td>
    </tr>
  );
}
