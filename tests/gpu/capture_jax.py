"""A jitted JAX function, called 10 and then 30 times. How many kernels XLA makes of it is its own affair, but it is the same
number each time. Prints the times of both parts as JSON."""
import json
import os
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
import jax
import jax.numpy as jnp


def raw_ns():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


@jax.jit
def layer(x, w):
    return jnp.tanh(x @ w) + x


x, w = jnp.ones((512, 512)), jnp.ones((512, 512)) / 512
for _ in range(3):
    layer(x, w).block_until_ready()
parts = []
for times in (10, 30):
    y = x
    begin = raw_ns()
    for _ in range(times):
        y = layer(y, w)
    y.block_until_ready()
    parts.append({"begin_ns": begin, "end_ns": raw_ns(), "calls": times})
print(json.dumps({"device": str(jax.devices()[0]), "parts": parts, "flops_per_call": 2 * 512 ** 3}))
