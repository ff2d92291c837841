"""Operators of language models from Python: the answers of cdmpp-predict, errors; what a step of a model is made of; both adapters on stand-ins of their bases."""
import gzip
import json
import os
import subprocess
import sys
import types
import unittest

import cdmpp_parquet
import cdmpp_serving as serving
from cdmpp import CdmppError
from cdmpp_operators import Answer, Operators

W, B = os.environ["WORK"], os.environ["B"]
MODEL, TABLE, DEVICES = W + "/llm.cdmpp", W + "/llm.csv", "configs/devices.yaml"
LLAMA = dict(num_hidden_layers=32, hidden_size=4096, num_attention_heads=32, num_key_value_heads=8, vocab_size=128256, intermediate_size=14336, hidden_act="silu",
             model_type="llama")


class Millisecond:
    """Answers everything with a millisecond, and keeps what was asked."""

    def __init__(self, refuse=None):
        self.asked, self.refuse = [], refuse

    def ask_many(self, operators):
        self.asked += operators
        return [CdmppError("EMODEL", "none") if o["op"] == self.refuse else Answer(1e-3, None, None, "predicted", (), 1e-3, 1e-3) for o in operators]


class TestOperators(unittest.TestCase):
    def test_answers(self):
        llm = Operators(MODEL, measured=TABLE, devices_file=DEVICES)
        rows = [dict(op="gemm", device="h100", stack="vllm-1", m=m, n=512, k=512) for m in (16, 17, 3)] + [dict(op="gemm", device="h200", m=8, n=64, k=64, dtype="fp8")]
        run = subprocess.run([B + "/cdmpp-predict", "--stream", "--operators", "--cost-model", MODEL, "--measured", TABLE, "--devices", DEVICES],
                             input="".join(json.dumps(r) + "\n" for r in rows), stdout=subprocess.PIPE, text=True, check=True)
        for line, got in zip(run.stdout.splitlines(), llm.ask_many(rows)):
            want = json.loads(line)
            self.assertEqual((want["how"], want["new"] or ""), (got.how, "+".join(got.new)))
            for name, value in (("latency_s", got.seconds), ("low_s", got.low), ("estimate_s", got.estimate), ("bound_s", got.bound)):
                if value is None:
                    self.assertIsNone(want[name])
                else:
                    self.assertAlmostEqual(want[name] / value, 1, 7)
        self.assertEqual(llm.ask(**rows[0]), llm.ask(**rows[0], kernel=None))

    def test_errors(self):
        llm = Operators(MODEL, device="h100", devices_file=DEVICES)
        with self.assertRaises(CdmppError) as e:
            llm.ask(op="gem")
        self.assertEqual(e.exception.code, "EUNSUPPORTED")
        first, second = llm.ask_many([dict(op="gemm", m=1, n=64, k=64), dict(op="gemm", dtyp="fp8")])
        self.assertTrue(first.seconds > 0 and second.code == "ESCHEMA")
        self.assertEqual(llm.ask_many([]), [])
        with self.assertRaises(TypeError):
            llm.ask(op="gemm", m=[1])
        for code, call in (("EIO", lambda: Operators(W + "/none.cdmpp")), ("EMODEL", lambda: Operators(W + "/a.cdmpp", devices_file=DEVICES)),
                           ("ESCHEMA", lambda: Operators(MODEL, device="h9000", devices_file=DEVICES)), ("EUSAGE", lambda: Operators(MODEL, level=7))):
            with self.assertRaises(CdmppError) as e:
                call()
            self.assertEqual(e.exception.code, code)


