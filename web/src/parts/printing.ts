// Whether the page is being printed: then everything is open.
import { useEffect, useState } from "preact/hooks";

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

// Opens every <details> of the page while it is printed.
export function useOpenInPrint(printing: boolean) {
  useEffect(() => {
    if (!printing) return;
    const closed = [...document.querySelectorAll<HTMLDetailsElement>("details:not([open])")];
    for (const each of closed) each.open = true;
    return () => { for (const each of closed) each.open = false; };
  }, [printing]);
}
