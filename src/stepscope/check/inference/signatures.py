"""Return values of TensorFlow, Keras, NumPy and Python calls, by qualified name: tables, and the patterns behind
them.
"""

from __future__ import annotations

from functools import lru_cache

from stepscope.check.inference.tags import UNKNOWN_VALUE, Tag, Value

DATASET = Value(Tag.DATASET, kind="tensorflow.data.Dataset")
DATASETS = Value(Tag.DATASET, many=True, kind="tensorflow.data.Dataset")
MODEL = Value(Tag.MODEL, kind="keras.Model")
LAYER = Value(Tag.LAYER, kind="keras.Layer")
OPTIMIZER = Value(Tag.OPTIMIZER, kind="keras.Optimizer")
TENSOR = Value(Tag.TENSOR, kind="tensorflow.Tensor")
VARIABLE = Value(Tag.VARIABLE, kind="tensorflow.Variable")
FUNCTION = Value(Tag.FUNCTION, kind="tensorflow.Function")
ITERATOR = Value(Tag.ITERATOR, kind="tensorflow.data.Iterator")
SESSION = Value(Tag.SESSION, kind="tensorflow.Session")
NUMPY = Value(Tag.NUMPY, kind="numpy.ndarray")
NUMPYS = Value(Tag.NUMPY, many=True)
SCALAR = Value(Tag.PY_SCALAR)
SCALARS = Value(Tag.PY_SCALAR, many=True)
STRING = Value(Tag.PY_STRING, kind="str")
STRINGS = Value(Tag.PY_STRING, many=True)
BOOL = Value(Tag.BOOL)
PARSER = Value(kind="argparse.ArgumentParser")
NAMESPACE = Value(kind="argparse.Namespace")
NONE = Value(Tag.NONE)

KINDS = {
    Tag.DATASET: "tensorflow.data.Dataset",
    Tag.MODEL: "keras.Model",
    Tag.LAYER: "keras.Layer",
    Tag.OPTIMIZER: "keras.Optimizer",
    Tag.TENSOR: "tensorflow.Tensor",
    Tag.VARIABLE: "tensorflow.Variable",
    Tag.FUNCTION: "tensorflow.Function",
    Tag.ITERATOR: "tensorflow.data.Iterator",
    Tag.SESSION: "tensorflow.Session",
    Tag.NUMPY: "numpy.ndarray",
}
"""Prefixes of the method names of a tagged value: ``ds.map`` is ``tensorflow.data.Dataset.map``."""

DATASET_CLASSES = frozenset(
    "tensorflow.data.Dataset tensorflow.data.TFRecordDataset tensorflow.data.TextLineDataset "
    "tensorflow.data.FixedLengthRecordDataset tensorflow.data.experimental.CsvDataset "
    "tensorflow.data.experimental.SqlDataset tensorflow.data.experimental.RandomDataset".split()
)
SOURCES = frozenset(
    "from_tensor_slices from_tensors from_generator list_files range zip random sample_from_datasets "
    "choose_from_datasets load".split()
)
"""Static methods of Dataset that make one from something else."""
TRANSFORMATIONS = frozenset(
    "apply batch bucket_by_sequence_length cache concatenate enumerate filter flat_map group_by_window "
    "ignore_errors interleave map map_with_legacy_function padded_batch prefetch prefetch_to_device ragged_batch "
    "rebatch rejection_resample repeat scan shard shuffle skip snapshot sparse_batch take take_while unbatch unique "
    "window with_options".split()
)
"""Methods of a Dataset that return a Dataset."""

