// Text of a run as people can read it: characters that hide, turn or move others are shown by their number.
// Names come from programs and files, so they may hold anything.

const hidden = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

export function visible(text: string): string {
  return text.replace(hidden, (found) => `⟨U+${found.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}⟩`);
}
