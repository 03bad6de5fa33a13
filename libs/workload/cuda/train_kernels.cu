// The kernels of training, float32. "d" is the gradient of the loss with respect to what follows it. Sums over rows run
// in a fixed order: the same run gives the same losses.

#include "workload/cuda/kernel.cuh"

namespace {

constexpr int kColumns = 32, kRowGroups = 8;  // the block of a sum over rows

// sum over rows of value(row, column), in the thread of row group 0
template <class Value>
__device__ float column_sum(Size rows, Value value) {
  __shared__ float parts[kRowGroups][kColumns];
  float sum = 0;
  for (Size row = threadIdx.y; row < rows; row += kRowGroups) sum += value(row);
  __syncthreads();
  parts[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0) return 0;
  for (int group = 1; group < kRowGroups; ++group) sum += parts[group][threadIdx.x];
  return sum;
}

}  // namespace

// scores (rows, T) of causal squares become softmax(scores · scale) over what a row sees, 0 behind it. A block per row.
LLMPROF_KERNEL causal_softmax(float* scores, Size tokens, float scale) {
  float* const row = scores + blockIdx.x * tokens;
  const Size visible = blockIdx.x % tokens + 1;
  float largest = -INFINITY;
  for (Size i = threadIdx.x; i < visible; i += blockDim.x) largest = fmaxf(largest, row[i]);
  largest = block_max(largest);
  float sum = 0;
  for (Size i = threadIdx.x; i < visible; i += blockDim.x) {
    row[i] = expf((row[i] - largest) * scale);
    sum += row[i];
  }
  sum = block_sum(sum);
  for (Size i = threadIdx.x; i < tokens; i += blockDim.x) row[i] = i < visible ? row[i] / sum : 0.0F;
}

// dp becomes the gradient of the scores. A block per row.
LLMPROF_KERNEL causal_softmax_backward(const float* p, float* dp, Size tokens, float scale) {
  p += blockIdx.x * tokens;
  dp += blockIdx.x * tokens;
  const Size visible = blockIdx.x % tokens + 1;
  float sum = 0;
  for (Size i = threadIdx.x; i < visible; i += blockDim.x) sum += p[i] * dp[i];
  sum = block_sum(sum);
  for (Size i = threadIdx.x; i < tokens; i += blockDim.x) dp[i] = i < visible ? scale * p[i] * (dp[i] - sum) : 0.0F;
}

// Logits (rows, V) become probabilities; losses (rows) = -log of the target's. A block per row.
LLMPROF_KERNEL cross_entropy(float* logits, const std::int32_t* targets, Size vocab, double* losses) {
  float* const row = logits + blockIdx.x * vocab;
  float largest = -INFINITY;
  for (Size i = threadIdx.x; i < vocab; i += blockDim.x) largest = fmaxf(largest, row[i]);
  largest = block_max(largest);
  float sum = 0;
  for (Size i = threadIdx.x; i < vocab; i += blockDim.x) {
    row[i] = expf(row[i] - largest);
    sum += row[i];
  }
  sum = block_sum(sum);
  for (Size i = threadIdx.x; i < vocab; i += blockDim.x) {
    row[i] /= sum;
    if (i == targets[blockIdx.x]) losses[blockIdx.x] = -log(static_cast<double>(row[i]));
  }
}

LLMPROF_KERNEL cross_entropy_backward(float* probabilities, const std::int32_t* targets, Size vocab, float share) {
  float* const row = probabilities + blockIdx.x * vocab;
  const Size target = targets[blockIdx.x];
  for (Size i = threadIdx.x; i < vocab; i += blockDim.x) row[i] = row[i] * share - (i == target ? share : 0.0F);
}

// dx += the gradient of LayerNorm's input x; moments (rows, 2) keeps mean and 1/deviation. A block per row.
LLMPROF_KERNEL layer_norm_backward(const float* x, const float* weight, const float* dy, float epsilon, Size n,
                                   float* dx, float* moments) {
  x += blockIdx.x * n, dy += blockIdx.x * n, dx += blockIdx.x * n;
  const RowMoments row = row_moments(x, epsilon, n);
  float sum = 0, weighted = 0;
  for (Size i = threadIdx.x; i < n; i += blockDim.x) {
    const float g = dy[i] * weight[i];
    sum += g;
    weighted += g * (x[i] - row.mean);
  }
  const float mean_g = block_sum(sum) / static_cast<float>(n);
  const float mean_gh = block_sum(weighted) * row.inverse / static_cast<float>(n);
  for (Size i = threadIdx.x; i < n; i += blockDim.x) {
    const float h = (x[i] - row.mean) * row.inverse;
    dx[i] += row.inverse * (dy[i] * weight[i] - mean_g - h * mean_gh);
  }
  if (threadIdx.x == 0) moments[2 * blockIdx.x] = row.mean, moments[2 * blockIdx.x + 1] = row.inverse;
}

