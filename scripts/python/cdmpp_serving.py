"""cdmpp_serving -- simulators of serving ask cdmpp how long a step takes.

    steps = Steps("config.json", "llm.cdmpp", "h100", measured="tables/h100", tp=2, stack="vllm-0.24.0")
    steps.seconds(prefill=[(new, past), ..], decode=[past, ..])

    SGLang's simulator   register_sglang("llm.cdmpp", measured=..)    predictor of the name "cdmpp"
    Vidur                register_vidur("llm.cdmpp", measured=..)     its ExecutionTime, in place of the random forest

(1) cdmpp-replay --llm --stream answers, and runs as long as its Steps: what models, types and operators there are it alone knows (docs/reference/serving.md).
    It is $CDMPP_REPLAY, in the same PREFIX, or where the shell looks.
(2) A step that was asked before is answered from memory: prompts in any order, sequences that decode by their number and mean.
(3) Nothing is answered by a default: what cdmpp-replay refuses is a CdmppError with its text.
"""
import contextlib
import json
import os
import re
import subprocess
import tempfile
import threading
import warnings

from cdmpp import CdmppError

_KEPT = 4096  # answers


def _program():
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "bin", "cdmpp-replay")
    return os.environ.get("CDMPP_REPLAY") or (beside if os.path.exists(beside) else "cdmpp-replay")


def _refused(text):
    """The error that the program ended with: "cdmpp-replay: error: gpu: no device .. [ESCHEMA]"."""
    lines = [line for line in text.splitlines() if line and not line.startswith("Try ")]
    errors = [line for line in lines if ": error: " in line] or lines
    said = errors[-1].split(": error: ", 1)[-1] if errors else "cdmpp-replay ended without a word"
    code = re.search(r" \[(E[A-Z]+)\]$", said)
    return CdmppError(code.group(1) if code else "EUSAGE", said[:code.start()] if code else said)


class Steps:
    """Steps of a model on GPUs. config: a config.json of Hugging Face as its path, a dict or an object with to_dict(); model: of operators of language models;
    measured: a table or folder; options: those of cdmpp-replay --llm, with _ for -, as tp, ep, stack, dtype, kv_dtype, memory_share; None: not given."""

    def __init__(self, config, model, gpu, measured=None, **options):
        given = {"gpu": gpu, "cost_model": model, **options}
        self._args = [text for name, value in given.items() if value is not None for text in ("--" + name.replace("_", "-"), str(value))]
        self._args += ["--measured", str(measured)] if measured else []
        self._config, self._known, self._lock, self._process = config, {}, threading.Lock(), None
        self._start()

    # ---- the program ----
    def _start(self):
        self._errors = tempfile.TemporaryFile("w+")
        config, made = self._config, None
        if not isinstance(config, (str, os.PathLike)):
            config = config if isinstance(config, dict) else config.to_dict()
            with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as made:
                json.dump(config, made, default=str)
        try:
            self._process = subprocess.Popen([_program(), "--llm", made.name if made else os.fspath(config), "--stream", *self._args], stdin=subprocess.PIPE,
                                             stdout=subprocess.PIPE, stderr=self._errors, text=True)
            self._pid = os.getpid()
            self.about = self._ask({"cmd": "hello"})  # model_type, layers, types, notes
        except CdmppError as e:
            raise CdmppError(e.code, str(e).replace(made.name, "the model") if made else str(e)) from None
        finally:
            if made:
                os.unlink(made.name)
        self._errors.seek(0)
        for line in self._errors.read().splitlines():
            warnings.warn(line.replace(made.name, "the model") if made else line, stacklevel=4)

    def _ask(self, request):
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self._process.wait()
            self._errors.seek(0)
            raise _refused(self._errors.read())
        answer = json.loads(line)
        if "error" in answer:
            error = answer["error"]
            raise CdmppError(error["code"], ": ".join(filter(None, (error.get("key"), error["message"]))))
        return answer

    def close(self):
        """Ends the program."""
        if self._process and self._pid == os.getpid():
            for pipe in (self._process.stdin, self._process.stdout, self._errors):
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
            self._process.wait()
        self._process = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "_process", None):
            self.close()

    # ---- answers ----
    def step(self, prefill=(), decode=(), others=0):
        """others: with dp, tokens that the other copies compute at the same time. The answer of cdmpp-replay: total_s, host_s (what of it is of no operator), operators [{name, kind, sizes.., runs, total_s, how}]."""
        past = list(decode)
        key = tuple(sorted((int(new), int(before)) for new, before in prefill)), len(past), sum(past) // len(past) if past else 0, others
        with self._lock:
            if self._process is None or self._pid != os.getpid():  # closed, or a process that was forked: two must not share a pipe
                self._start()
            if key not in self._known:
                if len(self._known) >= _KEPT:
                    self._known.clear()
                self._known[key] = self._ask({"prefill": [list(p) for p in key[0]], "decode": [key[2]] * key[1], "others": others})
            return self._known[key]

    def seconds(self, prefill=(), decode=(), others=0, host=True):
        """prefill: (new, past) tokens of each sequence; decode: past tokens of each. 0 of an empty step. host False: without host_s, the part of the host and of a lasting load (lift)."""
        answer = self.step(prefill, decode, others)
        return answer["total_s"] - (0 if host else answer["host_s"])


