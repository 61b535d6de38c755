"""The trainer that settings describe, and its loop, a step at a time: whoever drives it can pause, save and go on."""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np

from tui_transformer.engine.axis import Axes, Shape, shape_of
from tui_transformer.engine.backend import Array, Host
from tui_transformer.engine.gradient import Loss, backward, cross_entropy, kept_for_backward, weight_gradients
from tui_transformer.engine.ops import Dropout, Mask
from tui_transformer.engine.pool import FREE_LIMIT
from tui_transformer.engine.program import Program, Step, by_program
from tui_transformer.engine.trace import Trace
from tui_transformer.engine.weights import Reader, Weights
from tui_transformer.errors import InputError, UsageError
from tui_transformer.learning.data import Batch, Data, read_data, vocabulary_for
from tui_transformer.learning.optimizers import OPTIMIZERS, SCHEDULES, Optimizer, clip, layer_norms, layer_of, squares
from tui_transformer.learning.settings import Settings
from tui_transformer.learning.tasks import task_of
from tui_transformer.machine import available_memory, readable
from tui_transformer.model.loading import fitting
from tui_transformer.model.model import Model
from tui_transformer.model.word_vectors import NORMAL, NewEmbedding, read_vectors
from tui_transformer.records import dataclass, field, replace
from tui_transformer.text.dispatch import load_vocabulary

State = dict[str, dict[str, Array]]
"""Weight → what the optimiser keeps for it."""

TOGETHER = 6
"""Arrays as large as the largest step that are there at once besides what is kept: gradients, scratch, logits."""


@dataclass(frozen=True)
class Measured:
    """How good predictions are: the cross-entropy in nats, and shares of those that are right.

    `accuracy` is of the positions that are `counted`, `exact` of the examples that are right at every position.
    """

    loss: float
    accuracy: float
    counted: int
    exact: float = 0.0

    @property
    def perplexity(self) -> float:
        """E to the cross-entropy: among how many words the model is as good as undecided. ∞ where that is no number."""
        return math.inf if self.loss >= math.log(1e308) else math.exp(self.loss)


@dataclass(frozen=True)
class Record:
    """A step that was made, counted from 1.

    `epoch`: how often all examples have been seen, as a fraction. Loss and accuracy are of the step's examples before
    it: in nats (with label smoothing, against the smoothed targets), and the share of the counted positions whose
    prediction was right. `learning_rate`: that the schedule gave. `gradient_norm`: of all gradients together, before
    clipping; `norms`: the same of each layer. `tokens`: those read, without padding.
    """

    step: int
    epoch: float
    loss: float
    accuracy: float
    learning_rate: float
    gradient_norm: float
    norms: Mapping[str, float]
    tokens: int
    seconds: float

    @property
    def tokens_per_second(self) -> float:
        """The speed."""
        return self.tokens / max(self.seconds, 1e-9)


