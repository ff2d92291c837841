"""cdmpp_serving -- simulators of serving ask cdmpp how long a step takes.

    Shape.from_config(config.json) --+
    Operators (cdmpp_operators) -----+--> Steps(...).seconds(prefill=[(new, past), ..], decode=[past, ..])
                                            |
    SGLang's simulator   register_sglang("llm.cdmpp", measured=..)      predictor of the name "cdmpp"
    Vidur                register_vidur(operators)                      its ExecutionTime, in place of the random forest

(1) A step is the operators of one GPU: norms, products, attention, experts, all-reduces; then the last norm and the product with the vocabulary. Embeddings, rotary positions,
    the writing of the cache, sampling and what the processor does are not in it: no operator of docs/reference/llm-operators.md is like them.
(2) Sequences with the same new and past tokens are one call of attention; others are calls of their own, and a decode has the mean of the lengths.
(3) Nothing is answered by a default: a configuration that is not understood is a ValueError, an operator that cannot be answered a CdmppError.
"""
import functools
import warnings
from collections import Counter
from typing import NamedTuple

from cdmpp import CdmppError
from cdmpp_operators import Operators

# as predictor/serving/serving_model.c: other architectures have operators that nobody asks here
# The families of which this file makes operators by itself; cdmpp-replay --llm knows more (docs/reference/serving.md).
MODEL_TYPES = ("llama", "mistral", "qwen2", "qwen3", "mixtral", "qwen2_moe", "qwen3_moe", "minimax_m2", "gpt_oss", "deepseek_v2", "deepseek_v3", "kimi_k2")
_LATENT = 512, 64, 128, 128  # ranks of the cache, rotary part, head without it, head of the values: the only ones there are operators of


class Shape(NamedTuple):
    """What a step depends on, of a model. inter 0: no layer has plain products. latent_q: rank of the queries of latent attention; None: attention is not latent."""
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    inter: int = 0
    gated: bool = True
    window: int = 0
    latent_q: int = None
    dense_layers: int = 0
    experts: int = 0
    topk: int = 0
    expert_inter: int = 0
    shared_inter: int = 0
    window_layers: int = 0  # that see `window` tokens only
    skew: float = None  # of the load of experts, a power law; None: not said

    @classmethod
    def from_config(cls, config):
        """Of a config.json of Hugging Face, as a dict or an object with these attributes."""
        get = functools.partial(_member, config)
        text = get("text_config")
        if text is not None:
            warnings.warn("the model %s has parts beside text_config: this is its text part alone" % get("model_type"), stacklevel=2)
            return cls.from_config(text)
        if _need(get, "model_type") not in MODEL_TYPES:
            raise ValueError("model_type: expected one of %s; found '%.40s'" % (", ".join(MODEL_TYPES), get("model_type")))
        layers, hidden, heads = (_need(get, name) for name in ("num_hidden_layers", "hidden_size", "num_attention_heads"))
        experts = get("n_routed_experts", "num_experts", "num_local_experts") or 0
        latent = get("kv_lora_rank")
        if latent is not None and (latent, get("qk_rope_head_dim"), get("qk_nope_head_dim"), get("v_head_dim")) != _LATENT:
            raise ValueError("latent attention of ranks and heads other than %s: no operator is like it" % (_LATENT,))
        window, window_layers = _window(get, layers) if latent is None else (0, 0)
        dense = _dense_layers(get, layers, latent) if experts else layers
        expert_inter = (get("moe_intermediate_size") or get("intermediate_size")) if experts else 0
        shared = get("n_shared_experts") or 0
        return cls(layers, hidden, heads, get("num_key_value_heads") or heads, get("head_dim") or hidden // heads, _need(get, "vocab_size"),
                   inter=_need(get, "intermediate_size") if dense else 0,
                   gated=_gated(get("hidden_act", "activation_function") or "silu"),
                   window=window, window_layers=window_layers, latent_q=None if latent is None else get("q_lora_rank") or 0, dense_layers=dense,
                   experts=experts, topk=_need(get, "num_experts_per_tok") if experts else 0, expert_inter=expert_inter,
                   shared_inter=get("shared_expert_intermediate_size") or shared * expert_inter,
                   skew=(1.01 if get("model_type") in ("deepseek_v3", "kimi_k2") else 1.2) if experts else None)


def _window(get, layers):
    """The window, and how many layers have it: layer_types says, or from max_window_layers on, or all. As predictor/serving/serving_model.c."""
    window, types, said = get("sliding_window") or 0, get("layer_types"), (get("model_type") or "").startswith(("qwen2", "qwen3"))
    if isinstance(types, (list, tuple)):
        n = sum(t == "sliding_attention" for t in types)
        if len(types) != layers or n + sum(t == "full_attention" for t in types) != layers:
            raise ValueError("layer_types: expected full_attention or sliding_attention for each of %d layers" % layers)
        if n and not window:
            raise ValueError("layer_types has layers with a window, and there is no sliding_window")
        return window if n else 0, n
    if not window or (get("use_sliding_window") is not True if said else get("use_sliding_window") is False):
        return 0, 0
    n = max(0, layers - (get("max_window_layers") or 0)) if said else layers
    return window if n else 0, n


