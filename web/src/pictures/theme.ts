// Colours of the page for what is drawn on a canvas, which knows no style sheet: read from the custom properties of
// pictures.css, again whenever light turns dark, or the page is printed.
import { useEffect, useState } from "preact/hooks";
import { categoryCount, categoryVariable, type Diverging, parseColour, textOn } from "./colours";

export interface Theme {
  categories: string[]; onCategories: string[];  // fills, and text on them
  text: string; muted: string; grid: string; surface: string; accent: string; idle: string; line: string;
  diverging: Diverging; font: string; printing: boolean;
}

export function readTheme(element: Element): Theme {
  const style = getComputedStyle(element);
  const read = (name: string) => style.getPropertyValue(name).trim();
  const categories = Array.from({ length: categoryCount }, (_, index) => read(categoryVariable(index)));
  return {
    categories, onCategories: categories.map((colour) => textOn(parseColour(colour))),
    text: read("--p-text"), muted: read("--p-muted"), grid: read("--p-grid"), surface: read("--p-surface"),
    accent: read("--p-accent"), idle: read("--p-idle"), line: read("--p-line"),
    diverging: { less: parseColour(read("--p-less")), none: parseColour(read("--p-none")), more: parseColour(read("--p-more")) },
    font: style.fontFamily, printing: matchMedia("print").matches,
  };
}

// null until the element is in the page.
export function useTheme(element: Element | null): Theme | null {
  const [theme, setTheme] = useState<Theme | null>(null);
  useEffect(() => {
    if (!element) return;
    const renew = () => setTheme(readTheme(element));
    renew();
    const queries = ["(prefers-color-scheme: dark)", "print"].map((query) => matchMedia(query));
    for (const query of queries) query.addEventListener("change", renew);
    const observer = new MutationObserver(renew);
    observer.observe(document.documentElement, { attributes: true, attributeFilter: ["class", "data-theme"] });
    return () => {
      for (const query of queries) query.removeEventListener("change", renew);
      observer.disconnect();
    };
  }, [element]);
  return theme;
}