# ---- SGLang's simulator (tools/sglang-simulator of sgl-project/sglang) ----
_SGLANG_TYPES = {"FP32": "float32", "BF16": "bfloat16", "FP16": "float16", "FP8": "fp8_block", "FP8_TENSOR": "fp8", "INT8": "int8_wo", "INT4": "int4_wo", "FP4": "nvfp4"}
_SGLANG_CACHE = {**_SGLANG_TYPES, "FP8": "fp8", "INT8": "int8"}
_SGLANG_LEFT_OUT = {"pp_size": 1, "cp_size": 1, "fmha_quant_mode_override": None, "comm_quant_mode_override": None}


def _sglang_type(t, types):
    if t is None:
        return None
    name = t.value if t.value in types else t.value.replace("_TENSOR", "")
    if name not in types:
        raise ValueError("no operators of the type %s" % t.value)
    return types[name]


def _sglang_model(model):
    """What Steps reads, and whether it says types of its own. The simulator has the text part alone; how a model that also reads images is quantised stands in its file."""
    config, whole = model.hf_config, {}
    path = os.path.join(model.model_path, "config.json") if model.model_path else ""
    if os.path.exists(path):
        with open(path) as f:
            whole = json.load(f)
    if config is None and not whole:
        raise ValueError("the simulator has neither hf_config of the model nor a config.json in its model_path")
    config = dict(whole if config is None else config if isinstance(config, dict) else config.to_dict())
    types = [part["quantization_config"] for part in (config, config.get("text_config") or {}, whole, whole.get("text_config") or {}) if part.get("quantization_config")]
    if types:
        config["quantization_config"] = types[0]
    return config, bool(types)


def sglang_predictor(base):
    """A predictor, derived from the simulator's InferTimePredictor (`base`)."""

    class CdmppTimePredictor(base):
        def __init__(self, model, hw, config, cost_model, measured=None, host=True, **options):
            super().__init__(model, hw, config)
            for name, without in _SGLANG_LEFT_OUT.items():
                if getattr(config, name, without) != without:
                    raise ValueError("%s %s is not in a step of this adapter" % (name, getattr(config, name)))
            if config.tp_size % config.dp_size:
                raise ValueError("tp_size %d is of dp_size %d copies of attention: expected a multiple" % (config.tp_size, config.dp_size))
            stack = "%s-%s" % (config.backend_name, config.backend_version) if config.backend_version else config.backend_name
            described, quantised = _sglang_model(model)
            self._host, self._others = host, config.dp_size - 1
            self.steps = Steps(described, cost_model, hw.name, measured, **{
                "tp": config.tp_size // config.dp_size, "dp": config.dp_size, "ep": config.ep_size, "stack": stack,
                "dtype": None if quantised else _sglang_type(config.data_type, _SGLANG_TYPES), "kv_dtype": _sglang_type(config.kv_cache_data_type, _SGLANG_CACHE),
                "experts_dtype": getattr(config, "moe_quant_mode_override", None), **options})
            if self._others and not any(op["name"] == "experts" for op in self.steps.step([(1, 0)])["operators"]):
                raise ValueError("dp_size %d: copies of attention are of models with experts" % config.dp_size)

        def predict_infer_time(self, batch):
            """Seconds of the batch: a sequence with one new token and a past is a decode. The batch is of one copy of attention; the others have as many tokens."""
            parts = [(r.extend_length, r.past_kv_length) for r in batch.reqs]
            return self.steps.seconds([p for p in parts if p[0] != 1 or not p[1]], [past for new, past in parts if new == 1 and past],
                                      self._others * sum(new for new, _ in parts), self._host)

    return CdmppTimePredictor


def register_sglang(cost_model, measured=None, **options):
    """From now on {"predictor": {"name": "cdmpp"}} of the simulator's configuration is answered by the model. Of this process: SGLang starts its scheduler as a new one,
    which runs the main script again, so this stands there outside of `if __name__ == "__main__"`. host=False: without the host's part. Other options: of Steps."""
    from sglang_simulator.simulation.manager.config import ConfigManager
    from sglang_simulator.time_predictor.base import InferTimePredictor
    before, predictor = ConfigManager.get_inference_time_predictor, sglang_predictor(InferTimePredictor)

    def get(cls, model, hw, sched_config):
        if cls._get_raw_config().get("predictor", {}).get("name") != "cdmpp":
            return before(model, hw, sched_config)
        return predictor(model, hw, sched_config, cost_model, measured, **options)

    ConfigManager.get_inference_time_predictor = classmethod(get)


