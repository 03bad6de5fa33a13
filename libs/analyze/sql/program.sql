-- title: Whether the program uses PyTorch
-- unit: none
-- torch: one of its kernels, operators, libraries or functions is PyTorch's. known: else that it is not, as it is no Python
-- program or its functions are known.
SELECT EXISTS (SELECT 1 FROM kernel_sum WHERE contains(name, 'at::native') OR contains(name, 'at_cuda_detail'))
    OR EXISTS (SELECT 1 FROM op WHERE starts_with(name, 'aten::'))
    OR EXISTS (SELECT 1 FROM summary WHERE starts_with(name, 'aten::'))
    OR EXISTS (SELECT 1 FROM frame WHERE contains(file, 'libtorch') OR contains(file, '/torch/'))
    OR EXISTS (SELECT 1 FROM note WHERE contains(text, 'PyTorch')) AS torch,
  EXISTS (SELECT 1 FROM frame)
    OR EXISTS (SELECT 1 FROM process WHERE injected)
      AND NOT EXISTS (SELECT 1 FROM process WHERE contains(coalesce(executable, '') || coalesce(arguments, ''), 'python')) AS known;
