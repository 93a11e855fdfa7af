"""Gives the same work to hob and to lm-evaluation-harness, which asks a hob server.

Multiple choice: both choose the option with the highest log-probability, and the accuracies must agree.
Perplexity: `hob quantize distance` and the harness score the second half of the same pieces of a text, and must agree.
"""

import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import gguf
import lm_eval
from lm_eval.tasks import TaskManager
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from free_port import free_port

HOB = [os.environ["HOB"], "--config", Path(__file__).resolve().parents[2] / "no-settings.toml"]
HOME = os.environ["HOB_TEST_HOME"]
ITEMS = 300
# Ties and other tokens at the border between question and option.
DIFFERENCE_MAX = 0.01
# Pieces of a text as llama.cpp's perplexity tool cuts them: the tokens behind the first half are scored.
PIECES, PIECE_TOKENS = 6, 512
TEXT = Path(__file__).resolve().parents[3] / "docs" / "guides" / "teams.md"
# A difference of the logarithms: 1 % of the perplexity. A piece that begins within a word can have other tokens there.
LN_DIFFERENCE_MAX = 0.01
HEAD = """
task: NAME
dataset_path: json
dataset_kwargs: {data_files: {test: "FILE"}}
test_split: test
"""
PIECES_TASK = HEAD.replace("NAME", "hob_pieces") + """\
output_type: loglikelihood
doc_to_text: context
doc_to_target: continuation
target_delimiter: ""
metric_list: [{metric: acc}]
"""
TASK = HEAD.replace("NAME", "hob_choices") + """\
output_type: multiple_choice
doc_to_text: "Question: {{prompt}}\\nAnswer:"
doc_to_target: answer
doc_to_choice: choices
metric_list: [{metric: acc}, {metric: acc_norm}]
"""
WORLD = [
    ("What do bees make?", "honey"), ("What do cows give?", "milk"), ("Where do fish live?", "in water"),
    ("What falls from clouds?", "rain"), ("What do we read?", "books"), ("What has four wheels?", "a car"),
    ("What shines at night?", "the moon"), ("What do birds build?", "nests"), ("What tells the time?", "a clock"),
    ("What do bakers bake?", "bread"), ("What is frozen water?", "ice"), ("What do teachers do?", "teach"),
]


def items():
    """The questions, as lines that both programs read."""
    draw = random.Random(1)
    for _ in range(ITEMS):
        if draw.random() < 0.5:
            one, other = draw.randrange(2, 40), draw.randrange(2, 40)
            question, right = f"What is {one} plus {other}?", str(one + other)
            wrong = [str(one + other + step) for step in draw.sample([-11, -2, -1, 1, 2, 10], 3)]
        else:
            question, right = draw.choice(WORLD)
            wrong = draw.sample([answer for _, answer in WORLD if answer != right], 3)
        choices = [right, *wrong]
        draw.shuffle(choices)
        yield {"prompt": question, "choices": choices, "answer": choices.index(right)}


def tokenizer(folder):
    """The tokenizer of the stored model, in the form that lm-evaluation-harness loads."""
    file = next(Path(HOME).glob("models/smollm2/*/model.gguf"))
    fields = gguf.GGUFReader(file).fields

    def texts(key):
        field = fields[f"tokenizer.ggml.{key}"]
        return [bytes(field.parts[at]).decode() for at in field.data]

    vocabulary = {token: at for at, token in enumerate(texts("tokens"))}
    merges = [tuple(pair.split(" ", 1)) for pair in texts("merges")]
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    digits = pre_tokenizers.Digits(individual_digits=True)
    made.pre_tokenizer = pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    made.decoder = decoders.ByteLevel()
    PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|im_end|>").save_pretrained(folder)
    return made


def pieces(made):
    """Context and continuation of each piece of the text."""
    tokens = made.encode(TEXT.read_text()).ids
    scored_from = PIECE_TOKENS // 2 + 1
    for start in range(0, PIECES * PIECE_TOKENS, PIECE_TOKENS):
        piece = tokens[start : start + PIECE_TOKENS]
        context, continuation = made.decode(piece[:scored_from]), made.decode(piece[scored_from:])
        yield {"context": context, "continuation": continuation}