class TestSteps(unittest.TestCase):
    def test_dense(self):
        ask = Millisecond()
        steps = serving.Steps(ask, serving.Shape.from_config(LLAMA), tp=2, device="h100", dtype="bfloat16")
        # a layer: two norms, products before and behind attention, two calls of attention, two all-reduces, three of the products; behind: a norm, the vocabulary
        self.assertAlmostEqual(steps.seconds([(512, 0), (512, 0)], [100, 300]), 1e-3 * (32 * 11 + 2))
        want = [dict(op="gemm", m=1026, n=3072, k=4096), dict(op="attention_prefill", isl=512, past=0, batch_size=2, num_heads=16, num_key_value_heads=4, head_dim=128, window_size=0),
                dict(op="attention_decode", past=200, batch_size=2, num_heads=16, num_key_value_heads=4, head_dim=128, window_size=0),
                dict(op="gemm", m=1026, n=4096, k=2048), dict(op="gemm", m=1026, n=14336, k=4096), dict(op="elementwise", m=1026, n=7168), dict(op="gemm", m=1026, n=4096, k=7168),
                dict(op="norm", m=4, n=4096), dict(op="gemm", m=4, n=64128, k=4096)]
        for one in want:
            self.assertIn(dict(one, device="h100", dtype="bfloat16"), ask.asked)
        self.assertIn(dict(op="all_reduce", device="h100", dtype="bfloat16", message_bytes=2 * 1026 * 4096, num_gpus=2), ask.asked)
        n = len(ask.asked)
        steps.seconds([(512, 0), (512, 0)], [100, 300])
        self.assertEqual((len(ask.asked), steps.seconds()), (n, 0.0))
        with self.assertRaises(CdmppError):
            serving.Steps(Millisecond("norm"), serving.Shape.from_config(LLAMA)).seconds([(1, 0)])

    def test_experts_and_latent(self):
        ask = Millisecond()
        config = dict(LLAMA, num_hidden_layers=61, hidden_size=7168, num_attention_heads=128, num_key_value_heads=128, intermediate_size=18432, moe_intermediate_size=2048,
                      n_routed_experts=256, num_experts_per_tok=8, n_shared_experts=1, first_k_dense_replace=3, kv_lora_rank=512, q_lora_rank=1536, qk_rope_head_dim=64,
                      qk_nope_head_dim=128, v_head_dim=128)
        steps = serving.Steps(ask, serving.Shape.from_config(config), tp=8, ep=4)
        self.assertAlmostEqual(steps.seconds((), [1000] * 4), 1e-3 * (61 * (2 + 3 + 2 + 1 + 1 + 2) + 3 * 3 + 58 * 5 + 2))
        self.assertIn(dict(op="latent_decode", past=1000, batch_size=4, num_heads=16), ask.asked)
        self.assertIn(dict(op="moe", num_tokens=4, hidden_size=7168, inter_size=2048, topk=8, num_experts=256, moe_tp_size=2, moe_ep_size=4, distribution="power_law_1.2"), ask.asked)
        self.assertIn(dict(op="gemm", m=4, n=512, k=128, batches=16), ask.asked)
        for wrong in (dict(config, kv_lora_rank=256), dict(LLAMA, hidden_act="xielu"), {k: v for k, v in LLAMA.items() if k != "vocab_size"}):
            with self.assertRaises(ValueError):
                serving.Shape.from_config(wrong)
        for tp, ep in ((3, 1), (8, 3)):
            with self.assertRaises(ValueError):
                serving.Steps(ask, serving.Shape.from_config(config), tp=tp, ep=ep)

    def test_as_in_c(self):
        """Windows, dense layers and loads of experts as in predictor/serving/serving_model.c."""
        def shape(**more):
            return serving.Shape.from_config(dict(LLAMA, **more))
        oss = dict(model_type="gpt_oss", num_hidden_layers=36, num_local_experts=128, num_experts_per_tok=4, sliding_window=128, layer_types=["sliding_attention", "full_attention"] * 18)
        ask = Millisecond()
        steps = serving.Steps(ask, shape(**oss))
        self.assertEqual((steps.shape.window, steps.shape.window_layers, steps.shape.dense_layers, steps.shape.skew), (128, 18, 0, 1.2))
        self.assertEqual(sorted((n, q["window_size"]) for n, q in steps.questions((), [500]) if q["op"] == "attention_decode"), [(18, 0), (18, 128)])
        for more, want in ((dict(), (0, 0)), (dict(use_sliding_window=True), (4096, 32)), (dict(use_sliding_window=True, max_window_layers=28), (4096, 4)), (dict(model_type="mistral"), (4096, 32))):
            got = shape(**{"model_type": "qwen2", "sliding_window": 4096, **more})
            self.assertEqual((got.window, got.window_layers), want)
        moe = dict(model_type="qwen3_moe", num_experts=128, num_experts_per_tok=8, moe_intermediate_size=768)
        for more, want in ((dict(), 0), (dict(decoder_sparse_step=2, mlp_only_layers=[0, 2, 1]), 17), (dict(decoder_sparse_step=2, mlp_only_layers=[0]), 16), (dict(mlp_only_layers=[0, 1]), 2)):
            self.assertEqual(shape(**moe, **more).dense_layers, want)
        self.assertEqual(shape(**dict(moe, model_type="deepseek_v3")).skew, 1.01)
        for wrong in (dict(oss, layer_types=["full_attention"]), dict(oss, layer_types=["chunked"] * 36), dict(oss, sliding_window=None), dict(moe, decoder_sparse_step=0),
                      dict(moe, mlp_only_layers=list(range(33)))):
            with self.assertRaises(ValueError):
                shape(**wrong)
        # what C does not read is an error here; so are families that C alone knows
        with open(W + "/mamba.json", "w") as f:
            json.dump(dict(LLAMA, model_type="mamba"), f)
        run = subprocess.run([B + "/cdmpp-replay", "--llm", W + "/mamba.json", "--gpu", "h100", "--cost-model", MODEL, "--devices", DEVICES], stderr=subprocess.PIPE, text=True)
        self.assertEqual(run.returncode, 4)
        self.assertIn("model_type: expected one of", run.stderr)
        for wrong in ("mamba", "gemma2"):
            with self.assertRaisesRegex(ValueError, "^model_type: expected one of .*; found '%s'$" % wrong):
                shape(model_type=wrong)
        with self.assertRaises(ValueError):
            shape(model_type=None)
        with self.assertWarns(UserWarning):
            self.assertEqual(serving.Shape.from_config(dict(model_type="llava", text_config=LLAMA)), shape())
        for wrong in (dict(intermediate_size=1001), dict(moe, moe_intermediate_size=1001), dict(moe, shared_expert_intermediate_size=1001)):
            with self.assertRaises(ValueError):
                serving.Steps(ask, shape(**wrong), tp=8)


