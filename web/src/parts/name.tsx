// Text that comes from a run. It may hold anything, so it is shown with hidden characters written out.
import { visible } from "../visible";

export const shown = (text: unknown): string => visible(text === null || text === undefined ? "" : String(text));

// A name of code: kernel, module, file. Long ones break anywhere; of very long ones the begin is seen, and all on hovering.
export function Name({ text }: { text: unknown }) {
  const name = shown(text);
  return <code class="name" title={name.length > 100 ? name : undefined}>{name}</code>;
}
