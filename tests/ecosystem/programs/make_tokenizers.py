#!/usr/bin/env python3
"""Trains tiny tokenizers of every kind that `llmprof load` reads, draws texts, and encodes them with the package
`tokenizers`: FOLDER/NAME.json, FOLDER/texts.jsonl, FOLDER/expected.json {name: [ids of a text, ...]}. Prints what was
made. The few of libs/load/testing are made by `make_tokenizers.py libs/load/testing --few`."""
import json
import pathlib
import random
import sys

from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

TEXT = """A load is what many people ask of one server at the same time. The first answer comes when the prompt was read.
We don't know how long they'll wait; the queue decides, and I'd say they've seen worse. 12 requests, 345 tokens in 2026.
def step(batch):
    for request in batch:
        request.tokens += 1
\tif x == 10: y = [1, 2, 3]
Grüße aus Köln, où l'été naïve façade; Ελλάδα και Κύπρος, Москва и Казань, 東京と京都, 서울 부산, שלום עולם, नमस्ते. 1/2 ½ ² Ⅷ
THE SERVER'S QUEUE WE'LL SEE. Time, latency, throughput, goodput and energy: measured, not guessed!? #tags (a) {b} <c/>
"""
GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace("{1,3}", "")
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
SHORT = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
O200K = (rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{SHORT}|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{SHORT}"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK = (r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
            r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
WORDS = ("the The SERVER'S don't we'll I'D 'S 'ſ queue 1 12 123456 0.5 -1 ½ ² Ⅷ ٣ é e\u0301 ﬁ ﬅ Köln naïve Ελλάδα Москва 東京 한국 "
         "\u1100\u1161\u11a8 שלום नमस्ते 🙂 👩‍👩‍👧 <s> </s> <unk> <|end|> <|begin|> <tool> <tool><think> <mask> ▁ ▁▁ Ġ <0x41> ... !? == { } [] "
         "\\ / // ǅ ʰ İ ß ẞ \u0345\u0300 \u0301a \ufeff \ufffd \U0001e900 \U00020000 \u200b #tags _ __init__ $ €").split(" ")
SPACES = [" ", " ", " ", "  ", "   ", "\n", "\r\n", "\n\n", "\t", "\0", "\x85", "\u00a0", "\u3000", "\u2028", " <mask> ",
          "tool call", "a" * 40, " x" * 10]


def texts(count, seed):
    draw = random.Random(seed)

    def character():
        while True:
            code = draw.randrange(1, draw.choice([0x80, 0x250, 0x3000, 0x10000, 0x110000]))
            if not 0xD800 <= code < 0xE000:
                return chr(code)

    def part():
        return draw.choice([draw.choice(WORDS), draw.choice(WORDS), draw.choice(SPACES), draw.choice(SPACES), character()])

    return ["".join(part() for _ in range(draw.randrange(1, draw.choice([4, 12, 60])))) for _ in range(count)]


def edited(tokenizer, change):
    written = json.loads(tokenizer.to_str())
    change(written)
    return Tokenizer.from_str(json.dumps(written))


def trained(split, alphabet, size, **model):
    tokenizer = Tokenizer(models.BPE(**model))
    tokenizer.pre_tokenizer = split
    special = [model["unk_token"]] if "unk_token" in model else []
    if model.get("byte_fallback"):
        special += [f"<0x{byte:02X}>" for byte in range(256)]
    tokenizer.train_from_iterator(TEXT.splitlines() * 3, trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=alphabet, special_tokens=special, show_progress=False))

    def no_bytes(written):  # they are ordinary tokens in real files
        written["added_tokens"] = [each for each in written["added_tokens"] if not each["content"].startswith("<0x")]

    return edited(tokenizer, no_bytes)


def of_bytes(split=None, size=360, **model):
    """Byte-level: `split` cuts, then bytes become characters."""
    last = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=split is None)
    cut = last if split is None else pre_tokenizers.Sequence([*split, last])
    return trained(cut, sorted(pre_tokenizers.ByteLevel.alphabet()), size, **model)