@dataclass(eq=False)
class Trainer:
    """A model that learns: every step changes its weights, and what the optimiser keeps of them in `state`.

    `step` were made so far. The learning rate is the highest of the schedule, and may be changed between steps.
    """

    settings: Settings
    model: Model
    data: Data
    step: int = 0
    learning_rate: float = 0.0
    state: State = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.learning_rate = self.learning_rate or self.settings.learning_rate
        read = self.model.weights  # copied, all of them, as every step changes them
        held = {name: read.get(name, shape_of(axes)).copy() for name, axes in self.model.program(1).weights.items()}
        self.model = replace(self.model, weights=Weights(self.model.backend, read.read, held))
        for name, weight in self.weights.items():
            kept = self.state.setdefault(name, {})
            for slot in self.optimizer.slots:
                kept.setdefault(slot, self.model.backend.xp.zeros_like(weight))
        needed, free = self.memory, available_memory()
        if needed > free:
            advice = "use a smaller --batch with --accumulate, a smaller --length, or smaller sizes"
            raise InputError(f"a step needs {readable(needed)} of memory and {readable(free)} are free: {advice}")

    @property
    def weights(self) -> dict[str, Array]:
        """The weights by name."""
        return self.model.weights.held

    @property
    def optimizer(self) -> Optimizer:
        """How gradients change weights."""
        return OPTIMIZERS[self.settings.optimizer]

    @property
    def done(self) -> bool:
        """True if all steps were made."""
        return self.step >= self.settings.steps

    @cached_property
    def memory(self) -> int:
        """Bytes that a step takes at most: what the backward pass reads, work space, weights, gradients and state."""
        length = min(self.settings.length, self.model.config.max_length)
        program, item = self.model.program(length, length), self.model.backend.dtype.itemsize

        def cells(*names: str) -> int:
            return sum(math.prod(program.shape(name)) for name in names)

        largest = max(cells(name) for name in program.by_name if name != "output.probabilities")
        examples = min(self.settings.batch, len(self.data.parts[0]))
        made = (cells(*kept_for_backward(program)) + TOGETHER * largest) * examples * item
        idle = min(FREE_LIMIT, made)  # lies ready to be used again
        # Weights, their gradients and the sum of these, and one more while an optimiser works on a weight.
        arrays = 3 + len(self.optimizer.slots)
        return made + idle + (program.weight_count() * arrays + max(map(cells, program.weights))) * item

    def rate(self, step: int) -> float:
        """The learning rate of a step."""
        return self.learning_rate * SCHEDULES[self.settings.schedule](step, self.settings.warm_up, self.settings.steps)

    def advance(self) -> Record:
        """Make one step of the optimiser.

        InputError for a loss or gradient that is no finite number, and nothing is changed.
        """
        started = time.perf_counter()
        first = self.step * self.settings.accumulate
        batches = [(number, self.data.batch(number)) for number in range(first, first + self.settings.accumulate)]
        loss, gradients = self._gradients(batches)
        sums = squares(gradients)
        length = math.sqrt(sum(sums.values()))
        if not math.isfinite(loss.mean + length):
            raise self._broken(batches, loss.mean)
        if self.settings.clip:
            clip(gradients, length, self.settings.clip)
        rate = self.rate(self.step + 1)
        self.update(gradients, rate)
        self.step += 1
        return Record(
            step=self.step,
            epoch=self.step * self.settings.accumulate / self.data.per_epoch,
            loss=loss.mean,
            accuracy=loss.accuracy,
            learning_rate=rate,
            gradient_norm=length,
            norms=layer_norms(sums),
            tokens=sum(batch.tokens for _, batch in batches),
            seconds=time.perf_counter() - started,
        )

    def _gradients(self, batches: list[tuple[int, Batch]]) -> tuple[Loss, dict[str, Array]]:
        """Loss and gradients over all batches of a step, as if they were one."""
        total = sum(batch.counted for _, batch in batches)
        mean, right, sums = 0.0, 0, dict[str, Array]()
        for number, batch in batches:
            trace = self._trace(batch, number)
            loss, gradients = weight_gradients(trace, batch.targets, self.settings.label_smoothing, total)
            mean, right = mean + loss.mean, right + loss.right
            for name, gradient in gradients.items():
                if name in sums:
                    sums[name] += gradient
                else:
                    sums[name] = gradient
        return Loss(mean, right, total), sums

    def _trace(self, batch: Batch, number: int | None = None) -> Trace:
        """The pass over a batch; over one of the training, which has a number, with dropout."""
        mask = None if self.data.task.architecture == "decoder" else batch.mask  # there nothing sees padding at the end
        decoder_ids = cast("Any", batch.decoder_ids)
        trace = self.model.trace(ids=cast("Any", batch.ids), mask=mask, decoder_ids=decoder_ids, budget=0)
        return trace if number is None else with_dropout(trace, self.settings.dropout, self.settings.seed, number)

    def update(self, gradients: Mapping[str, Array], rate: float) -> None:
        """Change the weights; only matrices and embeddings decay."""
        for name, gradient in gradients.items():
            weight, decay = self.weights[name], self.settings.decay if self.weights[name].ndim > 1 else 0.0
            self.optimizer.update(self.model.backend, weight, gradient, self.state[name], rate, self.step + 1, decay)

    def _broken(self, batches: list[tuple[int, Batch]], loss: float) -> InputError:
        """The message where a number is NaN or infinity."""
        places = (where_it_began(self._trace(batch, number), batch.targets) for number, batch in batches)
        last = "the norm of all gradients" if math.isfinite(loss) else "the loss"  # of finite ones its square
        place = next((place for place in places if place != "the loss"), last)
        advice = "use a smaller --learning-rate, more --warm-up, or --clip"
        return InputError(f"step {self.step + 1}: the loss is {loss:g}: NaN or infinity began in {place}: {advice}")

    def validate(self) -> Measured | None:
        """Measure on the examples that are not learned from, without dropout; None where there are none."""
        loss = right = counted = whole = examples = 0.0
        for batch in self.data.validation():
            trace = self._trace(batch)
            of_batch, _ = cross_entropy(trace.backend, trace.array(trace.program.logits), batch.targets)
            loss += of_batch.mean * of_batch.counted
            right += of_batch.right
            counted += of_batch.counted
            whole += of_batch.whole
            examples += len(batch.targets)
        return Measured(loss / counted, right / counted, int(counted), whole / examples) if counted else None


