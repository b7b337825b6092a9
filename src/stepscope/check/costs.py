"""Tables of the costs of calls per element of an input pipeline: Python file loaders, decoders, parsers."""

from __future__ import annotations

LOADERS = frozenset(
    "PIL.Image.open cv2.imread cv2.VideoCapture imageio.imread imageio.v2.imread imageio.v3.imread skimage.io.imread "
    "matplotlib.image.imread matplotlib.pyplot.imread scipy.misc.imread scipy.ndimage.imread keras.utils.load_img "
    "keras.preprocessing.image.load_img keras.utils.image_utils.load_img numpy.load numpy.loadtxt numpy.genfromtxt "
    "librosa.load librosa.core.load librosa.feature.melspectrogram librosa.stft soundfile.read scipy.io.wavfile.read "
    "scipy.io.loadmat wavfile.read torchaudio.load pandas.read_csv pandas.read_parquet pandas.read_pickle "
    "pandas.read_hdf nibabel.load SimpleITK.ReadImage pydicom.dcmread pydicom.read_file tifffile.imread "
    "rasterio.open".split()
)
"""Functions that read and decode a file in Python, one call at a time."""

READS = frozenset({"tensorflow.io.read_file", "tensorflow.io.gfile.GFile", "tensorflow.gfile.GFile"})
"""Functions that read a file inside a tf.data function."""

DECODES = frozenset(
    "tensorflow.io.decode_jpeg tensorflow.io.decode_png tensorflow.io.decode_image tensorflow.io.decode_gif "
    "tensorflow.io.decode_bmp tensorflow.io.decode_webp tensorflow.io.decode_and_crop_jpeg tensorflow.image.decode_gif "
    "tensorflow.image.decode_bmp tensorflow.image.decode_and_crop_jpeg tensorflow.audio.decode_wav "
    "tensorflow.io.decode_compressed".split()
)
"""Functions that turn a compressed string into a much larger tensor."""

PARSES = frozenset(
    "tensorflow.io.parse_single_example tensorflow.io.parse_example tensorflow.io.parse_single_sequence_example "
    "tensorflow.io.parse_tensor tensorflow.io.decode_csv tensorflow.io.decode_json_example tensorflow.io.decode_raw "
    "tensorflow.strings.split tensorflow.string_split tensorflow.strings.regex_replace "
    "tensorflow.strings.unicode_split".split()
)
"""Functions that turn strings into tensors of about the same size."""

RESIZES = frozenset(
    "tensorflow.image.resize tensorflow.image.resize_images tensorflow.image.resize_with_pad "
    "tensorflow.image.resize_with_crop_or_pad tensorflow.image.resize_image_with_crop_or_pad "
    "tensorflow.image.resize_bilinear tensorflow.image.resize_image_with_pad".split()
)

PYTHON = frozenset({"tensorflow.py_function", "tensorflow.numpy_function", "tensorflow.py_func"})
"""Functions that run Python inside a graph."""

SIGNALS = ("tensorflow.signal.", "tensorflow.audio.", "tensorflow.contrib.signal.")


def heavy(name: str) -> bool:
    """Whether a call costs tens of microseconds per element or more: reads, decodes, parses, resizes, transforms, runs
    Python.
    """
    return name in READS | DECODES | PARSES | RESIZES | PYTHON or name.startswith(SIGNALS)


SECONDS_EACH = frozenset("KER003 KER004 KER005 KER006 OPS001 OPS003 TFF001 TFF002 TFF003 TFF009 TFF011 TFF014".split())
"""Rules whose pattern costs a tenth of a second or more each time it runs: models loaded or compiled, functions traced,
graphs that grow."""
