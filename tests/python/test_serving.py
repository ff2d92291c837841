"""Steps of language models from Python: the times of cdmpp-replay for models of all families, refusals, memory; both adapters on stand-ins of their bases."""
import json
import os
import re
import subprocess
import sys
import types
import unittest
import warnings

import cdmpp_serving as serving
from cdmpp import CdmppError

W, B = os.environ["WORK"], os.environ["B"]
MODEL, TABLE, DEVICES = W + "/steps.cdmpp", W + "/steps.csv", "configs/devices.yaml"
COMMON = dict(measured=TABLE, devices=DEVICES)
LLAMA = dict(num_hidden_layers=32, hidden_size=4096, num_attention_heads=32, num_key_value_heads=8, vocab_size=128256, intermediate_size=14336, torch_dtype="bfloat16",
             model_type="llama")
FP8 = {"quant_method": "fp8", "weight_block_size": [128, 128]}
W4 = {"quant_method": "compressed-tensors", "format": "pack-quantized", "ignore": ["lm_head"],
      "config_groups": {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "int", "group_size": 128, "strategy": "group"}}}}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128}


def setUpModule():
    """A model of all kinds of operators that steps have: made-up times, work over a rate."""
    rows = [dict(op="gemm", m=m, n=n, k=1024, latency_s=3e-6 + m * n * 1e-12) for m in (1, 64, 4096) for n in (512, 8192)]
    rows += [dict(op=kind, message_bytes=b, num_gpus=8, latency_s=8e-6 + b * 1e-11) for kind in ("all_reduce", "all_gather", "reduce_scatter") for b in (1 << 12, 1 << 20, 1 << 26)]
    for past in (128, 1024, 8192):
        for n in (1, 16):
            heads = dict(num_heads=16, batch_size=n, latency_s=4e-6 + n * past * 1e-9)
            keys = dict(num_key_value_heads=4, head_dim=128)
            rows += [dict(op="attention_prefill", isl=past, **{**heads, "latency_s": 4e-6 + n * past * past * 1e-11}, **keys), dict(op="attention_decode", past=past, **heads, **keys), dict(op="latent_prefill", isl=past, **heads),
                     dict(op="latent_decode", past=past, **heads), dict(op="moe", num_tokens=n * past, hidden_size=2048, inter_size=1024, topk=4, num_experts=64, latency_s=1e-5 + n * past * 1e-8)]
    names = sorted({name for row in rows for name in row})
    with open(TABLE, "w") as f:
        f.write(",".join(["device", "stack", *names]) + "\n")
        for i, device in enumerate(("h100", "h200", "b200-sxm")):
            for row in rows:
                f.write(",".join([device, "vllm-1", *(str(row.get(name, "") if name != "latency_s" else row[name] / (1 + i)) for name in names)]) + "\n")
    with open(W + "/steps.yaml", "w") as f:
        f.write("data: {kind: llm_operators, files: [%s]}\noperators: {rounds: 5, max_depth: 3}\ndevice: {file: %s}\n" % (TABLE, DEVICES))
    subprocess.run([B + "/cdmpp-train", W + "/steps.yaml", "-q", "--out", MODEL], check=True, stdout=subprocess.DEVNULL)


def published():
    """(name, config) of tests/support/predictor/published_models.def."""
    with open("tests/support/predictor/published_models.def") as f:
        for name, text in re.findall(r'^M\("([^"]*)", [\d.]+,\s*(.*?)\)$', f.read(), re.S | re.M):
            yield name, json.loads("".join(json.loads('"%s"' % part) for part in re.findall(r'"((?:[^"\\]|\\.)*)"', text)))


