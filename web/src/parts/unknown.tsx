// A value, or a dash that tells on demand why it is unknown.
import { unknown } from "../format";
import { shown } from "./name";

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
