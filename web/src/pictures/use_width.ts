import { useEffect, useState } from "preact/hooks";

// An element as state (set it as ref) and its inner width in CSS pixels; 0 until it is in the page.
export function useWidth<E extends HTMLElement>(): [E | null, (element: E | null) => void, number] {
  const [element, setElement] = useState<E | null>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    if (!element) return;
    const observer = new ResizeObserver((entries) => {
      const last = entries[entries.length - 1];
      if (last) setWidth(Math.floor(last.contentRect.width));
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, [element]);
  return [element, setElement, width];
}
