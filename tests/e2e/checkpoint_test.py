"""Models as files, written here byte by byte from the formats' descriptions (not by the program's own code): a folder
with config.json and model.safetensors that the workload runs, a GGUF file, an index without its files, files that are
something else."""
import json
import os
import pathlib
import struct
import unittest

import harness

HIDDEN, LAYERS, HEADS, KV_HEADS, MLP, VOCABULARY = 32, 2, 4, 2, 64, 50
CONFIG = {"model_type": "llama", "hidden_size": HIDDEN, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
          "num_key_value_heads": KV_HEADS, "intermediate_size": MLP, "vocab_size": VOCABULARY,
          "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": False,
          "torch_dtype": "bfloat16"}
# Two norms, q and o, k and v, three matrices of the MLP; embedding, last norm, lm_head.
PARAMETERS = LAYERS * (2 * 32 + 2 * 32 * 32 + 2 * 32 * 16 + 3 * 32 * 64) + 2 * 50 * 32 + 32


def hf_shapes():
    shapes = {"model.embed_tokens.weight": (VOCABULARY, HIDDEN), "model.norm.weight": (HIDDEN,),
              "lm_head.weight": (VOCABULARY, HIDDEN)}
    for layer in range(LAYERS):
        kv = HIDDEN // HEADS * KV_HEADS
        for name, shape in {"input_layernorm": (HIDDEN,), "self_attn.q_proj": (HIDDEN, HIDDEN),
                            "self_attn.k_proj": (kv, HIDDEN), "self_attn.v_proj": (kv, HIDDEN),
                            "self_attn.o_proj": (HIDDEN, HIDDEN), "post_attention_layernorm": (HIDDEN,),
                            "mlp.gate_proj": (MLP, HIDDEN), "mlp.up_proj": (MLP, HIDDEN),
                            "mlp.down_proj": (HIDDEN, MLP)}.items():
            shapes[f"model.layers.{layer}.{name}.weight"] = shape
    return shapes


def product(shape):
    count = 1
    for size in shape:
        count *= size
    return count


