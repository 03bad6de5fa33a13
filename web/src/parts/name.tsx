// Text that comes from a run. It may hold anything, so it is shown with hidden characters written out.
import { visible } from "../visible";

export const shown = (text: unknown): string => visible(text === null || text === undefined ? "" : String(text));

// A name of code: kernel, module, file. Long ones break anywhere.
export function Name({ text }: { text: unknown }) {
  return <code class="name">{shown(text)}</code>;
}
