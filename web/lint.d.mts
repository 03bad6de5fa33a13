export function problems(name: string, text: string): string[];
