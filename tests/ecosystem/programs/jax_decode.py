"""A compiled decode loop in JAX on the CPU: one token at a time through a small model with a cache of keys and values."""
import hashlib
import time

import jax
import jax.numpy as jnp

import figures

LAYERS, WIDTH, HIDDEN, HEADS, VOCABULARY, LENGTH, TOKENS = 3, 256, 1024, 4, 2048, 64, 48


def weight(key, *shape):
    return jax.random.normal(key, shape) / shape[-2] ** 0.5


def step(weights, cache, token, position):
    x = weights["embedding"][token]

    def layer(x, parts):
        qkv, out, up, down, kept = parts
        q, k, v = jnp.split(x @ qkv, 3)
        kept = kept.at[0, position].set(k).at[1, position].set(v)
        keys, values = kept.reshape(2, LENGTH, HEADS, WIDTH // HEADS)
        scores = jnp.einsum("hd,thd->ht", q.reshape(HEADS, -1), keys) / (WIDTH // HEADS) ** 0.5
        scores = jax.nn.softmax(jnp.where(jnp.arange(LENGTH) <= position, scores, -1e9), -1)
        x = x + jnp.einsum("ht,thd->hd", scores, values).reshape(-1) @ out
        return x + jax.nn.gelu(x @ up) @ down, kept

    x, cache = jax.lax.scan(layer, x, (*(weights[name] for name in ("qkv", "out", "up", "down")), cache))
    return cache, jnp.argmax(x @ weights["head"])


def main():
    keys = jax.random.split(jax.random.PRNGKey(0), 6)
    weights = {"qkv": weight(keys[0], LAYERS, WIDTH, 3 * WIDTH), "out": weight(keys[1], LAYERS, WIDTH, WIDTH),
               "up": weight(keys[2], LAYERS, WIDTH, HIDDEN), "down": weight(keys[3], LAYERS, HIDDEN, WIDTH),
               "embedding": weight(keys[4], VOCABULARY, WIDTH), "head": weight(keys[5], WIDTH, VOCABULARY)}
    big = jax.jit(lambda a: a @ a)
    square = big(weights["up"][0] @ weights["down"][0]).block_until_ready()
    decode = jax.jit(step, donate_argnums=1)
    cache, token = jnp.zeros((LAYERS, 2, LENGTH, WIDTH)), jnp.int32(1)
    cache, token = decode(weights, cache, token, 0)
    tokens, seconds = [int(token)], []
    for position in range(1, TOKENS):
        start = time.perf_counter()
        cache, token = decode(weights, cache, token, position)
        tokens.append(int(token))
        seconds.append(time.perf_counter() - start)
    figures.show(tokens=tokens, square=hashlib.sha256(square.tobytes()).hexdigest(), elapsed_s=sum(seconds), token_s=seconds)


if __name__ == "__main__":
    main()
