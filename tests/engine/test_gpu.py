"""A real GPU computes what the CPU computes. Skipped, with the reason, where there is none."""

from __future__ import annotations

import numpy as np
import pytest
from op_cases import CASES

from tui_transformer.engine.backend import choose_backend, find_gpu, numpy_backend
from tui_transformer.engine.edits import Edit
from tui_transformer.engine.gradient import gradients
from tui_transformer.engine.ops import LayerNorm, RmsNorm, Softmax
from tui_transformer.model import Model

GPU = find_gpu()
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(GPU.cupy is None, reason=GPU.finding)]
CLOSE = {"rtol": 1e-5, "atol": 1e-5}
TOLERANCES = {"float32": 1e-5, "float64": 1e-12}
SIZES = {"d_model": 32, "layers": 2}
MODERN = {"norm": "pre", "activation": "gelu", "positions": "learned", "bias": True, "tie_output": True}
IDS = [[2, 5, 3, 6, 4], [7, 3, 3, 1, 1]]


MODELS = [("encoder", SIZES), ("decoder", SIZES | MODERN), ("encoder-decoder", SIZES | {"pad_id": 1})]


@pytest.fixture(params=MODELS, ids=[name for name, _ in MODELS])
def traces(request):
    """The same input on the CPU and on the GPU."""
    name, sizes = request.param
    models = (Model.load(name, device=device, **sizes) for device in ("cpu", "gpu"))
    return tuple(model.trace(ids=IDS, decoder_ids=IDS[::-1] if model.has_decoder else None) for model in models)


def test_every_step_is_as_on_the_cpu(traces):
    cpu, gpu = traces
    for name in cpu:
        np.testing.assert_allclose(gpu[name], cpu[name], **CLOSE, err_msg=name)


def test_windows_explanations_and_edits_are_as_on_the_cpu(traces):
    edit = Edit("embedding.tokens", (2, 3), 0.5)
    traces = cpu, gpu = tuple(trace.edited([edit]) for trace in traces)
    for name in cpu:
        region = tuple(range(size // 2, size) for size in cpu.program.shape(name))
        windows = [trace.window(name, region, item=1) for trace in traces]
        np.testing.assert_allclose(*windows, **CLOSE, err_msg=name)
        index = tuple(part.start for part in region)
        explained = [trace.explain_cell(name, index, item=1).recomputed for trace in (gpu, cpu)]
        assert explained[0] == pytest.approx(explained[1], rel=1e-5, abs=1e-5), name


def test_gradients_are_as_on_the_cpu(traces):
    cpu, gpu = (gradients(trace, [[5, 3, -1, 4, 0], [1, 2, 3, -1, -1]]) for trace in traces)
    assert gpu.loss == pytest.approx(cpu.loss, rel=1e-5)
    for name, wanted in cpu.values.items():
        np.testing.assert_allclose(gpu.values[name], wanted, **CLOSE, err_msg=name)


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("name", CASES)
def test_every_operation_is_as_on_the_cpu(name, dtype):
    case = CASES[name](np.random.default_rng(3))
    results = (case.results(backend) for backend in (choose_backend("gpu", dtype), numpy_backend(dtype)))
    for array, wanted in zip(*results, strict=True):
        np.testing.assert_allclose(array, wanted, rtol=TOLERANCES[dtype], atol=TOLERANCES[dtype])


@pytest.mark.parametrize("name", CASES)
def test_an_operation_that_may_write_over_its_first_input_gives_the_same_there(name):
    case, gpu = CASES[name](np.random.default_rng(3)), choose_backend("gpu")
    inputs = case.on(gpu)
    if not case.op.overwrites or inputs[0].shape != (result := case.op.forward(gpu, *inputs)).shape:
        pytest.skip("it never does")
    over = case.op.forward(gpu, *inputs, out=inputs[0])
    np.testing.assert_array_equal(gpu.to_host(over), gpu.to_host(result))


@pytest.mark.parametrize("columns", [1, 31, 32, 33, 1000, 5000])
def test_rows_of_any_length_are_as_on_the_cpu(columns):
    values = np.random.default_rng(5).standard_normal((2, 3, 4, columns)).astype(np.float32)
    odd = values.copy()
    odd[0, 0, 0] = -np.inf
    odd[0, 0, 1, 0] = np.nan
    odd[0, 0, 2, -1] = np.inf
    odd[0, 0, 3] = 1e30
    wide = np.linspace(1, 2, columns, dtype=np.float32)
    for op, inputs in (
        (Softmax(), (odd,)),
        (LayerNorm(), (values, wide, -wide)),
        (LayerNorm(), (values, wide)),
        (RmsNorm(), (values, wide)),
    ):
        with np.errstate(all="ignore"):
            results = [
                backend.to_host(op.forward(backend, *map(backend.floats, inputs)))
                for backend in (choose_backend("gpu"), numpy_backend())
            ]
        np.testing.assert_allclose(*results, rtol=2e-5, atol=2e-5, err_msg=str(op))