def _dense_layers(get, layers, latent):
    """Of a model with experts."""
    each = "decoder_sparse_step" if latent is None else "moe_layer_freq"
    step = 1 if get(each) is None else get(each)
    if step < 1:
        raise ValueError("%s: expected 1 or more" % each)
    first, only = (0, set(get("mlp_only_layers") or ())) if latent is None else (_need(get, "first_k_dense_replace"), set())
    if not 0 <= first <= layers or not only <= set(range(layers)):
        raise ValueError("expected layers of the %d of num_hidden_layers, from 0" % layers)
    return sum(i < first or i in only or (i + (latent is None)) % step > 0 for i in range(layers))


def _share(what, n, over):
    if n % over:
        raise ValueError("%d GPUs do not divide %s %d" % (over, what, n))
    return n // over


def _gated(act):
    """All of MODEL_TYPES multiply the activation with a second product, whichever function it is."""
    if act in ("silu", "swiglu", "geglu", "relu", "gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh"):
        return True
    raise ValueError("an activation that is not known to be gated or plain: %s" % act)


def _member(config, *names):
    for name in names:
        value = config.get(name) if isinstance(config, dict) else getattr(config, name, None)
        if value is not None:
            return value
    return None


def _need(get, name):
    value = get(name)
    if value is None:
        raise ValueError("the configuration of the model has no %s" % name)
    return value


