"""What is read of PyTorch's optimizers, with tensors that behave as its do, and of which nothing is read."""

from __future__ import annotations

import ctypes
import types
from typing import TYPE_CHECKING

import pytest

from stepscope.agent.optimizer_looks import LOOKS, ROWS, OptimizerLooks

if TYPE_CHECKING:
    from stepscope.agent.core.foreign import Foreign

WIDTH = 20


class Tensor:
    """As much of a tensor as is read; its memory is a float32 array."""

    def __init__(self, *shape: int, filled: int = 0, device: str = "cpu", layout: str = "torch.strided") -> None:
        self.shape = shape
        self.device = types.SimpleNamespace(type=device)
        self.layout = layout
        self.is_sparse = layout == "torch.sparse_coo"
        self.grad: Foreign = None
        size = shape[0] * WIDTH if len(shape) == 2 else 1
        self.memory = (ctypes.c_float * size)(*[1.0] * filled * WIDTH)

    def data_ptr(self) -> int:
        return ctypes.addressof(self.memory)

    def stride(self) -> tuple[int, ...]:
        return (self.shape[-1], 1)

    def element_size(self) -> int:
        return 4


class Wrapped(Tensor):
    """A subclass, whose getters may run the job's code."""

    @property
    def shape(self) -> Foreign:
        raise AssertionError

    @shape.setter
    def shape(self, _: Foreign) -> None:
        pass


Tensor.__module__ = "torch"


class Adam:
    """An optimizer of PyTorch's."""

    def __init__(self, *tensors: Tensor, **group: Foreign) -> None:
        self.param_groups = [{"params": list(tensors), **group}]


Adam.__module__ = "torch.optim.adam"


def table(rows: int, touched: int, device: str = "cpu", layout: str = "torch.strided") -> Tensor:
    """A parameter whose gradient has its first rows touched."""
    made = Tensor(rows, WIDTH, device=device)
    made.grad = Tensor(rows, WIDTH, filled=touched, device=device, layout=layout)
    return made


def seen(optimizer: Foreign, times: int = 1) -> list[dict[str, Foreign]]:
    """The log lines of some looks."""
    lines: list[dict[str, Foreign]] = []
    looks = OptimizerLooks(lines.append, lambda: 5)
    for _ in range(times):
        looks.look(optimizer, 3)
    return lines


def test_tensors_with_a_gradient_are_counted_and_rows_without_one() -> None:
    bias = Tensor(7)
    bias.grad = Tensor(7)
    (line,) = seen(Adam(table(1000, touched=500), Tensor(40, WIDTH), bias, weight_decay=0.1, fused=None))
    (found,) = line.pop("tables")
    assert line == {
        "t": "optimizer",
        "at": 5,
        "name": 3,
        "cls": "Adam",
        "fused": False,
        "closure": False,
        "decays": True,
        "devices": ["cpu"],
        "tensors": 2,
        "elements": 1000 * WIDTH + 7,
    }
    assert (found["rows"], found["columns"], found["sparse"], found["looked"]) == (1000, WIDTH, False, ROWS)
    assert found["zero"] == pytest.approx(ROWS / 2, abs=2)


@pytest.mark.parametrize(("device", "layout"), [("cuda", "torch.strided"), ("cpu", "torch.sparse_coo")])
def test_a_gradient_that_lies_elsewhere_is_not_read(device: str, layout: str) -> None:
    made = table(1000, touched=0, device=device, layout=layout)
    made.grad.memory = None
    ((found,),) = [line["tables"] for line in seen(Adam(made))]
    assert (found["looked"], found["zero"], found["sparse"]) == (0, 0, layout == "torch.sparse_coo")


def test_a_column_of_rows_is_not_read_as_rows() -> None:
    made = table(1000, touched=0)
    made.grad.stride = lambda: (1, 1000)
    ((found,),) = [line["tables"] for line in seen(Adam(made))]
    assert found["looked"] == 0


def test_of_subclasses_and_other_optimizers_nothing_is_read() -> None:
    class Own(Adam):
        pass

    Own.__module__ = "train"
    assert seen(Adam(Wrapped(300, WIDTH))) == seen(Own(table(300, 1))) == seen(None) == []


def test_a_line_is_looked_at_a_few_times() -> None:
    assert len(seen(Adam(table(300, 1)), times=9)) == LOOKS
