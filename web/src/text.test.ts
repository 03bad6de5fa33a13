import { expect, it } from "vitest";
import { visible } from "./text";

it("shows what would hide, turn or move text", () => {
  expect(visible("gemm_\u202eevil\u200b")).toBe("gemm_⟨U+202E⟩evil⟨U+200B⟩");
  expect(visible("a\u0000b\nc\ufeff\u2066\ud800")).toBe("a⟨U+0000⟩b⟨U+000A⟩c⟨U+FEFF⟩⟨U+2066⟩⟨U+D800⟩");
  expect(visible("<img onerror=1> größe 模型 🙂")).toBe("<img onerror=1> größe 模型 🙂");
});
