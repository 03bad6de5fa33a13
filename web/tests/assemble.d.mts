export function scriptSafe(json: string): string;
export function assemble(json: string, js: string, css: string): string;