def where_it_began(trace: Trace, targets: Host) -> str:
    """The first weight, step or gradient, in the order of computation, that holds NaN or infinity."""
    trace = Trace(trace.program, trace.weights, trace.givens, budget=1 << 50)  # keep everything
    program = trace.program
    for name in program.weights:
        if _broken(trace, trace.array(name)):
            return f"the weight {name}, in layer {layer_of(name)}"
    for step in program.steps[: program.places[program.logits] + 1]:
        if _broken(trace, trace.array(step.name), hidden=isinstance(step.op, Mask)):
            return f"{step.name}, in layer {step.layer}"
    names: list[str] = []

    def visit(name: str, gradient: Array) -> None:
        if not names and _broken(trace, gradient):
            names.append(name)

    backward(trace, targets, visit)
    return f"the gradient of {names[0]}, in layer {layer_of(names[0])}" if names else "the loss"


def _broken(trace: Trace, array: Array, *, hidden: bool = False) -> bool:
    xp: Any = trace.backend.xp
    wrong = ~(array < math.inf) if hidden else ~(xp.abs(array) < math.inf)
    return bool(wrong.any())


EMBEDDING = "embedding.output"
_LEVELS = 1 << 16


def with_dropout(trace: Trace, rate: float, seed: int, batch: int) -> Trace:
    """The trace of the same input with dropout: the same seed and number of the batch drop the same cells."""
    if not rate:
        return trace
    program = inserted(trace.program, rate)
    masks = {
        name: kept((trace.batch, *program.shape(name)), rate, (seed, batch, zlib.crc32(name.encode())))
        for name in program.givens
        if name not in trace.givens
    }
    return Trace(program, trace.weights, {**trace.givens, **masks}, trace.budget)


@by_program
def inserted(program: Program, rate: float) -> Program:
    """Dropout of the embedding's sum and of every sublayer's output before it is added (Vaswani et al. 2017, §5.4)."""
    added = (name for step in program.steps if step.role == "residual" for name in step.inputs[1:])
    followed = (*(name for name in program.names if name.endswith(EMBEDDING)), *added)
    places = {program.step(name).name: f"{name.rpartition('.')[0]}.dropout" for name in followed}
    givens: dict[str, Axes] = dict(program.givens)
    steps: list[Step] = []
    for step in program.steps:
        steps.append(replace(step, inputs=tuple(places.get(source, source) for source in step.inputs)))
        if step.name in places:
            name = places[step.name]
            givens[f"{name}.kept"] = step.axes
            steps.append(Step(name, Dropout(rate), (step.name, f"{name}.kept"), step.axes))
    return Program(tuple(steps), program.aliases, program.weights, givens)


def kept(shape: tuple[int, ...], rate: float, seed: tuple[int, ...]) -> Host:
    """Which cells are kept: each with probability 1 − rate, to within 2⁻¹⁷."""
    data = np.random.default_rng(seed).bytes(2 * math.prod(shape))
    return (np.frombuffer(data, "<u2") >= round(rate * _LEVELS)).reshape(shape)


