"""The servers under test: the mock server, the minimal gateway ("floor"), hob and LiteLLM.

A server is ready when it has answered a chat request through to the mock: a port that is open, or a page that
says so, would be another thing in each of them.
"""

import http.client
import json
import os
import pathlib
import time

from chat_client import READY_SECONDS_MAX, Server
from chat_report import memory_mb

KEY = "sk-hob-bench-0123456789abcdef0123456789abcdef"
# The scripts of the mock server, by the name that hob and LiteLLM give them.
MODELS = {
    "fast": "mock~ttft_ms=0,itl_ms=0,coalesce=16",
    "paced": "mock~ttft_ms=0,itl_ms=10",
    "small": "mock~ttft_ms=0,itl_ms=0,tokens=4,coalesce=16",
}
# hob and LiteLLM have a name of their own for each script.
NAMES = {model: model for model in MODELS}
# How exactly the time to ready is known.
POLL_SECONDS = 0.002


class Asked(Server):
    """A server, its names of the mock server's models, and how long it took to get ready."""

    def __init__(self, name, command, log, environment=None, models=MODELS, prefix="bench-", key=None):
        self.models = {model: f"{prefix}{models[model]}" for model in MODELS}
        self.key, self.started = key, time.perf_counter()
        super().__init__(name, command, log, environment)

    @property
    def pid(self):
        return self.process.pid

    def wait(self):
        """Waits for the first answer. The memory after it counts as that of the idle server."""
        while not self.answers():
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.name} ended with {self.process.returncode}; --log FILE shows why")
            if time.perf_counter() - self.started > READY_SECONDS_MAX:
                raise RuntimeError(f"{self.name} has not answered within {READY_SECONDS_MAX} s; --log FILE shows why")
            time.sleep(POLL_SECONDS)
        self.ready_s = time.perf_counter() - self.started
        self.idle_mb = memory_mb(self.pid, "VmRSS")
        return self

    def answers(self):
        body = {"model": self.models["fast"], "messages": [{"role": "user", "content": "Are you there?"}]}
        headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {self.key}"} if self.key else {})
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


class Servers:
    """Starts the servers. Each gets the address of the mock."""

    def __init__(self, folder, log, hob):
        self.folder, self.log, self.hob = pathlib.Path(folder), log, hob
        self.mock = None

    def start_mock(self):
        command = [os.environ["GATEWAY"], "mock", "--listen", "127.0.0.1:{port}"]
        self.mock = Asked("direct", command, self.log, prefix="")
        return self.mock

    def start(self, name):
        return {"floor": self.start_floor, "hob": self.start_hob, "litellm": self.start_litellm}[name]()

    def start_floor(self):
        command = [os.environ["GATEWAY"], "floor", "--listen", "127.0.0.1:{port}",
                   "--upstream", f"127.0.0.1:{self.mock.port}"]
        return Asked("floor", command, self.log)

    def start_hob(self):
        """With a key, the ledger and metrics, and without a model of its own."""
        config = self.folder / "hob.toml"
        aliases = "".join(f'[alias.bench-{model}]\nto = ["mock/{script}"]\n' for model, script in MODELS.items())
        config.write_text(
            f'home = "{self.folder / "hob"}"\n[chat]\nload = "first_request"\n[ledger]\nenabled = true\n'
            f'[keys.bench]\nsecret = "env:HOB_BENCH_KEY"\n'
            f'[upstream.mock]\nkind = "openai"\nurl = "http://127.0.0.1:{self.mock.port}/v1"\n{aliases}'
        )
        command = [self.hob, "serve", "--config", str(config), "--listen", "127.0.0.1:{port}"]
        return Asked("hob", command, self.log, {"HOB_BENCH_KEY": KEY}, NAMES, key=KEY)

    def start_litellm(self):
        """One worker, one key, no database: the least work that it can be set to."""
        # JSON is YAML, and written without a package.
        config = self.folder / "litellm.yaml"
        upstream = {"api_base": f"http://127.0.0.1:{self.mock.port}/v1", "api_key": "none"}
        models = [{"model_name": f"bench-{model}", "litellm_params": {"model": f"openai/{script}"} | upstream}
                  for model, script in MODELS.items()]
        config.write_text(json.dumps({"model_list": models, "general_settings": {"master_key": KEY}}))
        command = [os.environ["LITELLM"], "--config", str(config), "--host", "127.0.0.1", "--port", "{port}",
                   "--num_workers", "1"]
        # Prices would otherwise be fetched from the network.
        quiet = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR", "NO_PROXY": "127.0.0.1"}
        return Asked("litellm", command, self.log, quiet, NAMES, key=KEY)
