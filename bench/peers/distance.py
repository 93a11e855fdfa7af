"""The distance of two quants by hob and by llama.cpp's llama-perplexity: the same two files, the same text.

Environment: HOB and LLAMA_PERPLEXITY (the binaries), HOB_HOME (where hob's models are). hob writes the second file from
SmolLM2. Prints a table in Markdown. Fails if a figure of hob's is more than 1 % away from the peer's.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from chat import weights_of
from chat_client import MODEL

CONTEXT_TOKENS = 512
DIFFERENCE_MAX = 0.01
TEXT = pathlib.Path(__file__).resolve().parents[2] / "docs" / "ARCHITECTURE.md"
# Name, field of hob's report, factor, and the line of the peer. Its reference has logits of 16 bits, so single tokens
# differ more: percentiles and the largest divergence are shown, and have no bound.
BOUND = [
    ("perplexity of the reference", ("reference_ppl", "value"), 1, r"Mean PPL\(base\) *: *([\d.]+)"),
    ("perplexity", ("quant_ppl", "value"), 1, r"Mean PPL\(Q\) *: *([\d.]+)"),
    ("mean divergence, nats", ("divergence", "value"), 1, r"Mean +KLD: *([\d.]+)"),
    ("RMS change of probability, %", ("probability_difference_rms", "value"), 100, r"RMS Δp *: *([\d.]+)"),
    ("same most likely token, %", ("same_top", "value"), 100, r"Same top p: *([\d.]+)"),
]
SHOWN = [
    ("mean logarithm of the ratio", ("ln_ppl_ratio", "value"), 1, r"Mean ln\(PPL\(Q\)/PPL\(base\)\) *: *(-?[\d.]+)"),
    ("median divergence", ("divergence_median",), 1, r"Median +KLD: *([\d.]+)"),
    ("divergence, 99 %", ("divergence_p99",), 1, r"99\.0% +KLD: *([\d.]+)"),
    ("largest divergence", ("divergence_max",), 1, r"Maximum KLD: *([\d.]+)"),
]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", default="Q4_0", help="the type of the second file")
    parser.add_argument("--text", type=pathlib.Path, default=TEXT)
    parser.add_argument("--pieces", type=int, default=8, help="pieces of 512 tokens")
    return parser.parse_args()


def by_hob(words):
    ran = subprocess.run([os.environ["HOB"], *words], check=True, stdout=subprocess.PIPE, text=True)
    return ran.stdout


def by_peer(model, given, base, words):
    """What llama-perplexity prints. Weights that are repacked for AMX have crashed it."""
    command = [os.environ["LLAMA_PERPLEXITY"], "-m", model, "-f", given.text, "-c", str(CONTEXT_TOKENS)]
    command += ["--chunks", str(given.pieces), "--no-repack", "--kl-divergence-base", base, *words]
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    if ran.returncode:
        sys.exit(f"llama-perplexity failed:\n{ran.stdout[-2000:]}")
    return ran.stdout


def pair(report, said, row):
    """hob's figure and the peer's."""
    _, path, factor, line = row
    for field in path:
        report = report[field]
    found = re.search(line, said)
    if found is None:
        sys.exit(f"llama-perplexity says nothing like {line}:\n{said[-2000:]}")
    return report * factor, float(found[1])


def main():
    given = arguments()
    subprocess.run([os.environ["HOB"], "pull", MODEL], check=True, stdout=sys.stderr)
    reference = weights_of(os.environ["HOB_HOME"])
    with tempfile.TemporaryDirectory() as name:
        quant, base = pathlib.Path(name) / "quant.gguf", pathlib.Path(name) / "logits"
        by_hob(["quantize", reference, "--to", given.to, "--no-importance", "--no-report", "--out", quant])
        words = ["quantize", "distance", reference, quant, "--text", given.text, "--pieces", str(given.pieces)]
        report = json.loads(by_hob([*words, "--json"]))
        by_peer(reference, given, base, [])
        said = by_peer(quant, given, base, ["--kl-divergence"])
    print(f"| {given.to} of {MODEL}, {report['tokens']} tokens | hob | llama-perplexity | apart |\n|---|---|---|---|")
    apart = []
    for row in BOUND + SHOWN:
        ours, theirs = pair(report, said, row)
        difference = abs(ours / theirs - 1) if theirs else abs(ours)
        apart += [row[0]] if row in BOUND and difference > DIFFERENCE_MAX else []
        print(f"| {row[0]} | {ours:.4f} | {theirs:.4f} | {difference:.2%} |")
    if apart:
        sys.exit(f"more than {DIFFERENCE_MAX:.0%} apart: {', '.join(apart)}")


if __name__ == "__main__":
    main()
