#!/usr/bin/env python3
"""A Llama of random weights with a tokenizer: make_tiny_llama.py TOKENIZER.json FOLDER. Prints what it is."""
import json
import sys

import torch
import transformers


def main():
    torch.manual_seed(1)
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=sys.argv[1], bos_token="<s>", eos_token="</s>",
                                                     unk_token="<unk>")
    tokenizer.chat_template = ("{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}"
                               "assistant:")
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=2048, bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id)
    transformers.LlamaForCausalLM(config).save_pretrained(sys.argv[2])
    tokenizer.save_pretrained(sys.argv[2])
    print(json.dumps({"vocabulary": len(tokenizer), "template": tokenizer.apply_chat_template(
        [{"role": "user", "content": "x"}], tokenize=False)}))


if __name__ == "__main__":
    main()
