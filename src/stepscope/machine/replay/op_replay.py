"""Replays ops alone, in the job's Python: standard library, numpy and TensorFlow only, Python 3.9 or newer.

Reads one line of JSON (``model.session.replays.ReplayOrder``) and writes a line for each thing measured, at once, so
that a stop loses nothing. TensorFlow is imported once; each number of threads is measured in a forked child, because
TensorFlow makes its threads once for a process.
"""

import functools
import importlib
import itertools
import json
import os
import sys
import time
from types import SimpleNamespace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import ModuleType

    Foreign = ModuleType
    """An object of TensorFlow or numpy: it may have any attribute."""
    Json = dict[str, object]

WARM = 2
"""Runs before those that count: the first traces and optimises."""
MIN_RUNS, MAX_RUNS, MAX_COPIES = 4, 40, 24
OP_NS = 60_000_000
"""Time for the counted runs of one op."""
SLOW_NS = 500_000_000
"""Time after which no further run of one op is needed: so that another way to compute it is measured as well."""
RUN_NS = 4_000_000
"""Least time of one run: short ops are repeated within it."""
DISTINCT_BYTES = 64 << 20
"""Bytes of distinct inputs through which the repetitions go: more than most caches hold."""
MAX_BYTES = 512 << 20
"""Bytes of one op's inputs and outputs: larger ones are not replayed."""
CHAIN = 200
"""Ops of four elements one after another, for the fixed cost of an op."""
FEW_INPUTS = 4
"""Inputs of an op beyond which passing them is measured apart."""
LEAST_OVER_CALL = 1.2
"""Time of a run over the cost of its call, below which the op's own time is the difference of two equal times."""
CALLS, CHAINS = 300, 20
"""Runs of which the fastest counts: of an empty function, and of such a chain."""
PRODUCT = 1024
"""Rows and columns of the matrices for the roof of products."""
COPIES = ((16 << 10, 2000), (256 << 10, 200), (4 << 20, 20), (128 << 20, 1))
"""(bytes read and written by one copy, copies in a run): within the first, second and third cache, and in memory."""
ROOFS_S = 0.8
"""Time that the roofs take, kept free for them."""


def main() -> None:
    """Measure what the order asks for."""
    began = time.monotonic()
    order = json.loads(sys.stdin.readline(), object_hook=lambda fields: SimpleNamespace(**fields))
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    here = os.getcwd()
    sys.path[:] = [p for p in sys.path if p not in {"", here}]  # a numpy.py in the user's folder is not a package
    tf = importlib.import_module("tensorflow")
    say({"what": "begin", "tensorflow": str(tf.__version__), "import_s": time.monotonic() - began})
    deadline = max(began + order.seconds, time.monotonic() + order.least_s)
    for part in order.parts:
        if time.monotonic() < deadline:
            in_child(tf, part, deadline)
    say({"what": "end"})


def say(line: "Json") -> None:
    """Write one line."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def in_child(tf: "Foreign", part: SimpleNamespace, deadline: float) -> None:
    """Measure one part with one number of threads, in a forked child."""
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        return
    try:
        measure(tf, part, deadline)
    finally:
        sys.stdout.flush()
        os._exit(0)


def measure(tf: "Foreign", part: SimpleNamespace, deadline: float) -> None:
    """Measure roofs, and ops with their variants, until time is up."""
    tf.config.set_visible_devices([], "GPU")
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.config.threading.set_intra_op_parallelism_threads(part.threads)
    began, busy = time.monotonic(), busy_s()
    call_ns = cost_of_call(tf)
    if part.roofs:
        say({"what": "fixed", "fixed_ns": fixed_cost(tf, call_ns)})
        deadline -= ROOFS_S
    for recipe in part.recipes:
        if time.monotonic() >= deadline:
            break
        mark = {"what": "op", "key": recipe.key, "variant": recipe.variant, "threads": part.threads}
        try:
            say({**mark, **replay(tf, recipe, call_ns, deadline)})
        except (
            tf.errors.OpError,
            ArithmeticError,
            LookupError,
            MemoryError,
            RuntimeError,
            TypeError,
            ValueError,
        ) as error:
            say({**mark, "problem": "%s: %s" % (type(error).__name__, str(error)[:200])})
    if part.roofs:
        say({"what": "roofs", **roofs(tf, call_ns)})
    say({"what": "busy", "others": max(0.0, busy_s() - busy) / (time.monotonic() - began)})


def busy_s() -> float:
    """CPU seconds that others have used on the CPUs of this process's mask."""
    mine = {"cpu%d" % cpu for cpu in os.sched_getaffinity(0)}
    ticks = 0
    with open("/proc/stat", encoding="ascii") as file:
        for line in file:
            words = line.split()
            if words and words[0] in mine:
                ticks += sum(int(word) for word in (*words[1:4], *words[6:9]))
    own = os.times()
    return ticks / os.sysconf("SC_CLK_TCK") - own.user - own.system


