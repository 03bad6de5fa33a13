import { expect, it } from "vitest";
import { clipped, shortName } from "./short_name";

it("shortens functions of C++ to what tells them apart", () => {
  const fill = "at::native::vectorized_elementwise_kernel<2, at::native::FillFunctor<long>, std::array<char*, 1ul> >";
  expect(shortName(fill)).toBe("vectorized_elementwise_kernel<FillFunctor>");
  expect(shortName("void at::native::(anonymous namespace)::softmax_warp_forward<float, 8>(float*, int)")).toBe("softmax_warp_forward");
  expect(shortName("at::native::linear(at::Tensor const&)")).toBe("linear");
});
it("leaves other names alone", () => {
  for (const name of ["nvjet_tst_128x8_64x12_2x1_v_bz_TNT", "<img src=x>", "Memcpy HtoD", "decode", ""]) expect(shortName(name)).toBe(name);
});
it("clips what fills a screen", () => {
  expect(clipped("short")).toBe("short");
  expect(clipped("x".repeat(300))).toBe(`${"x".repeat(200)}… (300 characters)`);
});