def by(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Split(Regex(pattern), behavior, invert=invert)


def of_words(split, normalizer=None, size=640, **model):
    """SentencePiece-like, with the space as a character of its own."""
    tokenizer = trained(pre_tokenizers.Metaspace(), [], size, **model)
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer = edited(tokenizer, lambda written: written.update(pre_tokenizer=None))
    if split:
        tokenizer.pre_tokenizer = split
    return tokenizer


def few():
    """What the unit tests hold: one of each family."""
    made = {"gpt2": of_bytes(), "llama3": of_bytes([by(LLAMA3)], ignore_merges=True), "qwen2": of_bytes([by(QWEN2)])}
    made["gpt2"].add_special_tokens(["<|end|>"])
    made["llama3"].add_special_tokens(["<|begin|>", "<|end|>"])
    begin = ("<|begin|>", made["llama3"].token_to_id("<|begin|>"))
    made["llama3"].post_processor = processors.Sequence([
        processors.ByteLevel(), processors.TemplateProcessing(single="<|begin|> $A", special_tokens=[begin])])
    made["qwen2"].normalizer = normalizers.NFC()
    made["qwen2"].add_tokens([AddedToken("<tool>", normalized=False), AddedToken("<tool><think>", normalized=True),
                              AddedToken("<mask>", lstrip=True, rstrip=True, normalized=False)])
    bytes_too = dict(byte_fallback=True, fuse_unk=True, unk_token="<unk>")
    spaces = [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    made["llama2"] = of_words(None, normalizers.Sequence(spaces), **bytes_too)
    made["mistral"] = of_words(pre_tokenizers.Metaspace(prepend_scheme="first", split=False), **bytes_too)
    for name in ("llama2", "mistral"):
        made[name].add_special_tokens(["<s>", "</s>"])
        made[name].add_tokens([AddedToken("tool call", normalized=True)])
    return made


def every():
    made, unknown = few(), dict(size=200, unk_token="<unk>")
    made["gpt2 as a pattern"] = of_bytes([by(GPT2)])
    made["o200k"] = of_bytes([by(O200K, "removed", invert=True)])
    made["deepseek"] = of_bytes([by(r"\p{N}{1,3}"), by("[一-龥぀-ゟ゠-ヿ]+"), by(DEEPSEEK)])
    made["starcoder"] = of_bytes([pre_tokenizers.Digits(individual_digits=True), by(GPT2)])
    made["groups of digits"] = of_bytes([pre_tokenizers.Digits(individual_digits=False)])
    made["a space in front"] = of_bytes([pre_tokenizers.ByteLevel(add_prefix_space=True)])
    made["gemma"] = of_words(pre_tokenizers.Split(" ", "merged_with_previous"), normalizers.Replace(" ", "▁"),
                             byte_fallback=True, fuse_unk=True, unk_token="<unk>")
    for scheme in ("always", "first", "never"):
        made[f"metaspace {scheme}"] = of_words(pre_tokenizers.Metaspace(prepend_scheme=scheme), **unknown)
    made["unknown fused"] = of_words(pre_tokenizers.Metaspace(), fuse_unk=True, **unknown)
    made["unknown left out"] = of_words(pre_tokenizers.Metaspace(), size=200)

    def merges_as_text(written):
        written["model"]["merges"] = [" ".join(pair) for pair in written["model"]["merges"]]

    def some_bytes(written):
        written["model"]["byte_fallback"] = True
        written["model"]["vocab"].update({f"<0x{byte:02X}>": 1000 + byte for byte in range(0x80, 0xC8)})

    made["merges as text"] = edited(made["unknown fused"], merges_as_text)
    made["some bytes missing"] = edited(made["unknown fused"], some_bytes)
    for behavior in ("merged_with_previous", "merged_with_next", "contiguous", "removed", "isolated"):
        for invert in (False, True):
            made[f"split {behavior}{' inverted' * invert}"] = of_bytes([by(r"[\s,]|\d", behavior, invert)], size=300)
    return made


def main():
    folder, small = pathlib.Path(sys.argv[1]), "--few" in sys.argv
    made, drawn = few() if small else every(), texts(60 if small else 3000, 1)
    for name, tokenizer in made.items():
        written = json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False, separators=(",", ":"))
        (folder / f"{name}.json").write_text(written + "\n")
    (folder / "texts.jsonl").write_text("".join(json.dumps({"prompt": text}) + "\n" for text in drawn))
    ids = {name: [tokenizer.encode(text, add_special_tokens=False).ids for text in drawn] for name, tokenizer in made.items()}
    (folder / "expected.json").write_text(json.dumps(ids, separators=(",", ":")) + "\n")
    print(json.dumps({"tokenizers": list(made), "texts": len(drawn),
                      "tokens": {name: sum(map(len, each)) for name, each in ids.items()}}))


if __name__ == "__main__":
    main()
