#!/usr/bin/env python3
"""A Llama of random weights as a GGUF file, with a tokenizer of words and bytes: make_tiny_gguf.py FILE. Needs gguf."""
import sys

import gguf
import numpy

VOCABULARY, HIDDEN, INNER, LAYERS, HEADS = 300, 64, 128, 2, 4


def main():
    file = gguf.GGUFWriter(sys.argv[1], "llama")
    for add, value in ((file.add_context_length, 2048), (file.add_embedding_length, HIDDEN), (file.add_block_count, LAYERS),
                       (file.add_feed_forward_length, INNER), (file.add_head_count, HEADS), (file.add_head_count_kv, HEADS),
                       (file.add_layer_norm_rms_eps, 1e-5), (file.add_rope_dimension_count, HIDDEN // HEADS),
                       (file.add_vocab_size, VOCABULARY), (file.add_tokenizer_model, "llama"), (file.add_bos_token_id, 1),
                       (file.add_eos_token_id, 2), (file.add_unk_token_id, 0)):
        add(value)
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    tokens += ["▁"] + [f"▁word{i}" for i in range(VOCABULARY - len(tokens) - 1)]
    file.add_token_list(tokens)
    file.add_token_scores([-float(i) for i in range(VOCABULARY)])
    file.add_token_types([2, 3, 3] + [6] * 256 + [1] * (VOCABULARY - 259))  # unknown, control, bytes, words
    draw = numpy.random.default_rng(1)
    shapes = {"token_embd": (VOCABULARY, HIDDEN), "output": (VOCABULARY, HIDDEN), "output_norm": (HIDDEN,)}
    for layer in range(LAYERS):
        shapes.update({f"blk.{layer}.{name}": shape for name, shape in {
            "attn_norm": (HIDDEN,), "ffn_norm": (HIDDEN,), "attn_q": (HIDDEN, HIDDEN), "attn_k": (HIDDEN, HIDDEN),
            "attn_v": (HIDDEN, HIDDEN), "attn_output": (HIDDEN, HIDDEN), "ffn_gate": (INNER, HIDDEN),
            "ffn_up": (INNER, HIDDEN), "ffn_down": (HIDDEN, INNER)}.items()})
    for name, shape in shapes.items():
        values = numpy.ones(shape) if len(shape) == 1 else draw.standard_normal(shape) * 0.3
        file.add_tensor(name + ".weight", values.astype(numpy.float32))
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()
    print("{}")


if __name__ == "__main__":
    main()
