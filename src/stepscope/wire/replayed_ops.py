"""The types of ops that can be replayed alone, with the attributes that must be known for it.

The agent records these attributes with the nodes of a graph; the replay after the job (``machine.replay``) builds the
op of them. Types of tensors and numbers of inputs are not among them: the inputs show them.
"""

from __future__ import annotations

_CONV = ("strides", "padding", "explicit_paddings", "data_format", "dilations")
_CONV_3D = ("strides", "padding", "data_format", "dilations")
_POOL = ("ksize", "strides", "padding", "data_format")
_NORM = ("epsilon", "data_format", "is_training")
_SLICE = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
_RESIZE = ("align_corners", "half_pixel_centers")
ELEMENTWISE = frozenset(
    {
        "Abs",
        "Add",
        "AddV2",
        "BiasAdd",
        "Ceil",
        "Cos",
        "DivNoNan",
        "Elu",
        "EluGrad",
        "Equal",
        "Erf",
        "Erfc",
        "Exp",
        "Expm1",
        "Floor",
        "FloorDiv",
        "Greater",
        "GreaterEqual",
        "LeakyRelu",
        "LeakyReluGrad",
        "Less",
        "LessEqual",
        "Log",
        "Log1p",
        "LogicalAnd",
        "LogicalNot",
        "LogicalOr",
        "Maximum",
        "Minimum",
        "Mul",
        "MulNoNan",
        "Neg",
        "NotEqual",
        "Pow",
        "RealDiv",
        "Reciprocal",
        "ReciprocalGrad",
        "Relu",
        "Relu6",
        "Relu6Grad",
        "ReluGrad",
        "Rsqrt",
        "RsqrtGrad",
        "Select",
        "SelectV2",
        "Selu",
        "SeluGrad",
        "Sigmoid",
        "SigmoidGrad",
        "Sign",
        "Sin",
        "Softplus",
        "SoftplusGrad",
        "Softsign",
        "Sqrt",
        "SqrtGrad",
        "Square",
        "SquaredDifference",
        "Sub",
        "Tanh",
        "TanhGrad",
        "Xlogy",
        "ZerosLike",
        "OnesLike",
        "ClipByValue",
    }
)
"""Types whose output has one element for each of the largest input."""
REDUCTIONS = frozenset({"All", "Any", "Max", "Mean", "Min", "Prod", "Sum"})
ATTRIBUTES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(sorted(ELEMENTWISE), ()),
    **dict.fromkeys(("LeakyRelu", "LeakyReluGrad"), ("alpha",)),
    **dict.fromkeys(("BiasAdd", "BiasAddGrad"), ("data_format",)),
    **dict.fromkeys(sorted(REDUCTIONS), ("keep_dims",)),
    **dict.fromkeys(("Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput"), _CONV),
    **dict.fromkeys(
        (
            "DepthwiseConv2dNative",
            "DepthwiseConv2dNativeBackpropFilter",
            "DepthwiseConv2dNativeBackpropInput",
        ),
        _CONV,
    ),
    **dict.fromkeys(("Conv3D", "Conv3DBackpropFilterV2", "Conv3DBackpropInputV2"), _CONV_3D),
    "MatMul": ("transpose_a", "transpose_b"),
    **dict.fromkeys(("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"), ("adj_x", "adj_y")),
    "Einsum": ("equation",),
    **dict.fromkeys(("AvgPool", "AvgPoolGrad", "MaxPool", "MaxPoolGrad"), _POOL),
    **dict.fromkeys(("FusedBatchNormV3", "FusedBatchNormGradV3"), _NORM),
    **dict.fromkeys(("Softmax", "LogSoftmax"), ()),
    **dict.fromkeys(("SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits"), ()),
    **dict.fromkeys(("AddN", "ArgMax", "ArgMin", "Cast", "ConcatV2", "Tile", "Transpose", "Pad", "PadV2"), ()),
    **dict.fromkeys(("BroadcastTo", "Slice"), ()),
    "MirrorPad": ("mode",),
    "StridedSlice": _SLICE,
    "StridedSliceGrad": _SLICE,
    "Cumsum": ("exclusive", "reverse"),
    "TopKV2": ("sorted",),
    "OneHot": ("axis",),
    "Pack": ("axis",),
    "GatherV2": ("batch_dims",),
    "ResourceGather": ("batch_dims",),
    "UnsortedSegmentSum": (),
    **dict.fromkeys(("ResizeBilinear", "ResizeBilinearGrad", "ResizeNearestNeighbor"), _RESIZE),
    "Cholesky": (),
    "MatrixInverse": ("adjoint",),
    "MatrixTriangularSolve": ("lower", "adjoint"),
    **dict.fromkeys(("RandomUniform", "RandomStandardNormal", "TruncatedNormal"), ()),
}
"""Type -> attributes."""
CONSTANT = "Const"
"""Type whose small whole numbers are recorded as the attribute ``VALUE``: axes, permutations, shapes."""
VALUE = "value"
MAX_INPUTS = 64
"""Inputs kept of any node; a call of a large function has hundreds."""
MAX_OUTPUTS = 8
"""Outputs kept of any node."""
MAX_VALUES = 16
"""Numbers of a constant that are recorded at most."""