def times_of(run: "Callable[[], object]", budget_ns: int, deadline: float) -> "list[tuple[int, int]]":
    """(duration, time that threads waited for a CPU meanwhile) of runs in ns, the fastest first, after warm-up."""
    for _ in range(WARM):
        run()
    found: "list[tuple[int, int]]" = []
    spent = 0
    while len(found) < MAX_RUNS and (spent < budget_ns or (len(found) < MIN_RUNS and spent < SLOW_NS)):
        waited = waiting_ns()
        at = time.perf_counter_ns()
        run()
        ns = time.perf_counter_ns() - at
        found.append((ns, waiting_ns() - waited))
        spent += ns
        if time.monotonic() > deadline:
            break
    return sorted(found)


def waiting_ns() -> int:
    """Time that the threads of this process were runnable and had no CPU, by the kernel's sched-stats."""
    total = 0
    for thread in os.listdir("/proc/self/task"):
        try:
            with open("/proc/self/task/%s/schedstat" % thread, encoding="ascii") as file:
                total += int(file.read().split()[1])
        except (OSError, IndexError):  # it has ended; or the kernel does not count
            continue
    return total


def fastest_ns(run: "Callable[[], object]", runs: int) -> int:
    """Duration of the fastest of some runs."""
    found = []
    for _ in range(runs):
        at = time.perf_counter_ns()
        run()
        found.append(time.perf_counter_ns() - at)
    return min(found)


def cost_of_call(tf: "Foreign", arguments: int = 1) -> float:
    """Time of a call of a compiled function that does nothing, with a number of arguments."""
    values = [tf.constant([1.0])] * arguments
    function = tf.function(lambda *given: given[0], autograph=False).get_concrete_function(*values)
    return float(fastest_ns(lambda: function(*values), CALLS))


