"""hob's chat compared with llama.cpp's llama-server: the same weights, flags and prompts, in one run.

Environment: HOB and LLAMA_SERVER (the binaries), HOB_HOME (where hob's models are). Both servers run all
the time and only one is asked at a time, in the order A B B A, so that a machine whose speed drifts slows
both. Prints a table in Markdown.
"""

import argparse
import contextlib
import functools
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

import chat_known
from chat_client import MODEL, EndedEarly, Server, servers_of_a_run
from chat_report import Load, Report, memory_mb

PARALLEL = 4
BATCH, MICRO_BATCH = 2048, 512
# Context of one conversation. llama-server takes the sum of all conversations.
CONTEXT = 2048
ANSWER_TOKENS = 128
# A running stream must outlast the prefill of another request, also where a server reads only few of its tokens in each step.
LONG_ANSWER_TOKENS = 1000
# Tokens that every prompt shares: what the template writes before the first message.
SHARED_TOKENS_MAX = 8
PROSE = (
    "The harbour lay quiet under a low grey sky while the last boats came home. Nobody on the quay spoke much, "
    "because the news from the north had travelled faster than the mail. A boy counted the crates twice and wrote "
    "the sum on his sleeve. Above the warehouse a lamp was lit, then another, and the long street began to look like "
    "a row of small stages. The baker closed his shutters early and walked to the bridge to hear what was said there. "
)
# A small model ends most answers soon, but not this one.
LENGTHY = "Write the numbers from 1 to 1000, each on its own line, and nothing else."
REDRAWS_MAX = 10
# Events of one step of an engine are read this soon after each other.
AT_ONCE_S = 0.001
PEOPLE = ("boy", "baker", "captain", "widow", "painter", "judge", "nurse", "smith")
TURN_TOKENS = 32