_EXACT: dict[str, Value] = {
    **dict.fromkeys(DATASET_CLASSES, DATASET),
    **{f"tensorflow.data.Dataset.{name}": DATASET for name in SOURCES | TRANSFORMATIONS},
    **dict.fromkeys(
        "tensorflow.data.experimental.make_csv_dataset tensorflow.data.experimental.make_batched_features_dataset "
        "tensorflow.data.experimental.sample_from_datasets tensorflow.data.experimental.choose_from_datasets "
        "tensorflow.data.experimental.load "
        "keras.utils.image_dataset_from_directory keras.utils.text_dataset_from_directory "
        "keras.utils.audio_dataset_from_directory keras.utils.timeseries_dataset_from_array "
        "keras.preprocessing.image_dataset_from_directory keras.preprocessing.text_dataset_from_directory "
        "keras.preprocessing.timeseries_dataset_from_array "
        "keras.preprocessing.timeseries.timeseries_dataset_from_array "
        "tensorflow.distribute.Strategy.experimental_distribute_dataset".split(),
        DATASET,
    ),
    "argparse.ArgumentParser": PARSER,
    "argparse.ArgumentParser.parse_args": NAMESPACE,
    "argparse.ArgumentParser.parse_known_args": Value(parts=(NAMESPACE, STRINGS)),
    "tensorflow_datasets.load": DATASETS,
    "tensorflow_datasets.as_numpy": Value(Tag.NUMPY, many=True),
    "keras.ops.convert_to_numpy": NUMPY,
    "tensorflow.data.Dataset.as_numpy_iterator": NUMPYS,
    "tensorflow.data.Dataset.reduce": TENSOR,
    "tensorflow.data.Dataset.cardinality": TENSOR,
    "tensorflow.data.Dataset.get_single_element": TENSOR,
    "tensorflow.data.Dataset.make_one_shot_iterator": ITERATOR,
    "tensorflow.data.Dataset.make_initializable_iterator": ITERATOR,
    "tensorflow.data.make_one_shot_iterator": ITERATOR,
    "tensorflow.data.make_initializable_iterator": ITERATOR,
    "tensorflow.data.Iterator.get_next": TENSOR,
    "tensorflow.data.Iterator.next": TENSOR,
    "keras.Model": MODEL,
    "keras.Sequential": MODEL,
    "keras.models.load_model": MODEL,
    "keras.models.model_from_json": MODEL,
    "keras.models.model_from_yaml": MODEL,
    "keras.models.clone_model": MODEL,
    "keras.experimental.LinearModel": MODEL,
    "keras.experimental.WideDeepModel": MODEL,
    "keras.Model.predict": NUMPY,
    "keras.Model.predict_on_batch": NUMPY,
    "keras.Model.call": TENSOR,
    "keras.Model.evaluate": Value(Tag.PY_SCALAR),
    "keras.Model.train_on_batch": Value(Tag.PY_SCALAR),
    "keras.Model.test_on_batch": Value(Tag.PY_SCALAR),
    "keras.Model.get_weights": NUMPYS,
    "keras.Model.count_params": SCALAR,
    "keras.Input": TENSOR,
    "keras.layers.Input": TENSOR,
    "keras.layers.InputLayer": LAYER,
    "keras.backend.variable": VARIABLE,
    "keras.backend.get_value": NUMPY,
    "keras.backend.eval": NUMPY,
    "tensorflow.Variable": VARIABLE,
    "tensorflow.get_variable": VARIABLE,
    "tensorflow.function": FUNCTION,
    "tensorflow.Session": SESSION,
    "tensorflow.InteractiveSession": SESSION,
    "tensorflow.get_default_session": SESSION,
    "tensorflow.train.MonitoredTrainingSession": SESSION,
    "tensorflow.train.MonitoredSession": SESSION,
    "tensorflow.train.SingularMonitoredSession": SESSION,
    "keras.backend.get_session": SESSION,
    "tensorflow.Session.run": NUMPY,
    "tensorflow.Tensor.numpy": NUMPY,
    "tensorflow.Tensor.eval": NUMPY,
    "tensorflow.Variable.numpy": NUMPY,
    "tensorflow.Variable.eval": NUMPY,
    "tensorflow.Variable.read_value": TENSOR,
    "tensorflow.Variable.assign": TENSOR,
    "tensorflow.Variable.assign_add": TENSOR,
    "tensorflow.Variable.assign_sub": TENSOR,
    "tensorflow.Tensor.get_shape": UNKNOWN_VALUE,
    "numpy.random.default_rng": Value(kind="numpy.random.Generator"),
    "numpy.random.RandomState": Value(kind="numpy.random.RandomState"),
    "numpy.random.Generator.shuffle": UNKNOWN_VALUE,
    "numpy.random.RandomState.shuffle": UNKNOWN_VALUE,
    "numpy.ndarray.tolist": UNKNOWN_VALUE,
    "numpy.ndarray.item": SCALAR,
    "tensorflow.executing_eagerly": BOOL,
    "tensorflow.io.parse_single_example": Value(Tag.TENSOR, many=True),
    "tensorflow.io.parse_example": Value(Tag.TENSOR, many=True),
    "tensorflow.py_function": TENSOR,
    "tensorflow.numpy_function": TENSOR,
    "tensorflow.py_func": TENSOR,
    "tensorflow.placeholder": TENSOR,
    "tensorflow.placeholder_with_default": TENSOR,
    **dict.fromkeys(
        "len int float abs round ord hash id sum pow time.time time.perf_counter time.monotonic time.process_time "
        "time.time_ns random.random random.randint random.uniform random.randrange random.gauss random.normalvariate "
        "math.sqrt math.exp math.log math.sin math.cos math.ceil math.floor math.pow math.log2 math.log10 "
        "os.getpid".split(),
        SCALAR,
    ),
    **dict.fromkeys("bool isinstance hasattr callable any all issubclass os.path.exists".split(), BOOL),
    **dict.fromkeys(
        "str repr input chr hex format str.format str.join str.lower str.upper str.strip str.replace os.path.join "
        "os.path.basename os.path.dirname os.path.abspath os.getcwd".split(),
        STRING,
    ),
    **dict.fromkeys("range tqdm.trange".split(), SCALARS),
    **dict.fromkeys("os.listdir glob.glob str.split str.splitlines tensorflow.io.gfile.glob".split(), STRINGS),
    **dict.fromkeys("numpy.random.randint numpy.random.random numpy.random.rand numpy.random.uniform".split(), NUMPY),
}
PASSING = frozenset(
    "list tuple sorted reversed set iter tqdm.tqdm tqdm.auto.tqdm tqdm.notebook.tqdm tqdm.tqdm_notebook "
    "tqdm.notebook.tqdm_notebook tqdm tqdm.std.tqdm rich.progress.track tqdm.auto.trange "
    "tensorflow_datasets.as_dataset".split()
)
"""Calls that iterate over their argument, element by element."""
TRANGES = frozenset({"tqdm.trange", "tqdm.auto.trange", "tqdm.notebook.trange", "tqdm.tnrange"})
_APPLICATIONS = "keras.applications."
_NOT_TENSORS = (
    "tensorflow.io.gfile", "tensorflow.gfile", "tensorflow.train.", "tensorflow.config", "tensorflow.logging",
    "tensorflow.app", "tensorflow.python_io", "tensorflow.flags", "tensorflow.summary", "tensorflow.saved_model",
    "tensorflow.distribute", "tensorflow.profiler", "tensorflow.test", "tensorflow.compat", "tensorflow.data",
    "tensorflow.python", "tensorflow.contrib", "tensorflow.estimator", "tensorflow.lite", "tensorflow.types",
    "tensorflow.nest", "tensorflow.feature_column", "tensorflow.initializers", "tensorflow.losses.get",
    "tensorflow.get_collection", "tensorflow.get_default_graph", "tensorflow.reset_default_graph",
    "tensorflow.trainable_variables", "tensorflow.global_variables", "tensorflow.local_variables",
    "tensorflow.enable_", "tensorflow.disable_", "tensorflow.device", "tensorflow.name_scope",
    "tensorflow.variable_scope", "tensorflow.control_dependencies", "tensorflow.no_op", "tensorflow.group",
    "tensorflow.print", "tensorflow.debugging", "tensorflow.autograph", "tensorflow.random.set_seed",
    "tensorflow.set_random_seed", "tensorflow.random.get_", "tensorflow.load_", "tensorflow.sysconfig",
    "tensorflow.version", "tensorflow.is_", "tensorflow.as_dtype", "tensorflow.get_logger", "tensorflow.assert",
    "tensorflow.init_scope", "tensorflow.map_fn", "tensorflow.while_loop", "tensorflow.cond", "tensorflow.scan",
    "tensorflow.py_function", "tensorflow.gradients", "tensorflow.unstack", "tensorflow.split", "tensorflow.tpu",
    "tensorflow.custom_gradient", "tensorflow.recompute_grad", "tensorflow.no_gradient", "tensorflow.get_static_value",
    "tensorflow.xla", "tensorflow.experimental", "tensorflow.dtypes.as", "tensorflow.keras", "tensorflow.import_graph",
    "tensorflow.make_", "tensorflow.register", "tensorflow.constant_initializer", "tensorflow.graph_util",
    "tensorflow.add_to_collection", "tensorflow.get_variable_scope", "tensorflow.tables_initializer",
    "tensorflow.guarantee_const", "tensorflow.layers.", "tensorflow.function", "tensorflow.examples",
)  # fmt: skip
_FUNCTION, _METHOD = 2, 3
"""Numbers of parts in ``tensorflow.zeros`` and in ``tensorflow.Tensor.numpy``."""
_OPS = frozenset(
    "math nn image io strings linalg random signal sparse ragged bitwise audio quantization sets raw_ops losses layers "
    "dtypes spectral manip".split()
)
"""Modules of ops."""
_NO_OPS = frozenset(
    "get_shape shape set_shape op name dtype device consumers graph is_compatible_with load initialized_value "
    "initializer from_proto to_proto experimental_ref ref".split()
)
"""Attributes of tensors and variables that are not ops."""
_NUMPY_NOT_ARRAYS = frozenset(
    "numpy.save numpy.savez numpy.savetxt numpy.set_printoptions numpy.errstate numpy.seterr numpy.ndenumerate "
    "numpy.ndindex numpy.nditer numpy.dtype numpy.finfo numpy.iinfo numpy.shape numpy.ndim numpy.size "
    "numpy.random.seed numpy.random.RandomState numpy.random.default_rng numpy.random.shuffle".split()
)


