// The BLAS of hook_cost: returns at once, in a library of its own so that it can be hooked.

extern "C" void cblas_sgemm(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float* c,
                            int) {
  *c += 1;
}