class Prompts:
    """Prompts of a wanted number of tokens, each new to every cache from its first word on."""

    def __init__(self, counter, seed):
        self.counter, self.random, self.fills = counter, random.Random(seed), {}

    def nonce(self):
        """Digits: the tokenizer takes them one by one, so that all nonces are equally long."""
        return f"{self.random.randrange(10**7, 10**8)}"

    def messages(self, tokens):
        """A conversation that starts with a nonce and asks for a long answer."""
        if tokens not in self.fills:
            self.fills[tokens] = self.fit(tokens)
        return conversation(self.nonce(), self.fills[tokens])

    def fit(self, tokens):
        """Prose, cut so that prompt and template together have that many tokens."""
        words = (PROSE * (tokens // 60 + 1)).split()
        bare, half = self.count(""), " ".join(words[: tokens // 2])
        each = (self.count(half) - bare) / (tokens // 2)
        # A few less than fit, and then a word that is one token.
        fill = " ".join(words[: max(0, int((tokens - bare) / each) - 10)])
        return fill + " sea" * (tokens - self.count(fill))

    def count(self, fill):
        return self.counter.ask(conversation(self.nonce(), fill), 1).prompt_tokens


def conversation(nonce, fill):
    return [
        {"role": "system", "content": nonce},
        {"role": "user", "content": f"{fill} {LENGTHY}" if fill else LENGTHY},
    ]


class Turns:
    """A B B A: each server is as often first as second."""

    def __init__(self, hob, peer):
        self.servers, self.turn = (hob, peer), 0

    def next(self):
        self.turn += 1
        return self.servers if self.turn % 2 else self.servers[::-1]


def cold(answer):
    if answer.cached is None:
        raise RuntimeError(f"{answer.server.name} does not say how much of the prompt was cached")
    if answer.cached > SHARED_TOKENS_MAX:
        raise RuntimeError(f"{answer.server.name}: {answer.cached} tokens of a new prompt came from a cache")
    return answer


class Bench:
    def __init__(self, hob, peer, repetitions, seed, report):
        self.hob, self.peer, self.n, self.report = hob, peer, repetitions, report
        self.prompts, self.redrawn = Prompts(peer, seed), 0
        # llama-server by how it guesses tokens; the empty name does not.
        self.known_peers = {"": peer}

    def rounds(self, once):
        """{server: [figure of each repetition]}; the first round warms up and is not counted."""
        turns, figures = Turns(self.hob, self.peer), {self.hob.name: [], self.peer.name: []}
        for repetition in range(self.n + 1):
            servers = turns.next()
            for server, figure in zip(servers, self.both(servers, once)):
                if repetition:
                    figures[server.name].append(figure)
        return figures

    def both(self, servers, once):
        """Figures of one round. If the answer of a server ends early, both servers get another prompt."""
        for _ in range(REDRAWS_MAX):
            shared = {}
            with contextlib.suppress(EndedEarly):
                return [once(server, shared) for server in servers]
            self.redrawn += 1
        raise RuntimeError(f"{REDRAWS_MAX} prompts in a row whose answers were too short")

    def first_token(self, tokens):
        def once(server, shared):
            answer = self.ask_the_same(server, shared, tokens, 4)
            if abs(answer.prompt_tokens - tokens) > 2:
                raise RuntimeError(f"a prompt of {answer.prompt_tokens} tokens instead of {tokens}")
            return answer.ttft * 1000

        self.report.add(f"TTFT, {tokens:,}-token prompt", "ms", self.rounds(once), "at most", 1.0)

    def decode(self):
        def once(server, shared):
            answer = self.ask_the_same(server, shared, 45, ANSWER_TOKENS)
            return whole(answer, ANSWER_TOKENS).decode_per_s()

        self.report.add(f"decode, {ANSWER_TOKENS} tokens", "tokens/s", self.rounds(once), "at least", 1.0)

    def ask_the_same(self, server, shared, tokens, tokens_max):
        """Sends the prompt of this round, which is new to the server. Both servers must count the same tokens in it."""
        if "messages" not in shared:
            shared["messages"] = self.prompts.messages(tokens)
        answer = cold(server.ask(shared["messages"], tokens_max))
        counted = shared.setdefault("prompt_tokens", answer.prompt_tokens)
        if answer.prompt_tokens != counted:
            raise RuntimeError(f"{server.name} counts {answer.prompt_tokens} tokens in a prompt, the other {counted}")
        return answer

    def four_streams(self):
        def once(server, shared):
            if "prompts" not in shared:
                shared["prompts"] = [self.prompts.messages(45) for _ in range(PARALLEL)]
            running = [server.begin(messages, ANSWER_TOKENS) for messages in shared["prompts"]]
            for answer in running:
                answer.thread.join()
            for answer in running:
                whole(cold(answer.parse()), ANSWER_TOKENS)
            first, last = min(answer.sent for answer in running), max(answer.stamps[-1] for answer in running)
            return sum(answer.tokens for answer in running) / (last - first)

        name = f"{PARALLEL} streams together, prompts included"
        self.report.add(name, "tokens/s", self.rounds(once), "at least", 1.0)

    def conversation(self):
        """Eight turns; the second against the same messages under a number that was never seen before."""

        def once(server, shared):
            known, new = shared.setdefault("numbers", (self.prompts.nonce(), self.prompts.nonce()))
            turns, messages = talk(server, known)
            # System, question, answer, question: what the second turn sent.
            first = cold(server.ask([opening(new), *messages[1:4]], TURN_TOKENS))
            if turns[1].prompt_tokens != first.prompt_tokens:
                raise RuntimeError(f"{turns[1].prompt_tokens} and {first.prompt_tokens} tokens for the same turn")
            return {"turns": turns, "share": turns[1].ttft / first.ttft}

        rounds = self.rounds(once)
        seconds = {name: [round["turns"][1].ttft * 1000 for round in rounds[name]] for name in rounds}
        shares = {name: [round["share"] for round in rounds[name]] for name in rounds}
        self.report.add("second turn of 8, TTFT", "ms", seconds)
        self.report.add("second turn of 8, TTFT against cold", "×", shares, "hob at most", 0.25)
        for name in rounds:
            self.report.say(f"{name}, of the last conversation: " + "; ".join(
                f"turn {turn}: {answer.ttft * 1000:.0f} ms, {answer.cached} of {answer.prompt_tokens} tokens cached"
                for turn, answer in enumerate(rounds[name][-1]["turns"], 1)) + ".")

    def gap(self):
        """The worst gap of a stream while another client's long prompt is read, against its gaps outside that time."""

        def once(server, shared):
            if "pair" not in shared:
                shared["pair"] = self.prompts.messages(45), self.prompts.messages(1100)
                shared["alone"] = self.prompts.messages(1100)
            alone = cold(server.ask(shared["alone"], 4))
            stream = server.begin(shared["pair"][0], LONG_ANSWER_TOKENS)
            stream.begun.wait()
            other = cold(server.ask(shared["pair"][1], 4))
            stream.thread.join()
            whole(stream.parse(), LONG_ANSWER_TOKENS)
            return {"share": gap_share(stream, other), "other": other.ttft * 1000, "slower": other.ttft / alone.ttft}

        rounds = self.rounds(once)
        shares, others, slower = ({name: [round[key] for round in rounds[name]] for name in rounds}
                                  for key in ("share", "other", "slower"))
        self.report.add("worst gap beside a 1,100-token prefill / median gap", "×", shares, "hob at most", 3.0)
        self.report.add("TTFT of that prompt", "ms", others)
        self.report.add("TTFT of that prompt against alone", "×", slower, "hob at most", 2.0)


def opening(number):
    return {"role": "system", "content": f"{number}. {PROSE * 4}"}


def talk(server, number):
    """A conversation as a client holds it: each turn sends all that was said."""
    turns, messages = [], [opening(number)]
    for who in PEOPLE:
        messages.append({"role": "user", "content": f"And what did the {who} do then, in one sentence?"})
        turns.append(server.ask(messages, TURN_TOKENS))
        messages.append({"role": "assistant", "content": turns[-1].text})
    return turns, messages


def gap_share(stream, other):
    """The longest gap of the stream during the other prompt's prefill, divided by the median of its gaps at other times.

    A gap that overlaps the time from the request to its first token is one during the prefill. Tokens that came together
    have no gap.
    """
    begun, over = other.sent, other.stamps[0]
    if stream.stamps[-1] < over:
        raise RuntimeError(f"{stream.server.name}: the stream ended before the other prompt was read")
    gaps = [(a, b) for a, b in zip(stream.stamps, stream.stamps[1:]) if b - a > AT_ONCE_S]
    during = [b - a for a, b in gaps if b > begun and a < over]
    apart = [b - a for a, b in gaps if b <= begun or a >= over]
    return max(during) / statistics.median(apart)


def whole(answer, tokens):
    if answer.tokens != tokens:
        raise EndedEarly(f"{answer.server.name}: {answer.tokens} of {tokens} tokens, finish {answer.finish}")
    return answer


def hobs(folder, log, threads):
    """hob with the settings of this file, on the models of HOB_HOME."""
    config = pathlib.Path(folder) / "hob.toml"
    # How long prompts are cut is hob's own: no flag of llama-server does the same.
    config.write_text(
        f'[chat]\nmodel = "{MODEL}"\ncontext_tokens = {CONTEXT}\nkv_type = "f16"\n'
        f'threads = {threads}\nparallel = {PARALLEL}\nkeep_alive = "forever"\n'
    )
    return Server("hob", [os.environ["HOB"], "serve", "--config", str(config), "--listen", "127.0.0.1:{port}"], log)


def peers(weights, log, threads, flash_attention, more=()):
    command = [
        os.environ["LLAMA_SERVER"], "--model", str(weights), "--host", "127.0.0.1", "--port", "{port}",
        "--ctx-size", str(CONTEXT * PARALLEL), "--parallel", str(PARALLEL), "--threads", str(threads),
        "--threads-batch", str(threads), "--batch-size", str(BATCH), "--ubatch-size", str(MICRO_BATCH),
        "--cache-type-k", "f16", "--cache-type-v", "f16", "--flash-attn", flash_attention, "--jinja",
        # It would copy each conversation aside when another takes its slot, on the next one's time.
        "--cache-ram", "0", "--no-webui", "--offline", *more,
    ]
    return Server("llama-server", command, log)


def weights_of(home):
    found = sorted(pathlib.Path(home).glob(f"models/{MODEL}/**/*.gguf"))
    if len(found) != 1:
        raise RuntimeError(f"{len(found)} GGUF files of {MODEL} under {home}/models, instead of one")
    return found[0]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=7, help="counted repetitions of each figure, at least 5 (default 7)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of each server (default: all cores)")
    parser.add_argument("--flash-attn", default="auto", choices=("auto", "on", "off"), help="of the peer (default auto)")
    parser.add_argument("--seed", type=int, default=None, help="of the prompts' numbers (default: another each time)")
    parser.add_argument("--json", metavar="FILE", help="write the figures there too, after each row")
    parser.add_argument("--only", nargs="+", choices=MEASURES, default=MEASURES, help="some of the figures")
    parser.add_argument("--log", help="keep the servers' output in this file")
    given = parser.parse_args()
    if given.n < 5:
        parser.error("a median of fewer than 5 says nothing")
    return given


MEASURES = {
    "short": lambda bench: bench.first_token(45),
    "long": lambda bench: bench.first_token(1100),
    "decode": Bench.decode,
    "streams": Bench.four_streams,
    "turns": Bench.conversation,
    "gap": Bench.gap,
    **{name: functools.partial(chat_known.measure, name=name) for name in chat_known.WORKLOADS},
}


def main():
    given = arguments()
    subprocess.run([os.environ["HOB"], "pull", MODEL], check=True, stdout=sys.stderr)
    weights = weights_of(os.environ["HOB_HOME"])
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(10**6)
    with (tempfile.TemporaryDirectory() as folder, open(given.log or f"{folder}/log", "w") as log,
          servers_of_a_run() as servers):
        servers.append(hobs(folder, log, given.threads))
        servers.append(peers(weights, log, given.threads, given.flash_attn))
        for server, path in zip(servers, ("/ready", "/health")):
            server.wait_until(path)
        load = Load()
        report = Report(given.json, facts(given, weights, seed))
        report.begin(given.n)
        bench = Bench(*servers, given.n, seed, report)
        if set(given.only) & set(chat_known.WORKLOADS):
            for flags in chat_known.PEER_FLAGS.values():
                servers.append(peers(weights, log, given.threads, given.flash_attn, flags))
                servers[-1].wait_until("/health")
            bench.known_peers = dict(zip(("", *chat_known.PEER_FLAGS), servers[1:]))
        for name in given.only:
            MEASURES[name](bench)
        report.say(f"{bench.redrawn} rounds were asked again, because an answer ended early.")
        report.say("Memory: " + ", ".join(
            f"{server.name} {memory_mb(server.process.pid, 'VmRSS'):.0f} MB "
            f"(peak {memory_mb(server.process.pid, 'VmHWM'):.0f})" for server in servers[:2]) + ".")
        report.say(load.sentence())
        report.end()


def facts(given, weights, seed):
    return {
        "schema": "hob-bench-chat/1",
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "repetitions": given.n,
        "seed": seed,
        "order": "ABBA",
        "count_source": "usage",
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "weights_bytes": weights.stat().st_size,
        "flags": {"context": CONTEXT, "parallel": PARALLEL, "threads": given.threads, "kv": "f16",
                  "batch": BATCH, "micro_batch": MICRO_BATCH, "peer_flash_attention": given.flash_attn},
        "peer": "llama-server b11434",
    }


def cpu_model():
    with contextlib.suppress(OSError):
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return "unknown"


if __name__ == "__main__":
    main()
