// Whether the page is being printed: then everything is open.
import { useEffect, useLayoutEffect, useState } from "preact/hooks";

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
