// A share as a bar beside its number, which always says the same.
export function ShareBar({ share, kind = "" }: { share: number | null | undefined; kind?: string }) {
  if (typeof share !== "number" || !Number.isFinite(share)) return null;
  const width = Math.max(0, Math.min(1, share)) * 100;
  return <span class={`bar ${kind}`} aria-hidden="true"><span style={{ width: `${width}%` }} /></span>;
}
