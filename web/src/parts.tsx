// A part of the page: landmark, heading, one line that says what it shows. What fails inside stays inside.
import { Component, type ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { unknown, visible } from "./text";

interface SectionProps { id: string; title: string; lead?: ComponentChildren; children?: ComponentChildren }

export function Section({ id, title, lead, children }: SectionProps) {
  return (
    <section id={id} aria-labelledby={`${id}-title`}>
      <h2 id={`${id}-title`}>{title}</h2>
      {lead && <p class="lead">{lead}</p>}
      <Guard>{children}</Guard>
    </section>
  );
}

// Why a part is empty, in one line.
export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="empty">{children}</p>;
}

class Guard extends Component<{ children?: ComponentChildren }, { problem: string | null }> {
  override state = { problem: null };
  override componentDidCatch(error: unknown) {
    this.setState({ problem: error instanceof Error ? error.message : String(error) });
  }
  override render() {
    if (this.state.problem === null) return this.props.children;
    return <p class="empty" role="alert">This part could not be shown: {this.state.problem}</p>;
  }
}

// Text that comes from a run. It may hold anything, so it is shown with hidden characters written out.
export const shown = (text: unknown): string => visible(text === null || text === undefined ? "" : String(text));

// A name of code: kernel, module, file. Long ones break anywhere; of very long ones the begin is seen, and all on hovering.
export function Name({ text, full = text }: { text: unknown; full?: unknown }) {
  const name = shown(text), all = shown(full);
  return <code class="name" title={all.length > 100 || (all && all !== name) ? all : undefined}>{name}</code>;
}

// A value, or a dash that tells on demand why it is unknown.
export function Value({ text, why }: { text: string; why?: string | null | undefined }) {
  if (text !== unknown) return <>{text}</>;
  if (!why) return <span class="unknown" aria-label="unknown">{unknown}</span>;
  return (
    <details class="why">
      <summary aria-label="unknown, why?">{unknown}</summary>
      <span>{shown(why)}</span>
    </details>
  );
}

// A share as a bar beside its number, which always says the same.
export function ShareBar({ share, kind = "" }: { share: number | null | undefined; kind?: string }) {
  if (typeof share !== "number" || !Number.isFinite(share)) return null;
  const width = Math.max(0, Math.min(1, share)) * 100;
  return <span class={`bar ${kind}`} aria-hidden="true"><span style={{ width: `${width}%` }} /></span>;
}

// A command or a query to take along.
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

// Whether the page is being printed: then everything is open.
export function usePrinting(): boolean {
  const [printing, setPrinting] = useState(() => matchMedia("print").matches);
  useEffect(() => {
    const query = matchMedia("print");
    const before = () => setPrinting(true);
    const after = () => setPrinting(query.matches);
    query.addEventListener("change", after);
    addEventListener("beforeprint", before);
    addEventListener("afterprint", after);
    return () => {
      query.removeEventListener("change", after);
      removeEventListener("beforeprint", before);
      removeEventListener("afterprint", after);
    };
  }, []);
  return printing;
}

// Opens every <details> of the page while it is printed, also those that appear because it is.
export function useOpenInPrint(printing: boolean) {
  useLayoutEffect(() => {
    if (!printing) return;
    const opened: HTMLDetailsElement[] = [];
    const openAll = () => {
      for (const each of document.querySelectorAll<HTMLDetailsElement>("details:not([open])")) {
        each.open = true;
        opened.push(each);
      }
    };
    openAll();
    const observer = new MutationObserver(openAll);
    observer.observe(document.body, { childList: true, subtree: true });
    return () => {
      observer.disconnect();
      for (const each of opened) each.open = false;
    };
  }, [printing]);
}
