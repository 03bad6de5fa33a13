// Names of C++ functions are long because of their template arguments, and what tells them apart stands in the middle.

const longest = 200;

// "void at::native::vectorized_elementwise_kernel<2, at::native::FillFunctor<long>>(int)" is, for a small box,
// "vectorized_elementwise_kernel<FillFunctor>": the function, and what it was made for.
export function shortName(name: string): string {
  const cut = name.indexOf("<");
  if (cut < 0 && !name.includes("::")) return name;
  const last = (path: string): string => path.replace(/\(.*$/s, "").split("::").pop()!.trim().split(" ").pop()!;
  const head = last((cut < 0 ? name : name.slice(0, cut)).replaceAll("(anonymous namespace)::", ""));
  if (head === "" || !/^[\w~]+$/.test(head)) return name;
  const inner = cut < 0 ? null : /([A-Za-z_]\w*(?:Functor|Op|Ops|Epilogue|Mainloop)\w*)/.exec(name.slice(cut));
  return inner ? `${head}<${inner[1]}>` : head;
}

// For tips and tables.
export function clipped(name: string): string {
  return name.length <= longest ? name : `${name.slice(0, longest)}… (${name.length} characters)`;
}