def replay(tf: "Foreign", recipe: SimpleNamespace, call_ns: float, deadline: float) -> "Json":
    """Time of one op alone in ns: fastest, median and slowest quarter of the runs, whose inputs lie in different memory
    each time, and the fastest with the same inputs each time.
    """
    inputs = arrays(tf, recipe)
    times = times_of(compiled(tf, recipe, inputs, 1), 1, deadline)
    first = times[0][0]
    copies = max(1, min(MAX_COPIES, int(RUN_NS // max(1.0, first - call_ns)), MAX_BYTES // max(1, recipe.bytes)))
    if copies > 1 or first * len(times) < OP_NS:
        times = times_of(compiled(tf, recipe, inputs, copies), OP_NS, deadline)
    if len(inputs) > FEW_INPUTS:
        call_ns = cost_of_call(tf, copies * len(inputs))
        first = 0  # with fewer copies, so with another cost of passing inputs
        if times[0][0] < LEAST_OVER_CALL * call_ns:
            return {"problem": "passing its %d inputs takes as long as the op" % len(inputs)}
    each = [max(1.0, (ns - call_ns) / copies) for ns, _ in times]
    ns, waited = times[0]
    return {
        "fastest_ns": each[0],
        "median_ns": each[len(each) // 2],
        "slow_ns": each[(3 * len(each)) // 4],
        "warm_ns": max(0.0, first - call_ns),
        "runs": len(each),
        "waited_ratio": waited / ns,
    }


def compiled(
    tf: "Foreign", recipe: SimpleNamespace, inputs: "Sequence[Sequence[Foreign]]", copies: int
) -> "Callable[[], object]":
    """A run of the op, repeated within a compiled function: each repetition has other arguments."""
    given = [column for column, about in zip(inputs, recipe.inputs) if not about.values]
    several = [[column[copy % len(column)] for column in given] for copy in range(copies)]
    flat = list(itertools.chain.from_iterable(several))

    def body(*arguments: "Foreign") -> "list[Foreign]":
        left = iter(arguments)
        return [result(tf, recipe, inputs, left) for _ in range(copies)]

    function = tf.function(body, autograph=False).get_concrete_function(*flat)
    return lambda: function(*flat)


def result(
    tf: "Foreign", recipe: SimpleNamespace, inputs: "Sequence[Sequence[Foreign]]", left: "Iterator[Foreign]"
) -> "Foreign":
    """Add the op's nodes to the graph that is being made; the first output of the last one."""
    graph = tf.compat.v1.get_default_graph()
    taken = [tf.constant(column[0]) if about.values else next(left) for column, about in zip(inputs, recipe.inputs)]
    made: "list[Sequence[Foreign]]" = []
    for node in recipe.nodes:
        here = [taken[-1 - number] if number < 0 else made[number][slot] for number, slot in node.inputs]
        made.append(operation(tf, graph, node, here).outputs)
    last: "Foreign" = made[-1][0]
    return last


def operation(tf: "Foreign", graph: "Foreign", node: SimpleNamespace, inputs: "Sequence[Foreign]") -> "Foreign":
    """One op of a type, with attributes."""
    definition = importlib.import_module("tensorflow.python.framework.op_def_registry").get(node.type)
    if definition is None:
        raise ValueError("this TensorFlow has no op %s" % node.type)
    given = json.loads(node.attributes or "{}")
    attributes, shown = {}, typed(tf, definition, inputs)
    for attribute in definition.attr:
        if attribute.name in given:
            attributes[attribute.name] = value_of(tf, attribute.type, given[attribute.name])
        elif attribute.name in shown:
            attributes[attribute.name] = shown[attribute.name]
        elif attribute.name == node.out_attr:
            kind = tf.dtypes.as_dtype(node.out_dtype).as_datatype_enum
            attributes[attribute.name] = tf.compat.v1.AttrValue(type=kind)
        elif attribute.HasField("default_value"):
            attributes[attribute.name] = attribute.default_value
        else:
            raise ValueError("the attribute %s of %s is not known" % (attribute.name, node.type))
    make = graph._create_op_internal
    made: "Foreign" = make(
        node.type, list(inputs), dtypes=None, attrs=attributes, op_def=definition, compute_device=False
    )
    return made


def typed(tf: "Foreign", definition: "Foreign", inputs: "Sequence[Foreign]") -> "dict[str, Foreign]":
    """The attributes that inputs show: their types, and their number where an op takes any number."""
    made = tf.compat.v1.AttrValue
    found: "dict[str, Foreign]" = {}
    wanted = definition.input_arg
    at = 0
    for argument in wanted:
        count = len(inputs) - len(wanted) + 1 if argument.number_attr else 1
        if argument.number_attr:
            found[argument.number_attr] = made(i=count)
        if argument.type_attr:
            found.setdefault(argument.type_attr, made(type=inputs[at].dtype.base_dtype.as_datatype_enum))
        at += count
    return found


def value_of(tf: "Foreign", kind: str, value: object) -> "Foreign":
    """An attribute's value as TensorFlow stores it."""
    made = tf.compat.v1.AttrValue
    fields = {"string": "s", "bool": "b", "int": "i", "float": "f", "list(int)": "list"}
    if kind not in fields:
        raise ValueError("attributes of type %s are not supported" % kind)
    if kind == "list(int)":
        value = made.ListValue(i=value)
    found: "Foreign" = made(**{fields[kind]: str(value).encode() if kind == "string" else value})
    return found


def arrays(tf: "Foreign", recipe: SimpleNamespace) -> "list[list[Foreign]]":
    """For each input of an op one or more tensors of different memory."""
    np = importlib.import_module("numpy")
    if recipe.bytes > MAX_BYTES:
        raise ValueError("%d MB are more than is replayed" % (recipe.bytes >> 20))
    random = np.random.default_rng(1)
    return [
        [filled(np, random, given)] if given.values else several(tf, np, random, recipe, given)
        for given in recipe.inputs
    ]


def several(
    tf: "Foreign", np: "Foreign", random: "Foreign", recipe: SimpleNamespace, given: SimpleNamespace
) -> "list[Foreign]":
    """Tensors with the same numbers, in different memory where they can be added to."""
    kind = tf.dtypes.as_dtype(given.dtype)
    first = tf.cast(tf.constant(filled(np, random, given)), kind)
    if not (kind.is_floating or kind.is_integer):
        return [first]
    count = max(1, min(MAX_COPIES, DISTINCT_BYTES // max(1, recipe.bytes)))
    return [first, *(first + tf.zeros_like(first) for _ in range(count - 1))]


def filled(np: "Foreign", random: "Foreign", given: SimpleNamespace) -> "Foreign":
    """Values that every op takes: fractions between a tenth and one, indices in range, positive definite matrices."""
    kind = "float32" if given.dtype in {"float16", "bfloat16"} else given.dtype
    found: "Foreign"
    if given.values:
        found = np.array(given.values).reshape(given.shape)
    elif given.fill == "definite":
        found = np.broadcast_to(np.eye(given.shape[-1]) * given.shape[-1] + 0.5, given.shape)
    elif given.dtype == "bool":
        found = random.integers(0, 2, given.shape)
    elif "int" in given.dtype:
        found = random.integers(0, max(1, given.below), given.shape)
    else:
        found = random.random(given.shape, np.float32) * 0.9 + 0.1
    cast: "Foreign" = found.astype(kind)
    return cast


def fixed_cost(tf: "Foreign", call_ns: float) -> float:
    """Time of an op of a few elements."""

    def chain(x: "Foreign", y: "Foreign") -> "Foreign":
        for _ in range(CHAIN):
            x = tf.math.squared_difference(x, y)  # no optimizer makes one op of these
        return x

    short = tf.function(chain, autograph=False)
    one, other = tf.ones(4), tf.ones(4)
    return max(0.0, fastest_ns(lambda: short(one, other), CHAINS) - call_ns) / CHAIN


def copied(np: "Foreign", source: "Foreign", target: "Foreign", count: int) -> None:
    """Copy an array some times."""
    for _ in range(count):
        np.copyto(target, source)


def roofs(tf: "Foreign", call_ns: float) -> "Json":
    """The machine's roofs: products, copies, and the fixed cost of an op."""
    np = importlib.import_module("numpy")
    left = tf.random.uniform((PRODUCT, PRODUCT))
    product = tf.function(lambda a: tf.matmul(a, a), autograph=False)
    flops = 2.0 * PRODUCT**3 / max(1e-9, (fastest_ns(lambda: product(left), MIN_RUNS) - call_ns) * 1e-9)
    levels = []
    for size, count in COPIES:
        copy = functools.partial(copied, np, np.ones(size // 8, np.float32), np.zeros(size // 8, np.float32), count)
        levels.append([size, size * count / (1e-9 * fastest_ns(copy, MIN_RUNS))])
    large = tf.ones(COPIES[-1][0] // 8)
    add = tf.function(lambda x: x + 1.0, autograph=False)
    memory = COPIES[-1][0] / max(1e-9, (fastest_ns(lambda: add(large), MIN_RUNS) - call_ns) * 1e-9)
    return {"flops_per_s": flops, "memory_bytes_per_s": memory, "copies": levels, "fixed_ns": fixed_cost(tf, call_ns)}


if __name__ == "__main__":
    main()
