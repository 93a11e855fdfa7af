"""Writes a tokenizer of single characters into a folder: AIPerf needs one, and would otherwise download its own.

Runs in AIPerf's environment. The mock answers in the same way whatever the tokens of a prompt are.
"""

import json
import pathlib
import sys

from tokenizers import Tokenizer, decoders, models, pre_tokenizers

folder = pathlib.Path(sys.argv[1])
special = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
words = [*special.values(), " ", *map(chr, range(33, 127))]
tokenizer = Tokenizer(models.WordLevel({word: at for at, word in enumerate(words)}, unk_token="<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
tokenizer.decoder = decoders.Fuse()
tokenizer.save(str(folder / "tokenizer.json"))
kind = {"tokenizer_class": "PreTrainedTokenizerFast", **special}
(folder / "tokenizer_config.json").write_text(json.dumps(kind))
(folder / "config.json").write_text(json.dumps({"model_type": "llama"}))
