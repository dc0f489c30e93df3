#!/usr/bin/env python3
"""Times a BERT with the same weights in ONNX Runtime and in canonym, in turns, and prints a table.

    pip install onnx onnxruntime sympy
    cargo build --release -p canonym-neural --example bert_speed
    benches/peers/onnx_speed.py FOLDER target/release/examples/bert_speed [THREADS [ROUNDS [REPORT]]]

FOLDER has config.json and model.safetensors. The graph is written here, operator by operator, and fused by the optimiser for transformers of
ONNX Runtime; with 8-bit weights by its dynamic quantisation. Both programs read the same random wordpieces, and their pooled vectors are
compared first. All sequences of a case have the same length, so nothing is padded. Figures are medians of all repetitions; a ratio above 1 means
that canonym is faster.
"""

import json
import pathlib
import statistics
import struct
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.transformers import optimizer

CASES = ["1x8", "1x32", "1x128", "1x512", "32x128", "128x16"]
SECONDS = 1.0


def weights(folder):
    """The tensors of a safetensors file in single precision."""
    data = (folder / "model.safetensors").read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    found = {}
    for name, entry in header.items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            first, last = entry["data_offsets"]
            found[name.removeprefix("bert.")] = np.frombuffer(data[8 + length + first:8 + length + last], np.float32).reshape(entry["shape"])
    return found


def graph(config, tensors):
    """The encoder with mean pooling."""
    nodes, constants = [], []
    width, n_heads = config["hidden_size"], config["num_attention_heads"]
    depth = width // n_heads

    def constant(name, value):
        constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def node(op, inputs, name, **attributes):
        nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        return name

    def linear(x, name):
        product = node("MatMul", [x, constant(f"{name}.w", tensors[f"{name}.weight"].T)], f"{name}.product")
        return node("Add", [product, constant(f"{name}.b", tensors[f"{name}.bias"])], f"{name}.sum")

    def norm(x, name):
        scale, bias = (constant(f"{name}.{part}", tensors[f"{name}.{part}"]) for part in ("weight", "bias"))
        return node("LayerNormalization", [x, scale, bias], f"{name}.norm", axis=-1, epsilon=config["layer_norm_eps"])

    def heads(x, name, order):
        split = node("Reshape", [x, "split"], f"{name}.split")
        return node("Transpose", [split], f"{name}.heads", perm=order)

    constant("split", np.array([0, 0, n_heads, depth], np.int64))
    constant("merge", np.array([0, 0, width], np.int64))
    constant("root", np.array(np.sqrt(depth), np.float32))
    constant("one", np.array(1.0, np.float32))
    constant("half", np.array(0.5, np.float32))
    constant("root2", np.array(np.sqrt(2.0), np.float32))
    table = "embeddings.{}_embeddings.weight"
    words = node("Gather", [constant("words", tensors[table.format("word")]), "ids"], "word")
    position = node("Gather", [constant("positions", tensors[table.format("position")]), "places"], "position")
    kind = node("Gather", [constant("types", tensors[table.format("token_type")]), "kinds"], "type")
    x = node("Add", [node("Add", [words, kind], "words_and_types"), position], "embedded")
    x = norm(x, "embeddings.LayerNorm")
    for layer in range(config["num_hidden_layers"]):
        at = f"encoder.layer.{layer}"
        query, value = (heads(linear(x, f"{at}.attention.self.{part}"), f"{at}.{part}", [0, 2, 1, 3]) for part in ("query", "value"))
        key = heads(linear(x, f"{at}.attention.self.key"), f"{at}.key", [0, 2, 3, 1])
        scores = node("Div", [node("MatMul", [query, key], f"{at}.products"), "root"], f"{at}.scores")
        mixed = node("MatMul", [node("Softmax", [scores], f"{at}.softmax", axis=-1), value], f"{at}.mixed")
        merged = node("Reshape", [node("Transpose", [mixed], f"{at}.turned", perm=[0, 2, 1, 3]), "merge"], f"{at}.merged")
        x = norm(node("Add", [linear(merged, f"{at}.attention.output.dense"), x], f"{at}.first"), f"{at}.attention.output.LayerNorm")
        inner = linear(x, f"{at}.intermediate.dense")
        erf = node("Add", [node("Erf", [node("Div", [inner, "root2"], f"{at}.scaled")], f"{at}.erf"), "one"], f"{at}.erf_one")
        gelu = node("Mul", [node("Mul", [inner, erf], f"{at}.gelu_twice"), "half"], f"{at}.gelu")
        x = norm(node("Add", [linear(gelu, f"{at}.output.dense"), x], f"{at}.second"), f"{at}.output.LayerNorm")
    node("ReduceMean", [x, constant("axis", np.array([1], np.int64))], "pooled", keepdims=0)
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"]) for name in ("ids", "places", "kinds")]
    outputs = [helper.make_tensor_value_info("pooled", TensorProto.FLOAT, ["batch", width])]
    made = helper.make_graph(nodes, "bert", inputs, outputs, constants)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def drawn(n, length, vocabulary):
    """The wordpieces that the example draws: SplitMix64 with seed 1."""
    mask, state, rows = (1 << 64) - 1, 1, []
    for _ in range(n * length):
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        rows.append(((z ^ (z >> 31)) * vocabulary) >> 64)
    return np.array(rows, np.int64).reshape(n, length)


