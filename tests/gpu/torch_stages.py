"""A PyTorch program with NVTX ranges named as people name them. Prints a checksum, so that runs can be compared."""
import torch

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
weights = [torch.randn(1024, 1024, device=device) / 32 for _ in range(8)]


def forward(x):
    for index, weight in enumerate(weights):
        torch.cuda.nvtx.range_push(f"layers.{index}")
        x = torch.tanh(x @ weight)
        torch.cuda.nvtx.range_pop()
    return x


torch.cuda.nvtx.range_push("prefill")
state = forward(torch.randn(128, 1024, device=device))
torch.cuda.synchronize()
torch.cuda.nvtx.range_pop()
token = state[-1:]
for step in range(16):
    torch.cuda.nvtx.range_push("decode")
    token = forward(token)
    torch.cuda.synchronize()
    torch.cuda.nvtx.range_pop()
print(f"{token.double().sum().item():.6f}")