SIZES: dict[str, Any] = {"d_model": 128, "heads": 4, "layers": 2, "norm": "pre", "bias": True, "scale_embedding": True}
"""A new model where nothing else is said; its d_ff is 4 · d_model."""


def new_trainer(settings: Settings, lines: Sequence[str]) -> Trainer:
    """A trainer at step 0; InputError where settings, text and model do not go together."""
    if not settings.model:
        return trainer(settings, _new(settings, lines), lines)
    if settings.sizes:
        raise UsageError(f"{', '.join(settings.sizes)}: the sizes of {settings.model} are in its folder")
    if settings.vectors or settings.embedding != NORMAL:
        given = "vectors" if settings.vectors else "embedding"
        raise UsageError(f"--{given}: the embedding of {settings.model} is in its folder")
    vocabulary = settings.vocab or None
    model = Model.load(settings.model, vocabulary=vocabulary, device=settings.device, dtype=settings.dtype)
    return trainer(settings, model, lines)


def trainer(settings: Settings, model: Model, lines: Sequence[str], **more: Any) -> Trainer:
    """A trainer of this model; `more` is where it stands.

    InputError for one that does not fit the task, or has no logits of words or no vocabulary.
    """
    if not model.program(2).logits:
        raise UsageError(f"{model.name} has no logits of words, which every task learns: name another --model")
    masks = [step.op.causal for step in model.program(2).steps if isinstance(step.op, Mask)]
    alone = "decoder" if all(masks) else "encoder"
    wanted, given = task_of(settings.task).architecture, "encoder-decoder" if model.has_decoder else alone
    if wanted != given:
        raise UsageError(f"--task {settings.task} is for {_KINDS[wanted]}: {model.name} is {_KINDS[given]}")
    if model.tokenizer is None:
        raise UsageError(f"{model.name} has no vocabulary: name one with --vocab")
    if settings.length > model.config.max_length:
        raise UsageError(f"--length {settings.length}: {model.name} reads {model.config.max_length} tokens at most")
    data = read_data(settings, lines, model.tokenizer, model.config.start_id)
    return Trainer(settings, model, data, **more)


_KINDS = {
    "encoder": "an encoder",
    "decoder": "a decoder, in which no token sees a later one",
    "encoder-decoder": "an encoder-decoder",
}


def _new(settings: Settings, lines: Sequence[str]) -> Model:
    words = load_vocabulary(settings.vocab) if settings.vocab else vocabulary_for(settings, lines)
    vectors = read_vectors(Path(settings.vectors), words) if settings.vectors else None
    sizes: dict[str, Any] = {**SIZES, **(fitting(vectors, settings.sizes) if vectors else {}), **settings.sizes}
    architecture = sizes.pop("architecture", None) or task_of(settings.task).architecture
    sizes.setdefault("d_ff", 4 * sizes["d_model"])
    if sizes.get("positions") == "learned":
        sizes.setdefault("max_length", settings.length)
    if architecture == "encoder-decoder":
        sizes.setdefault("decoder_layers", sizes["layers"])
    model = Model.load(architecture, vocabulary=words, device=settings.device, dtype=settings.dtype, **sizes)
    embedding = NewEmbedding(settings.embedding, vectors)
    weights = Weights(model.backend, embedding.over(initial_weights(settings.seed), settings.seed))
    return replace(model, weights=weights, embedding=embedding)


def initial_weights(seed: int) -> Reader:
    """Matrices normal with variance 2 ÷ (in + out) (Glorot & Bengio 2010), embeddings with 1 ÷ d, biases 0, γ 1, β 0.

    Every weight has its own stream, from the seed and its name.
    """

    def read(name: str, shape: Shape) -> Host:
        if len(shape) < 2:
            return np.full(shape, 1.0 if name.endswith("norm.weight") else 0.0, dtype=np.float32)
        variance = 1.0 / shape[-1] if "embedding." in name else 2.0 / sum(shape)
        stream = np.random.default_rng([seed, zlib.crc32(name.encode())])
        return stream.standard_normal(shape, dtype=np.float32) * np.float32(math.sqrt(variance))

    return read