def replay(config, gpu, **options):
    """The steps of cdmpp-replay --json: of a prompt of 512, and one that decodes."""
    path = W + "/model.json"
    with open(path, "w") as f:
        json.dump(config, f)
    args = [text for k, v in dict(options, gpu=gpu, cost_model=MODEL, devices=DEVICES, isl=512, osl=64).items() for text in ("--" + k.replace("_", "-"), str(v))]
    run = subprocess.run([B + "/cdmpp-replay", "--llm", path, "--json", *args, "--measured", TABLE], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if run.returncode:
        raise AssertionError(run.stderr)
    return json.loads(run.stdout)["result"]["answers"][0]


class TestSteps(unittest.TestCase):
    def same(self, config, gpu="h200", **options):
        """The step of a prompt and the step that decodes are those of cdmpp-replay, as wholes and operator by operator."""
        want = replay(config, gpu, **options)
        with serving.Steps(config, MODEL, gpu, **COMMON, **options) as steps:
            for key, got in ("prompt_step", dict(prefill=[(512, 0)])), ("decode_step", dict(decode=[544])):
                self.assertEqual(steps.step(**got)["operators"], want[key]["operators"], key)
                self.assertEqual(steps.seconds(**got), want[key]["total_s"], key)
                self.assertGreater(steps.seconds(**got), 0)
        return want

    def test_families(self):
        families = set()
        for name, config in published():
            with self.subTest(name):
                text = config.get("text_config", config)
                families.add(text["model_type"])
                tp = next(n for n in (8, 4, 1) if text.get("num_attention_heads", 8) % n == 0)
                self.same(dict(config, torch_dtype="bfloat16"), tp=tp, ep=1, pp=8, memory_share=1)
        for family in ("llama", "qwen2", "mixtral", "qwen3_moe", "gpt_oss", "gemma2", "deepseek_v3", "deepseek_v32", "qwen3_next", "nemotron_h"):
            self.assertIn(family, families)

    def test_quantised(self):
        for quantised, dtype in ((FP8, "fp8_block"), (W4, "int4_wo"), (AWQ, "int4_wo")):
            want = self.same(dict(LLAMA, quantization_config=quantised))
            self.assertEqual({op["dtype"] for op in want["prompt_step"]["operators"] if op["name"] == "gate_up"}, {dtype})
        deepseek = dict(next(config for name, config in published() if config["model_type"] == "deepseek_v3"), torch_dtype="bfloat16", quantization_config=FP8)
        with serving.Steps(deepseek, MODEL, "h200", dp=2, tp=8, ep=8, **COMMON) as steps:
            self.assertEqual({op["num_tokens"] for op in steps.step(decode=[100], others=9)["operators"] if op["name"] == "experts"}, {10})
        want = self.same(deepseek, tp=8, ep=8)
        self.assertEqual({op["dtype"] for op in want["decode_step"]["operators"] if op["name"] == "experts"}, {"fp8_block"})

    def test_mixed(self):
        with serving.Steps(LLAMA, MODEL, "h100", **COMMON) as steps:
            parts = steps.step([(512, 0), (256, 512), (512, 0)], [100, 301])
            runs = {(op.get("isl"), op.get("batch_size")): op["runs"] for op in parts["operators"] if op["name"] == "attention_prompt"}
            self.assertEqual(runs, {(512, 2): 32, (768, 1): 32, (512, 1): -32, (1, 1): 32})  # behind 512 tokens: the attention of all less that of these, and what a call takes at least
            decode, = (op for op in parts["operators"] if op["name"] == "attention_decode")
            self.assertEqual((decode["past"], decode["batch_size"]), (200, 2))
            self.assertEqual({op["m"] for op in parts["operators"] if op["name"] == "qkv"}, {512 + 512 + 256 + 2})
            self.assertEqual({op["m"] for op in parts["operators"] if op["name"] == "vocabulary"}, {5})
            self.assertAlmostEqual(parts["total_s"], parts["host_s"] + sum(op["total_s"] for op in parts["operators"]))
            # one by one: only attention differs
            self.assertGreater(steps.seconds([(256, 512)], host=False), steps.seconds([(256, 0)], host=False))
            self.assertEqual(steps.seconds(), 0)
            with self.assertRaisesRegex(CdmppError, "no experts"):
                steps.seconds(decode=[100], others=9)
            self.assertEqual(steps.about["model_type"], "llama")

    def test_memory(self):
        with serving.Steps(LLAMA, MODEL, "h100", **COMMON) as steps:
            asked, ask = [], steps._ask
            steps._ask = lambda request: asked.append(request) or ask(request)
            first = steps.seconds([(8, 0), (9, 0)], [100, 300])
            self.assertEqual((steps.seconds([(9, 0), (8, 0)], [200, 200]), len(asked)), (first, 1))
            steps.seconds([(8, 0), (9, 0)], [100, 304])
            self.assertEqual(len(asked), 2)
            steps.close()
            self.assertEqual(steps.seconds([(8, 0), (9, 0)], [100, 300]), first)  # begins again

    def test_refused(self):
        def steps(config=LLAMA, gpu="h100", **options):
            return serving.Steps(config, MODEL, gpu, **{**COMMON, **options})
        for code, text, make in (("EUNSUPPORTED", "model_type: expected one of", lambda: steps(dict(LLAMA, model_type="mamba"))),
                                 ("ESCHEMA", "no device 'h9000'", lambda: steps(gpu="h9000")), ("ERANGE", "expected a divisor of num_attention_heads 32", lambda: steps(tp=3)),
                                 ("ESCHEMA", "vocab_size", lambda: steps({k: v for k, v in LLAMA.items() if k != "vocab_size"})),
                                 ("EIO", "none.cdmpp", lambda: serving.Steps(LLAMA, W + "/none.cdmpp", "h100", **COMMON)),
                                 ("EUSAGE", "--no-such", lambda: steps(no_such=1)), ("EUSAGE", "found 2 combinations", lambda: steps(tp="1,2"))):
            with self.assertRaises(CdmppError) as e:
                make()
            self.assertIn(text, str(e.exception))
            self.assertEqual(e.exception.code, code)
            self.assertNotRegex(str(e.exception), r"tmp\w+\.json")  # the file that a dict is written to
        with steps() as good:
            with self.assertRaises(CdmppError) as e:
                good.seconds([(0, 3)])
            self.assertEqual((e.exception.code, str(e.exception)), ("ERANGE", "prefill[0]: expected a whole number of tokens in 1..1e9, found 0"))
            self.assertGreater(good.seconds([(1, 3)]), 0)  # one bad step costs itself
        with self.assertWarnsRegex(UserWarning, "this is its text part"):
            steps(dict(model_type="llava", text_config=LLAMA)).close()


# What of SGLang's simulator the adapter meets, in our words: the predictor's base class, who chooses the predictor by the configuration, and the scheduler's process.
SIMULATOR = {"__init__.py": "", "time_predictor/__init__.py": "", "simulation/__init__.py": "", "simulation/manager/__init__.py": "", "time_predictor/base.py": """
from abc import ABC, abstractmethod
class InferTimePredictor(ABC):
    def __init__(self, model, hw, config, *args, **kwargs):
        self.model, self.hw, self.config = model, hw, config
    @abstractmethod
    def predict_infer_time(self, batch):
        pass
""", "simulation/manager/config.py": """
import json, os
class ConfigManager:
    @classmethod
    def _get_raw_config(cls):
        with open(os.environ["SGLANG_SIMULATOR_CONFIG_PATH"]) as f:
            return json.load(f)
    @classmethod
    def get_inference_time_predictor(cls, model, hw, sched_config):
        raise ValueError("Unknown predictor name: " + cls._get_raw_config()["predictor"]["name"])
""", "worker.py": """
from types import SimpleNamespace as named
from sglang_simulator.simulation.manager.config import ConfigManager
def run(folder):
    config = named(tp_size=2, ep_size=1, dp_size=1, pp_size=1, cp_size=1, backend_name="sglang", backend_version="0.5.16", data_type=None, kv_cache_data_type=None)
    predictor = ConfigManager.get_inference_time_predictor(named(hf_config=None, model_path=folder), named(name="h100_sxm"), config)
    print(repr(predictor.predict_infer_time(named(reqs=[named(extend_length=512, past_kv_length=0)]))))
"""}
MAIN = """
import multiprocessing, sys, warnings
import cdmpp_serving
warnings.simplefilter("ignore")
cdmpp_serving.register_sglang(%r, measured=%r, devices=%r, host=False)
from sglang_simulator.worker import run
if __name__ == "__main__":
    process = multiprocessing.get_context("spawn").Process(target=run, args=sys.argv[1:])
    process.start()
    process.join()
    sys.exit(process.exitcode)
""" % (MODEL, TABLE, os.path.abspath(DEVICES))
named = types.SimpleNamespace


def sglang_config(**fields):
    """A SchedulerConfig of the simulator; a type is a member of its enumeration."""
    types = {k: named(value=fields.pop(k)) if k in fields else None for k in ("data_type", "kv_cache_data_type")}
    return named(**{**dict(tp_size=2, ep_size=1, dp_size=1, pp_size=1, cp_size=1, cp_style="none", backend_name="sglang", backend_version="0.5.14", moe_quant_mode_override=None,
                           fmha_quant_mode_override=None, comm_quant_mode_override=None), **types, **fields})


def sglang_batch(*reqs):
    return named(reqs=[named(extend_length=new, past_kv_length=past) for new, past in reqs])


def write(path, value):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(value if isinstance(value, str) else json.dumps(value))
    return os.path.dirname(path)


class Base:
    def __init__(self, model, hw, config, *args, **kwargs):
        self.model = model


class TestAdapters(unittest.TestCase):
    def sglang(self, model, hw="h100", host=True, folder=None, **config):
        return serving.sglang_predictor(Base)(named(hf_config=model, model_path=folder), named(name=hw), sglang_config(**config), MODEL, host=host, **COMMON)

    def test_sglang(self):
        batch = sglang_batch((512, 0), (1, 700), (1, 0))
        with serving.Steps(LLAMA, MODEL, "h100", tp=2, stack="sglang-0.5.14", dtype="fp8_block", kv_dtype="int8", **COMMON) as steps:
            types = dict(data_type="FP8", kv_cache_data_type="INT8")
            for host in (True, False):
                self.assertEqual(self.sglang(LLAMA, "h100_sxm", host, **types).predict_infer_time(batch), steps.seconds([(512, 0), (1, 0)], [700], host=host))
            folder = write(W + "/llama/config.json", LLAMA)
            self.assertEqual(self.sglang(None, folder=folder, **types).predict_infer_time(batch), steps.seconds([(512, 0), (1, 0)], [700]))
        p = self.sglang(LLAMA)
        self.assertEqual(p.predict_infer_time(sglang_batch()), 0)
        with self.assertRaisesRegex(CdmppError, "found 0"):
            p.predict_infer_time(sglang_batch((0, 5)))
        for told, dtype in (("FP8", "fp8_block"), ("FP8_TENSOR", "fp8"), ("BF16_TENSOR", "bfloat16"), ("INT4", "int4_wo")):
            self.assertEqual(self.sglang(LLAMA, data_type=told).steps.about["dtype"], dtype)
        for wrong in (dict(pp_size=2), dict(cp_size=2), dict(dp_size=2), dict(tp_size=3, dp_size=2), dict(fmha_quant_mode_override="fp8"), dict(comm_quant_mode_override="half"),
                      dict(data_type="FP2"), dict(kv_cache_data_type="FP64")):
            with self.assertRaises(ValueError):
                self.sglang(LLAMA, **wrong)
        with self.assertRaisesRegex(ValueError, "neither hf_config"):
            self.sglang(None, folder=W + "/none")

    def test_sglang_quantised(self):
        """What the checkpoint says of its types counts before the simulator's one type, also where the simulator has the text part alone."""
        quantised = dict(LLAMA, quantization_config=AWQ)
        self.assertEqual(self.sglang(quantised, data_type="BF16").steps.about["dtype"], "int4_wo")
        folder = write(W + "/images/config.json", dict(model_type="llava", text_config=LLAMA, quantization_config=AWQ))
        self.assertEqual(self.sglang(LLAMA, folder=folder, data_type="BF16").steps.about["dtype"], "int4_wo")
        self.assertEqual(self.sglang(LLAMA, folder=W + "/llama", data_type="BF16").steps.about["dtype"], "bfloat16")

    def test_sglang_experts(self):
        moe = next(dict(config, torch_dtype="bfloat16") for name, config in published() if config["model_type"] == "qwen3_moe")
        p = self.sglang(moe, "h200", tp_size=8, ep_size=8, dp_size=2, moe_quant_mode_override="fp8_block")
        with serving.Steps(moe, MODEL, "h200", tp=4, dp=2, ep=8, stack="sglang-0.5.14", experts_dtype="fp8_block", **COMMON) as steps:
            self.assertEqual(p.predict_infer_time(sglang_batch((512, 0), (1, 700))), steps.seconds([(512, 0)], [700], others=513))
            self.assertNotEqual(steps.seconds([(512, 0)], [700], others=513), steps.seconds([(512, 0)], [700]))

    def test_sglang_registered(self):
        """In the scheduler's process, which runs the main script again."""
        for name, text in SIMULATOR.items():
            write("%s/sim/sglang_simulator/%s" % (W, name), text)
        write(W + "/sim/main.py", MAIN)
        folder = write(W + "/registered/config.json", LLAMA)
        env = dict(os.environ, PYTHONPATH=os.pathsep.join([W + "/sim", os.path.abspath("scripts/python")]), SGLANG_SIMULATOR_CONFIG_PATH=W + "/sim/sim.json")
        for predictor in ("cdmpp", "replay"):
            write(W + "/sim/sim.json", {"predictor": {"name": predictor}})
            run = subprocess.run([sys.executable, W + "/sim/main.py", folder], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            if predictor == "cdmpp":
                with serving.Steps(LLAMA, MODEL, "h100", tp=2, stack="sglang-0.5.16", **COMMON) as steps:
                    self.assertEqual((run.returncode, float(run.stdout or 0)), (0, steps.seconds([(512, 0)], host=False)), run.stderr)
            else:
                self.assertIn("Unknown predictor name: replay", run.stderr)

    def test_vidur(self):
        class Base:
            def __init__(self, predictor_config, replica_config, replica_scheduler_config, metrics_config):
                pass
        layer = ("attention_prefill", "attention_decode", "attention_layer_pre_proj", "attention_layer_post_proj", "attention_rope", "attention_kv_cache_save", "mlp_layer_up_proj",
                 "mlp_layer_act", "mlp_layer_down_proj", "attn_norm_layer_act", "mlp_norm_layer_act", "add_layer_act")
        once = ("schedule_time", "sampler_e2e_time", "prepare_inputs_e2e_time", "process_model_outputs_time", "ray_comm_time")
        batch = named(requests=[named(is_prefill_complete=False, num_processed_tokens=0), named(is_prefill_complete=True, num_processed_tokens=700)], num_tokens=[512, 1])
        for gated in (True, False):
            model = named(num_layers=32, embedding_dim=4096, num_q_heads=32, num_kv_heads=8, vocab_size=128256, mlp_hidden_dim=14336, use_gated_mlp=gated, post_attn_norm=True)
            p = serving.vidur_predictor(Base, MODEL, dtype="bfloat16", **COMMON)(None, named(model_config=model, tensor_parallel_size=2, device="h100"), None, None)
            # as Vidur's ExecutionTime adds them up
            block = sum(getattr(p, "_get_%s_execution_time" % name)(batch) for name in layer) + 2 * p._get_tensor_parallel_communication_time(batch)
            ms = 32 * block + sum(getattr(p, "_get_" + name)(batch) for name in once)
            with serving.Steps(dict(LLAMA, model_type="llama" if gated else "starcoder2"), MODEL, "h100", tp=2, dtype="bfloat16", **COMMON) as steps:
                self.assertAlmostEqual(ms, 1e3 * steps.seconds([(512, 0)], [700]), 9)
        with self.assertRaises(ValueError):
            p._get_pipeline_parallel_communication_time(batch)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # what cdmpp-replay tells of defaults
    suite = unittest.TestSuite(unittest.defaultTestLoader.loadTestsFromTestCase(c) for c in (TestSteps, TestAdapters))
    result = unittest.TextTestRunner(verbosity=0).run(suite)
    bad = len(result.failures) + len(result.errors)  # of parts, too
    print("python: %d passed, %d failed" % (max(0, result.testsRun - bad), bad))
    raise SystemExit(bad != 0)