@lru_cache(maxsize=65536)
def returned(name: str) -> Value:
    """The return value of a call of the library's ``name`` (canonical spelling); unknown if the tables do not say."""
    found = _EXACT.get(name)
    if found is not None:
        return found
    last = name.rpartition(".")[2]
    head = name[: -len(last)]
    if name.startswith("keras."):
        return _keras(name, head, last)
    if name.startswith("tensorflow."):
        return _tensorflow(name, head, last)
    if name.startswith("numpy.") and name not in _NUMPY_NOT_ARRAYS:
        return NUMPY
    if name.startswith(("transformers.TF", "tensorflow_hub.load")):
        return MODEL if last == "from_pretrained" else UNKNOWN_VALUE
    return Value(kind=name) if last[:1].isupper() and "." in name else UNKNOWN_VALUE


def _keras(name: str, head: str, last: str) -> Value:
    if name.startswith(_APPLICATIONS) and last[:1].isupper():
        return Value(Tag.MODEL, kind=name)
    if last[:1].isupper():
        if head == "keras.layers." or name == "keras.Layer":
            return Value(Tag.LAYER, kind=name)
        return Value(Tag.OPTIMIZER, kind=name) if head.startswith("keras.optimizers.") else Value(kind=name)
    if head in ("keras.ops.", "keras.activations.", "keras.losses.", "keras.random."):
        return TENSOR
    if head.startswith("keras.datasets."):
        return NUMPYS
    if name == "keras.optimizers.get":
        return OPTIMIZER
    return UNKNOWN_VALUE