def timed(once):
    """Milliseconds of each repetition, for SECONDS but at least three times."""
    once()
    started, taken = time.perf_counter(), []
    while len(taken) < 3 or time.perf_counter() - started < SECONDS:
        before = time.perf_counter()
        once()
        taken.append((time.perf_counter() - before) * 1e3)
    return taken


def main(folder, program, threads="2", rounds="3", report=None):
    config = json.loads((pathlib.Path(folder) / "config.json").read_text())
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(threads)
    with tempfile.TemporaryDirectory() as place:
        plain, fused, small = (str(pathlib.Path(place) / f"{name}.onnx") for name in ("plain", "fused", "int8"))
        onnx.save(graph(config, weights(pathlib.Path(folder))), plain)
        model = optimizer.optimize_model(plain, "bert", num_heads=config["num_attention_heads"], hidden_size=config["hidden_size"],
                                         opt_level=0)
        print("fused:", {name: n for name, n in model.get_fused_operator_statistics().items() if n}, file=sys.stderr)
        model.save_model_to_file(fused)
        # The quantised sum of embeddings does not read the places.
        quantize_dynamic(fused, small, op_types_to_quantize=["MatMul", "Attention"], weight_type=QuantType.QInt8,
                         extra_options={"DefaultTensorType": TensorProto.FLOAT})
        sessions = [onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"]) for path in (plain, fused, small)]
    times = {case: ([], [], [], []) for case in CASES}
    for turn in range(int(rounds)):
        for case in CASES:
            n, length = map(int, case.split("x"))
            ids = drawn(n, length, config["vocab_size"])
            fed = {"ids": ids, "places": np.broadcast_to(np.arange(length), ids.shape).copy(), "kinds": np.zeros_like(ids)}
            for session, taken in zip(sessions, times[case]):
                taken.extend(timed(lambda session=session: session.run(None, fed)))
            done = subprocess.run([program, folder, threads, str(SECONDS), case], capture_output=True, text=True, check=True)
            ours = json.loads(done.stdout)
            times[case][3].extend(ours["milliseconds"])
            if turn == 0:
                for session, bound in zip(sessions, (1e-3, 1e-3, 0.5)):
                    least = np.abs(session.run(None, fed)[0][0, :8] - np.array(ours["pooled"])).max()
                    assert least < bound, f"{case}: the vectors differ by {least}"
    titles = ["ONNX Runtime", "fused", "fused, 8-bit weights", "canonym"]
    print(f"onnxruntime {onnxruntime.__version__}, {threads} threads, {rounds} rounds; milliseconds, median (least)")
    print("| case | " + " | ".join(titles) + " | ratio, 32 bits | ratio, 8 bits |\n| --- | --- | --- | --- | --- | --- | --- |")
    for case, all_taken in times.items():
        medians = [statistics.median(taken) for taken in all_taken]
        cells = [f"{median:.2f} ({min(taken):.2f})" for median, taken in zip(medians, all_taken)]
        print(f"| {case} | " + " | ".join(cells) + f" | {min(medians[:2]) / medians[3]:.2f} | {medians[2] / medians[3]:.2f} |")
    if report:
        results = {case: {title: statistics.median(taken) for title, taken in zip(titles, all_taken)} for case, all_taken in times.items()}
        made = {"onnxruntime": onnxruntime.__version__, "threads": int(threads), "rounds": int(rounds), "milliseconds": results}
        pathlib.Path(report).write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(__doc__) if len(sys.argv) < 3 else main(*sys.argv[1:])
