// A command or a query to take along.
import { useState } from "preact/hooks";
import { shown } from "./name";

// The clipboard may be closed to pages from files: then the text is selected, ready to be copied by key.
export function Copyable({ text, what }: { text: string; what: string }) {
  const [said, setSaid] = useState("");
  const copy = async (event: MouseEvent) => {
    const code = (event.currentTarget as HTMLElement).previousElementSibling;
    try {
      await navigator.clipboard.writeText(text);
      setSaid("copied");
    } catch {
      if (code) getSelection()?.selectAllChildren(code);
      setSaid("selected: copy with Ctrl+C");
    }
  };
  return (
    <span class="copyable">
      <code>{shown(text)}</code>
      <button type="button" onClick={copy} aria-label={`Copy ${what}`}>Copy</button>
      <span role="status" class="said">{said}</span>
    </span>
  );
}