class Steps:
    """Seconds of steps of a model. tp: GPUs that share a layer; ep: that share the experts; values: of every question, as device, stack, dtype, kv_dtype."""

    def __init__(self, operators, shape, tp=1, ep=1, **values):
        for name, n in (("heads", shape.heads), ("experts", shape.experts)):
            over = tp if name == "heads" else ep
            if n % over:
                raise ValueError("%d GPUs do not divide %d %s" % (over, n, name))
        if tp % ep:
            raise ValueError("%d GPUs of experts do not divide the %d of a layer" % (ep, tp))
        _share("the width of products", shape.inter if shape.dense_layers else 0, tp)
        _share("the width of the shared expert", shape.shared_inter, tp)
        _share("the width of experts", shape.expert_inter, tp // ep)
        self.operators, self.shape, self.tp, self.ep, self.values = operators, shape, tp, ep, values
        self._known = {}  # questions come again in every step: a step asks for what is new alone

    # ---- what a step is made of: (times, question) ----
    def _gemm(self, m, n, k, times=1, **more):
        return times, dict(op="gemm", m=m, n=max(1, n // self.tp) if more.pop("split_n", False) else n,
                           k=max(1, k // self.tp) if more.pop("split_k", False) else k, **more)

    def attention(self, prefill, decode, window=0):
        """The attention alone, of one layer."""
        s, heads = self.shape, self.shape.heads // self.tp
        latent = s.latent_q is not None
        more = {"num_heads": heads} if latent else {"num_heads": heads, "num_key_value_heads": max(1, s.kv_heads // self.tp), "head_dim": s.head_dim,
                                                   "window_size": window}
        kinds = ("latent_prefill", "latent_decode") if latent else ("attention_prefill", "attention_decode")
        for (new, past), n in sorted(Counter(prefill).items()):
            yield 1, dict(op=kinds[0], isl=new, past=past, batch_size=n, **more)
        if decode:
            yield 1, dict(op=kinds[1], past=round(sum(decode) / len(decode)), batch_size=len(decode), **more)

    def before_attention(self, m, decode):
        s = self.shape
        if s.latent_q is None:
            yield self._gemm(m, (s.heads + 2 * max(s.kv_heads, self.tp)) * s.head_dim, s.hidden, split_n=True)
            return
        rank, rope, plain, value = _LATENT
        yield self._gemm(m, rank + rope, s.hidden)
        if s.latent_q:
            yield self._gemm(m, s.latent_q, s.hidden)
        yield self._gemm(m, s.heads * (plain + rope), s.latent_q or s.hidden, split_n=True)
        if m > decode:
            yield self._gemm(m - decode, s.heads * (plain + value), rank, split_n=True)
        if decode:  # absorbed: a product for each head, before and behind the attention
            yield self._gemm(decode, rank, plain, batches=s.heads // self.tp)
            yield self._gemm(decode, value, rank, batches=s.heads // self.tp)

    def after_attention(self, m):
        s = self.shape
        yield self._gemm(m, s.hidden, s.heads * (s.head_dim if s.latent_q is None else _LATENT[3]), split_k=True)

    def _plain(self, m, inter, times):
        s = self.shape
        yield self._gemm(m, inter * (2 if s.gated else 1), s.hidden, times, split_n=True)
        yield times, dict(op="elementwise", m=m, n=max(1, inter // self.tp))
        yield self._gemm(m, s.hidden, inter, times, split_k=True)

    def mlp(self, m):
        """Of all layers."""
        s, sparse = self.shape, self.shape.layers - self.shape.dense_layers
        if s.dense_layers:
            yield from self._plain(m, s.inter, s.dense_layers)
        if s.experts and sparse:
            yield self._gemm(m, s.experts, s.hidden, sparse)
            yield sparse, dict(op="moe", num_tokens=m, hidden_size=s.hidden, inter_size=s.expert_inter, topk=s.topk, num_experts=s.experts,
                               moe_tp_size=self.tp // self.ep, moe_ep_size=self.ep, **({"distribution": "power_law_%g" % s.skew} if s.skew else {}))
            if s.shared_inter:
                yield from self._plain(m, s.shared_inter, sparse)

    def all_reduce(self, m):
        return 1, dict(op="all_reduce", message_bytes=2 * m * self.shape.hidden, num_gpus=self.tp, dtype="bfloat16")

    def norm(self, m):
        return 1, dict(op="norm", m=m, n=self.shape.hidden)

    def questions(self, prefill=(), decode=()):
        """(times, question) of one step."""
        m, s = sum(new for new, _ in prefill) + len(decode), self.shape
        layer = [self.norm(m), self.norm(m), *self.before_attention(m, len(decode)), *self.after_attention(m)]
        if self.tp > 1:
            layer += [self.all_reduce(m)] * 2
        last = len(prefill) + len(decode)
        layers = [(n * s.layers, q) for n, q in layer]
        for count, window in ((s.layers - s.window_layers, 0), (s.window_layers, s.window)):
            layers += [(n * count, q) for n, q in self.attention(prefill, decode, window) if count]
        return layers + list(self.mlp(m)) + [self.norm(last), self._gemm(last, s.vocab, s.hidden, split_n=True)]

    # ---- seconds ----
    def ask(self, questions):
        """Seconds of times * questions together; raises the CdmppError of the first that has no answer."""
        keyed = [(n, tuple(sorted(q.items()))) for n, q in questions]
        new = list({k for _, k in keyed} - self._known.keys())
        for k, answer in zip(new, self.operators.ask_many([{**self.values, **dict(k)} for k in new])):
            if isinstance(answer, CdmppError):
                raise answer
            self._known[k] = answer
        return sum(n * self._known[k].seconds for n, k in keyed)

    def seconds(self, prefill=(), decode=()):
        """prefill: (new, past) tokens of each sequence; decode: past tokens of each. 0 of an empty step."""
        return self.ask(self.questions([tuple(p) for p in prefill], list(decode))) if prefill or decode else 0.0


# ---- SGLang's simulator (tools/sglang-simulator of sgl-project/sglang) ----
_SGLANG_TYPES = {"FP32": "float32", "BF16": "bfloat16", "FP16": "float16", "FP8": "fp8_block", "INT8": "int8_wo", "INT4": "int4_wo", "FP4": "nvfp4"}


def _sglang_type(t):
    if t is None:
        return None
    name = t.value.replace("_TENSOR", "")
    if name not in _SGLANG_TYPES:
        raise ValueError("no operators of the type %s" % t.value)
    return "fp8" if t.value == "FP8_TENSOR" else _SGLANG_TYPES[name]


def sglang_predictor(base):
    """A predictor, derived from the simulator's InferTimePredictor (`base`)."""

    class CdmppTimePredictor(base):
        def __init__(self, model, hw, config, operators, **values):
            super().__init__(model, hw, config)
            if config.pp_size != 1 or config.dp_size != 1:
                raise ValueError("pipelines and data-parallel attention are not in a step of this adapter")
            stack = "%s-%s" % (config.backend_name, config.backend_version) if config.backend_version else None
            kv = _sglang_type(config.kv_cache_data_type)
            self.steps = Steps(operators, Shape.from_config(model.hf_config or model), tp=config.tp_size, ep=config.ep_size,
                               **{"device": hw.name, "stack": stack, "dtype": _sglang_type(config.data_type), "kv_dtype": "fp8" if kv == "fp8_block" else kv, **values})

        def predict_infer_time(self, batch):
            """Seconds of the batch: a sequence with one new token and a past is a decode, as in the simulator."""
            parts = [(r.extend_length, r.past_kv_length) for r in batch.reqs]
            return self.steps.seconds([p for p in parts if p[0] > 1 or not p[1]], [past for new, past in parts if new <= 1 and past])

    return CdmppTimePredictor


def register_sglang(model, measured=(), **values):
    """From now on {"predictor": {"name": "cdmpp"}} of the simulator's configuration is answered by the model."""
    from sglang_simulator.simulation.manager.config import ConfigManager
    from sglang_simulator.time_predictor.base import InferTimePredictor
    before, operators, predictor = ConfigManager.get_inference_time_predictor, Operators(model, measured=measured), sglang_predictor(InferTimePredictor)

    def get(cls, info, hw, sched_config):
        if cls._get_raw_config().get("predictor", {}).get("name") != "cdmpp":
            return before(info, hw, sched_config)
        return predictor(info, hw, sched_config, operators, **values)

    ConfigManager.get_inference_time_predictor = classmethod(get)


# ---- Vidur (microsoft/vidur) ----
def vidur_predictor(base, operators, **values):
    """A predictor, derived from Vidur's BaseExecutionTimePredictor (`base`). Its times are milliseconds, of a layer. What the processor does is 0."""

    class CdmppExecutionTimePredictor(base):
        def __init__(self, predictor_config, replica_config, replica_scheduler_config, metrics_config):
            super().__init__(predictor_config, replica_config, replica_scheduler_config, metrics_config)
            c = replica_config.model_config
            shape = Shape(c.num_layers, c.embedding_dim, c.num_q_heads, c.num_kv_heads, c.embedding_dim // c.num_q_heads, c.vocab_size, inter=c.mlp_hidden_dim,
                          gated=c.use_gated_mlp, dense_layers=1)
            self.steps = Steps(operators, shape, tp=replica_config.tensor_parallel_size, **{"device": replica_config.device, **values})

        def _ms(self, questions):
            return 1e3 * self.steps.ask(list(questions))

        def _parts(self, batch):
            """prefill, decode of Steps.seconds."""
            prefill, decode = [], []
            for request, new in zip(batch.requests, batch.num_tokens):
                if request.is_prefill_complete:
                    decode.append(request.num_processed_tokens)
                else:
                    prefill.append((new, request.num_processed_tokens))
            return prefill, decode

        def _get_attention_layer_pre_proj_execution_time(self, batch):
            return self._ms(self.steps.before_attention(batch.total_num_tokens, 0))

        def _get_attention_layer_post_proj_execution_time(self, batch):
            return self._ms(self.steps.after_attention(batch.total_num_tokens))

        def _get_attention_prefill_execution_time(self, batch):
            return self._ms(self.steps.attention(self._parts(batch)[0], []))

        def _get_attention_decode_execution_time(self, batch):
            return self._ms(self.steps.attention([], self._parts(batch)[1]))

        def _get_mlp_layer_up_proj_execution_time(self, batch):
            return self._ms(list(self.steps.mlp(batch.total_num_tokens))[:1])

        def _get_mlp_layer_act_execution_time(self, batch):
            return self._ms(list(self.steps.mlp(batch.total_num_tokens))[1:2])

        def _get_mlp_layer_down_proj_execution_time(self, batch):
            return self._ms(list(self.steps.mlp(batch.total_num_tokens))[2:])

        def _get_attn_norm_layer_act_execution_time(self, batch):
            return self._ms([self.steps.norm(batch.total_num_tokens)])

        def _get_mlp_norm_layer_act_execution_time(self, batch):
            return self._get_attn_norm_layer_act_execution_time(batch) if self._model_config.post_attn_norm else 0

        def _get_add_layer_act_execution_time(self, batch):
            return self._ms([(1, dict(op="elementwise", m=batch.total_num_tokens, n=self.steps.shape.hidden))])

        def _get_tensor_parallel_communication_time(self, batch):
            return self._ms([self.steps.all_reduce(batch.total_num_tokens)])

        def _get_pipeline_parallel_communication_time(self, batch):
            raise ValueError("no operator is like sending to the next stage of a pipeline")

        def _zero(self, batch):
            return 0

        _get_attention_rope_execution_time = _get_attention_kv_cache_save_execution_time = _get_schedule_time = _get_sampler_e2e_time = _zero
        _get_prepare_inputs_e2e_time = _get_process_model_outputs_time = _get_ray_comm_time = _zero

    return CdmppExecutionTimePredictor


def register_vidur(operators, **values):
    """From now on Vidur's default predictor is this one. values: of every question, as stack and dtype."""
    from vidur.execution_time_predictor import BaseExecutionTimePredictor, ExecutionTimePredictorRegistry
    from vidur.types import ExecutionTimePredictorType
    ExecutionTimePredictorRegistry.unregister(ExecutionTimePredictorType.RANDOM_FORREST)
    ExecutionTimePredictorRegistry.register(ExecutionTimePredictorType.RANDOM_FORREST, vidur_predictor(BaseExecutionTimePredictor, operators, **values))