class TestParquet(unittest.TestCase):
    """On a stand-in of pyarrow.parquet, which is often not installed."""

    def test_convert(self):
        columns = {"m": [1, 2, None], "latency": [0.1, float("nan"), 1e-07], "kernel_source": ["a", "", None]}
        batches = [types.SimpleNamespace(columns=[types.SimpleNamespace(to_pylist=lambda v=v, s=s: v[s]) for v in columns.values()]) for s in (slice(0, 2), slice(2, 3))]
        stand_in = types.SimpleNamespace(ParquetFile=lambda path: types.SimpleNamespace(schema_arrow=types.SimpleNamespace(names=list(columns)), iter_batches=lambda: iter(batches)))
        to = W + "/out/h100_sxm/gemm.tsv.gz"
        cdmpp_parquet.convert(stand_in, "gemm.parquet", to)
        with gzip.open(to, "rt") as f:
            self.assertEqual(f.read(), "m\tlatency\tkernel_source\n1\t0.1\ta\n2\t\t\n\t1e-07\t\n")
        columns["kernel_source"][0] = "a\tb"
        with self.assertRaises(SystemExit):
            cdmpp_parquet.convert(stand_in, "gemm.parquet", to)
        self.assertEqual(cdmpp_parquet.tables("x/h100_sxm/gemm.parquet"), [("x/h100_sxm/gemm.parquet", "h100_sxm/gemm.parquet")])

    def test_without_pyarrow(self):
        run = subprocess.run([sys.executable, "-c", "import sys; sys.modules['pyarrow'] = None; import cdmpp_parquet; cdmpp_parquet.main(['a', 'b'])"], stderr=subprocess.PIPE, text=True)
        self.assertEqual((run.returncode, "pyarrow is not installed" in run.stderr), (1, True))


class TestAdapters(unittest.TestCase):
    def test_sglang(self):
        class Base:
            def __init__(self, model, hw, config):
                self.model = model
        ask, named = Millisecond(), types.SimpleNamespace
        config = named(pp_size=1, dp_size=1, tp_size=1, ep_size=1, backend_name="sglang", backend_version="0.5.14", data_type=named(value="FP8"), kv_cache_data_type=None)
        p = serving.sglang_predictor(Base)(named(hf_config=LLAMA), named(name="h100_sxm"), config, ask)
        batch = named(reqs=[named(extend_length=n, past_kv_length=past) for n, past in ((512, 0), (1, 700), (1, 0))])
        self.assertAlmostEqual(p.predict_infer_time(batch), 1e-3 * (32 * 10 + 2))
        self.assertIn(dict(op="attention_prefill", isl=1, past=0, batch_size=1, num_heads=32, num_key_value_heads=8, head_dim=128, window_size=0, device="h100_sxm",
                           stack="sglang-0.5.14", dtype="fp8_block", kv_dtype=None), ask.asked)
        with self.assertRaises(ValueError):
            serving.sglang_predictor(Base)(named(hf_config=LLAMA), named(name="h100"), named(**dict(vars(config), pp_size=2)), ask)

    def test_vidur(self):
        class Base:
            def __init__(self, predictor_config, replica_config, replica_scheduler_config, metrics_config):
                self._model_config = replica_config.model_config
        named = types.SimpleNamespace
        model = named(num_layers=32, embedding_dim=4096, num_q_heads=32, num_kv_heads=8, vocab_size=128256, mlp_hidden_dim=14336, use_gated_mlp=True, post_attn_norm=True)
        ask = Millisecond()
        p = serving.vidur_predictor(Base, ask, dtype="bfloat16")(None, named(model_config=model, tensor_parallel_size=2, device="h100"), None, None)
        batch = named(requests=[named(is_prefill_complete=False, num_processed_tokens=0), named(is_prefill_complete=True, num_processed_tokens=700)], num_tokens=[512, 1],
                      total_num_tokens=513)
        for name in ("attention_prefill", "attention_decode", "attention_layer_pre_proj", "attention_layer_post_proj", "mlp_layer_up_proj", "mlp_layer_act", "mlp_layer_down_proj",
                     "attn_norm_layer_act", "mlp_norm_layer_act", "add_layer_act"):
            self.assertAlmostEqual(getattr(p, "_get_%s_execution_time" % name)(batch), 1, msg=name)
        self.assertAlmostEqual(p._get_tensor_parallel_communication_time(batch), 1)
        self.assertEqual(p._get_schedule_time(batch), 0)
        with self.assertRaises(ValueError):
            p._get_pipeline_parallel_communication_time(batch)


if __name__ == "__main__":
    suite = unittest.TestSuite(unittest.defaultTestLoader.loadTestsFromTestCase(c) for c in (TestOperators, TestSteps, TestParquet, TestAdapters))
    result = unittest.TextTestRunner(verbosity=0).run(suite)
    bad = len(result.failures) + len(result.errors)
    print("python: %d passed, %d failed" % (result.testsRun - bad, bad))
    raise SystemExit(bad != 0)