# ---- Vidur (microsoft/vidur) ----
def _vidur_model(c):
    """Vidur describes a dense model by its sizes and names no family: of those of cdmpp-replay one with a gate, and one without."""
    return dict(model_type="llama" if c.use_gated_mlp else "starcoder2", num_hidden_layers=c.num_layers, hidden_size=c.embedding_dim, num_attention_heads=c.num_q_heads,
                num_key_value_heads=c.num_kv_heads, head_dim=c.embedding_dim // c.num_q_heads, intermediate_size=c.mlp_hidden_dim, vocab_size=c.vocab_size,
                tie_word_embeddings=False, sliding_window=None, torch_dtype="bfloat16")


def vidur_predictor(base, cost_model, measured=None, **options):
    """A predictor, derived from Vidur's BaseExecutionTimePredictor (`base`). Its times are milliseconds, of a layer. All of them together are the step of cdmpp-replay."""

    class CdmppExecutionTimePredictor(base):
        def __init__(self, predictor_config, replica_config, replica_scheduler_config, metrics_config):
            super().__init__(predictor_config, replica_config, replica_scheduler_config, metrics_config)
            c = replica_config.model_config
            self._layers, self._norms = c.num_layers, 2 if c.post_attn_norm else 1
            self.steps = Steps(_vidur_model(c), cost_model, replica_config.device, measured, tp=replica_config.tensor_parallel_size, **options)

        def _answer(self, batch):
            prefill, decode = [], []
            for request, new in zip(batch.requests, batch.num_tokens):
                if request.is_prefill_complete:
                    decode.append(request.num_processed_tokens)
                else:
                    prefill.append((new, request.num_processed_tokens))
            return self.steps.step(prefill, decode)

        def _ms(self, batch, *names, over=1):
            return 1e3 * sum(op["total_s"] for op in self._answer(batch)["operators"] if op["name"] in names) / over

        def _norm(self, batch):
            return sum(1e3 * op["total_s"] / op["runs"] for op in self._answer(batch)["operators"] if op["name"] == "norm")

        def _get_attention_layer_pre_proj_execution_time(self, batch):
            return self._ms(batch, "qkv", over=self._layers)

        def _get_attention_layer_post_proj_execution_time(self, batch):
            return self._ms(batch, "attention_out", over=self._layers)

        def _get_attention_rope_execution_time(self, batch):
            return self._ms(batch, "rope", over=self._layers)

        def _get_attention_prefill_execution_time(self, batch):
            return self._ms(batch, "attention_prompt", over=self._layers)

        def _get_attention_decode_execution_time(self, batch):
            return self._ms(batch, "attention_decode", over=self._layers)

        def _get_mlp_layer_up_proj_execution_time(self, batch):
            return self._ms(batch, "gate_up", "up", over=self._layers)

        def _get_mlp_layer_act_execution_time(self, batch):
            return self._ms(batch, "activation", over=self._layers)

        def _get_mlp_layer_down_proj_execution_time(self, batch):
            return self._ms(batch, "down", over=self._layers)

        def _get_attn_norm_layer_act_execution_time(self, batch):
            return self._norm(batch)

        def _get_mlp_norm_layer_act_execution_time(self, batch):
            return self._norm(batch) if self._norms > 1 else 0

        def _get_tensor_parallel_communication_time(self, batch):
            """Of attention; Vidur takes it for the feed-forward part, too, whose bytes are the same."""
            return self._ms(batch, "all_reduce_attention", over=self._layers)

        def _get_pipeline_parallel_communication_time(self, batch):
            raise ValueError("pipelines are not in a step of this adapter")

        def _get_sampler_e2e_time(self, batch):
            """What is once in a step: Vidur has no other place for it."""
            return self._ms(batch, "embedding", "all_reduce_embedding", "vocabulary", "all_gather_scores") + self._norm(batch)

        def _get_schedule_time(self, batch):
            return 1e3 * self._answer(batch)["host_s"]

        def _zero(self, batch):
            """Adding is part of the norms, writing the cache of rotary positions; the rest is of the host, above."""
            return 0

        _get_attention_kv_cache_save_execution_time = _get_add_layer_act_execution_time = _get_prepare_inputs_e2e_time = _zero
        _get_process_model_outputs_time = _get_ray_comm_time = _zero

    return CdmppExecutionTimePredictor


def register_vidur(model, measured=None, **options):
    """From now on Vidur's default predictor is this one. options: of Steps, as stack and dtype."""
    from vidur.execution_time_predictor import BaseExecutionTimePredictor, ExecutionTimePredictorRegistry
    from vidur.types import ExecutionTimePredictorType
    ExecutionTimePredictorRegistry.unregister(ExecutionTimePredictorType.RANDOM_FORREST)
    ExecutionTimePredictorRegistry.register(ExecutionTimePredictorType.RANDOM_FORREST, vidur_predictor(BaseExecutionTimePredictor, model, measured, **options))