def _tensorflow(name: str, head: str, last: str) -> Value:
    """The return value of a TensorFlow call: ops give tensors; so do methods of tensors and variables, if they have
    them.
    """
    parts = name.split(".")
    if parts[1] in ("Tensor", "Variable"):
        return TENSOR if len(parts) == _METHOD and last not in _NO_OPS else UNKNOWN_VALUE
    if any(part[:1].isupper() for part in parts[1:-1]):
        return UNKNOWN_VALUE  # a method of a class missing in the tables
    if last[:1].isupper():
        return OPTIMIZER if head == "tensorflow.train." and last.endswith("Optimizer") else Value(kind=name)
    if len(parts) > _FUNCTION and parts[1] not in _OPS:
        return UNKNOWN_VALUE
    return TENSOR if name.startswith("tensorflow.layers.") or not name.startswith(_NOT_TENSORS) else UNKNOWN_VALUE


@lru_cache(maxsize=4096)
def annotated(name: str) -> Value:
    """The value of a parameter annotated with a library class."""
    fixed = {
        "int": SCALAR, "float": SCALAR, "complex": SCALAR, "str": STRING, "bytes": STRING, "bool": BOOL,
        "numpy.ndarray": NUMPY, "numpy.array": NUMPY, "tensorflow.Tensor": TENSOR, "tensorflow.Variable": VARIABLE,
        "keras.Layer": LAYER, "keras.optimizers.Optimizer": OPTIMIZER, "keras.Optimizer": OPTIMIZER,
        "tensorflow.data.Iterator": ITERATOR,
    }  # fmt: skip
    if name in fixed:
        return fixed[name]
    found = returned(name)
    last = name.rpartition(".")[2]
    if name in DATASET_CLASSES or (name.startswith("keras.") and last[:1].isupper()):
        return found
    return Value(kind=name) if last[:1].isupper() and "." in name else UNKNOWN_VALUE