def served(folder):
    """A hob server, and its address when it answers."""
    port = free_port()
    words = [*HOB, "serve", "--listen", str(port)]
    server = subprocess.Popen(words, env={**os.environ, "HOB_HOME": HOME}, cwd=folder, stderr=subprocess.DEVNULL)
    for _ in range(300):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1)
            return server, f"http://127.0.0.1:{port}"
        except OSError:
            time.sleep(0.1)
    server.kill()
    sys.exit("hob does not answer")


def by_hob(folder, address):
    words = [*HOB, "eval", "--file", "choices.jsonl", "--choices-by-logprob", "--json"]
    words += ["--target", address, "--model", "smollm2"]
    ran = subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True)
    return json.loads(ran.stdout)["eval"]


def perplexity_by_hob(folder):
    """The mean negative log-likelihood of a token, and its standard error."""
    words = [*HOB, "quantize", "distance", "smollm2", "smollm2", "--text", TEXT, "--pieces", str(PIECES), "--json"]
    environment = {**os.environ, "HOB_HOME": HOME}
    ran = subprocess.run(words, cwd=folder, env=environment, check=True, capture_output=True, text=True)
    return json.loads(ran.stdout)["reference_ln_ppl"]


def harness(folder, address, task, tokenized):
    arguments = {
        "base_url": f"{address}/v1/completions", "model": "smollm2", "tokenizer": str(folder / "tokenizer"),
        "tokenizer_backend": "huggingface", "tokenized_requests": tokenized, "max_length": 2048,
    }
    return lm_eval.simple_evaluate(
        model="local-completions", model_args=arguments, tasks=[task], batch_size=1,
        task_manager=TaskManager(include_path=str(folder)), bootstrap_iters=0, log_samples=True,
    )


def by_harness(folder, address):
    (folder / "task.yaml").write_text(TASK.replace("FILE", str(folder / "choices.jsonl")))
    return harness(folder, address, "hob_choices", False)["results"]["hob_choices"]


def perplexity_by_harness(folder, address, made):
    """The mean negative log-likelihood of a token, from the log-likelihood of each piece."""
    all_pieces = list(pieces(made))
    (folder / "pieces.jsonl").write_text("".join(json.dumps(piece) + "\n" for piece in all_pieces))
    (folder / "pieces.yaml").write_text(PIECES_TASK.replace("FILE", str(folder / "pieces.jsonl")))
    samples = harness(folder, address, "hob_pieces", True)["samples"]["hob_pieces"]
    log_likelihood = sum(float(sample["filtered_resps"][0][0]) for sample in samples)
    whole = (len(made.encode(piece["context"] + piece["continuation"]).ids) for piece in all_pieces)
    contexts = (len(made.encode(piece["context"]).ids) for piece in all_pieces)
    return -log_likelihood / (sum(whole) - sum(contexts))


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "choices.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items()))
        made = tokenizer(folder / "tokenizer")
        server, address = served(folder)
        try:
            ours, theirs = by_hob(folder, address), by_harness(folder, address)
            ln_theirs = perplexity_by_harness(folder, address, made)
        finally:
            server.terminate()
            server.wait()
        ln_ours = perplexity_by_hob(folder)
    pairs = [("acc", ours["overall"]["accuracy"]), ("acc_norm", ours["accuracy_by_length"])]
    for name, value in pairs:
        print(f"{name}: hob eval {value:.4f}, lm-evaluation-harness {theirs[f'{name},none']:.4f}")
    print(f"hob's interval of acc: {ours['overall']['accuracy_ci95']}")
    if any(abs(value - theirs[f"{name},none"]) > DIFFERENCE_MAX for name, value in pairs):
        sys.exit("they disagree")
    perplexities = math.exp(ln_ours["value"]), math.exp(ln_theirs)
    print("perplexity: hob {:.3f}, lm-evaluation-harness {:.3f}".format(*perplexities))
    print(f"hob's standard error of its logarithm: {ln_ours['error']:.4f}")
    if abs(ln_ours["value"] - ln_theirs) > LN_DIFFERENCE_MAX:
        sys.exit("they disagree about the perplexity")


if __name__ == "__main__":
    main()