// Blocks of (32, 8) threads: 32 columns each.
LLMPROF_KERNEL layer_norm_gradients(const float* x, const float* dy, const float* moments, Size rows, Size n,
                                    float* dweight, float* dbias) {
  const Size column = static_cast<Size>(blockIdx.x) * kColumns + threadIdx.x;
  const bool inside = column < n;
  const float weight = column_sum(rows, [&](Size row) {
    return inside ? dy[row * n + column] * (x[row * n + column] - moments[2 * row]) * moments[2 * row + 1] : 0.0F;
  });
  const float bias = column_sum(rows, [&](Size row) { return inside ? dy[row * n + column] : 0.0F; });
  if (threadIdx.y == 0 && inside) dweight[column] = weight, dbias[column] = bias;
}

LLMPROF_KERNEL column_sums(const float* y, Size rows, Size n, float* out) {
  const Size column = static_cast<Size>(blockIdx.x) * kColumns + threadIdx.x;
  const float sum = column_sum(rows, [&](Size row) { return column < n ? y[row * n + column] : 0.0F; });
  if (threadIdx.y == 0 && column < n) out[column] = sum;
}

// gelu = x s with s = 1 / (1 + e^(-2u)), so gelu' = s + x s (1 - s) 2u'
LLMPROF_KERNEL gelu_backward(const float* x, Size count, float* dy) {
  for (Size i = first_element(); i < count; i += element_step()) {
    const float square = x[i] * x[i];
    const float u = 0.7978845608F * x[i] * (1.0F + 0.044715F * square);
    const float twice_slope = 2.0F * 0.7978845608F * (1.0F + 3.0F * 0.044715F * square);
    const float s = 1.0F / (1.0F + expf(-2.0F * u));
    dy[i] *= s + x[i] * s * (1.0F - s) * twice_slope;
  }
}

// table[tokens[row]] += dx[row]. The block of a token's first occurrence adds all of them, in order. A block per row.
LLMPROF_KERNEL embedding_backward(const std::int32_t* tokens, Size rows, Size n, const float* dx, float* table) {
  const Size first = blockIdx.x;
  const std::int32_t token = tokens[first];
  int before = 0;
  for (Size row = threadIdx.x; row < first; row += blockDim.x) before |= tokens[row] == token;
  if (__syncthreads_or(before) != 0) return;
  for (Size i = threadIdx.x; i < n; i += blockDim.x) {
    float sum = table[static_cast<Size>(token) * n + i];
    for (Size row = first; row < rows; ++row) {
      if (tokens[row] == token) sum += dx[row * n + i];
    }
    table[static_cast<Size>(token) * n + i] = sum;
  }
}

// table[t] = sum over sequences of dx (B, T, C). A block per t.
LLMPROF_KERNEL position_backward(Size batch, Size n, const float* dx, float* table) {
  const Size t = blockIdx.x, tokens = gridDim.x;
  for (Size i = threadIdx.x; i < n; i += blockDim.x) {
    float sum = 0;
    for (Size sequence = 0; sequence < batch; ++sequence) sum += dx[(sequence * tokens + t) * n + i];
    table[t * n + i] = sum;
  }
}

// The corrections are 1 / (1 - beta^t) of step t.
LLMPROF_KERNEL adamw(const float* gradient, float learning_rate, float beta1, float beta2, float epsilon,
                     float weight_decay, float correction1, float correction2, Size count, float* parameter,
                     float* first, float* second) {
  for (Size i = first_element(); i < count; i += element_step()) {
    const float g = gradient[i];
    const float m = beta1 * first[i] + (1.0F - beta1) * g;
    const float v = beta2 * second[i] + (1.0F - beta2) * g * g;
    first[i] = m;
    second[i] = v;
    const float direction = m * correction1 / (sqrtf(v * correction2) + epsilon);
    parameter[i] -= learning_rate * (direction + weight_decay * parameter[i]);
  }
}