def write_safetensors(path, shapes, dtype="F32", size=4):
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in shapes.items():
        end = offset + product(shape) * size
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + struct.pack("<f", 0.01) * (offset // 4))


GGUF_NAMES = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
              "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
              "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "post_attention_layernorm": "ffn_norm",
              "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}


def gguf_name(name):
    name = name.removesuffix(".weight")
    if not name.startswith("model.layers."):
        return GGUF_NAMES[name] + ".weight"
    _, _, layer, rest = name.split(".", 3)
    return f"blk.{layer}.{GGUF_NAMES[rest]}.weight"


def write_gguf(path, shapes):
    """Matrices as Q8_0 (blocks of 32 values: a half and 32 bytes), vectors as F32."""
    def text(value):
        return struct.pack("<Q", len(value)) + value.encode()
    keys = [text("general.architecture") + struct.pack("<I", 8) + text("llama")]
    for key, value in {"block_count": LAYERS, "embedding_length": HIDDEN, "feed_forward_length": MLP,
                       "context_length": 64, "attention.head_count": HEADS, "attention.head_count_kv": KV_HEADS}.items():
        keys.append(text("llama." + key) + struct.pack("<II", 4, value))
    keys.append(text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, VOCABULARY) + text("tok") * VOCABULARY)
    infos, offset = [], 0
    for name, shape in shapes.items():
        kind, size = (8, product(shape) // 32 * 34) if len(shape) == 2 else (0, product(shape) * 4)
        infos.append(text(gguf_name(name)) + struct.pack("<I", len(shape)) +
                     b"".join(struct.pack("<Q", n) for n in reversed(shape)) + struct.pack("<IQ", kind, offset))
        offset += size + -size % 32
    header = b"GGUF" + struct.pack("<IQQ", 3, len(infos), len(keys)) + b"".join(keys) + b"".join(infos)
    path.write_bytes(header + b"\0" * (-len(header) % 32) + b"\0" * offset)


class Checkpoints(harness.Case):
    def folder_with(self, config):
        folder = self.folder / "model"
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(config))
        return folder

    def model(self, path, status=0):
        done = self.llmprof("model", str(path), "--device", "t4", "--json", status=status)
        return json.loads(done.stdout) if status == 0 else done.stderr

    def test_a_folder_that_the_workload_runs(self):
        folder = self.folder_with(CONFIG)
        write_safetensors(folder / "model.safetensors", hf_shapes())
        self.run_command([harness.WORKLOAD, "infer", "--config", str(folder / "config.json"), "--weights",
                          str(folder / "model.safetensors"), "--prompt", "4", "--new", "2", "--threads", "1"])
        for path in (folder, folder / "model.safetensors"):
            page = self.model(path)
            self.assertEqual(page["parameters"]["total"], PARAMETERS)
            self.assertEqual(page["memory"]["weights_bytes"], 4 * PARAMETERS)  # the files, not the config, say how much
            self.assertEqual(page["model"]["weight"]["type"], "float32")
            self.assertNotIn("checkpoint", " ".join(page["caveats"]))
        page = self.model(folder / "config.json")
        self.assertEqual(page["memory"]["weights_bytes"], 2 * PARAMETERS)

    def test_a_gguf_file(self):
        write_gguf(self.folder / "m.gguf", hf_shapes())
        page = self.model(self.folder / "m.gguf")
        self.assertEqual(page["parameters"]["total"], PARAMETERS)
        vectors = LAYERS * 2 * HIDDEN + HIDDEN
        self.assertAlmostEqual(page["memory"]["weights_bytes"], vectors * 4 + (PARAMETERS - vectors) * 34 / 32)
        self.assertEqual(page["model"]["weight"]["type"], "q8_0")
        self.assertNotIn("checkpoint", " ".join(page["caveats"]))

    def test_what_the_analysis_does_not_know_is_named(self):
        folder = self.folder_with(CONFIG)
        write_safetensors(folder / "model.safetensors", {**hf_shapes(), "vision_tower.fc.weight": (10, 10)})
        self.assertIn("vision_tower.*: in the checkpoint (1 tensor, 100 values, 400 B), not in the analysis",
                      " ".join(self.model(folder)["caveats"]))

    def test_an_index_without_its_files(self):
        folder = self.folder_with(CONFIG)
        names = {name: "model-00001-of-00002.safetensors" for name in hf_shapes()}
        index = {"metadata": {"total_size": 2 * PARAMETERS}, "weight_map": names}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
        page = self.model(folder)
        self.assertEqual(page["memory"]["weights_bytes"], 2 * PARAMETERS)
        self.assertIn("are not here", " ".join(page["notes"]))

    def test_what_is_not_a_model_is_named(self):
        folder = self.folder_with(CONFIG)
        evil = {"weight_map": {"model.norm.weight": "../../../etc/passwd"}}
        (folder / "model.safetensors.index.json").write_text(json.dumps(evil))
        self.assertIn('"../../../etc/passwd" is not a plain file name', self.model(folder, status=2))
        cases = {"empty.gguf": (b"", "empty, expected a GGUF file"), "one.gguf": (b"G", "not a GGUF file"),
                 "zip.gguf": (b"PK\x03\x04" + b"x" * 60, "this is a zip archive, expected a GGUF file"),
                 "old.gguf": (b"GGUF" + struct.pack("<I", 1) + b"\0" * 60, "GGUF version 1 is not read"),
                 "big.gguf": (b"GGUF" + struct.pack(">I", 3) + b"\0" * 60, "big-endian"),
                 "many.gguf": (b"GGUF" + struct.pack("<IQQ", 3, 2**64 - 1, 0), "18446744073709551615 tensors"),
                 "x.safetensors": (struct.pack("<Q", 2**63) + b"{}", "header length 9223372036854775808"),
                 "config.json": (b"\x80\x02}q\x00.", "this is a pickle, which is code and is not executed")}
        for name, (content, message) in cases.items():
            (self.folder / name).write_bytes(content)
            self.assertIn(message, self.model(self.folder / name, status=2), name)
        os.mkfifo(self.folder / "pipe.gguf")
        self.assertIn("a pipe, not a regular file", self.model(self.folder / "pipe.gguf", status=2))
        self.assertIn("a device, not a regular file", self.model(pathlib.Path("/dev/zero"), status=2))

    def test_nothing_is_fetched(self):
        error = self.model("some-organisation/some-model", status=2)
        self.assertIn("not a built-in name, a file, or a model in the local Hugging Face cache", error)
        self.assertIn("hint:", error)


if __name__ == "__main__":
    unittest.main()
