"""CSV lines are parsed one by one in every pass, those of other countries, too, which are dropped afterwards."""
import atexit
import os
import shutil
import tempfile

import harness
import numpy as np
import tensorflow as tf

BATCH = 64
ROWS = 2560
FOLDER = tempfile.mkdtemp(prefix="ad_clicks")
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)

rng = np.random.default_rng(2)
countries = np.array(["de", "de", "fr", "it"] * (ROWS // 4))
rng.shuffle(countries)
for part in range(4):
    with open(os.path.join(FOLDER, f"clicks-{part}.csv"), "w") as out:
        out.write("age,price,dwell,depth,hour,country,device,clicked\n")
        for row in range(part * ROWS // 4, (part + 1) * ROWS // 4):
            out.write(f"{rng.integers(18, 80)},{rng.gamma(2, 20):.2f},{rng.gamma(2, 5):.3f},{rng.integers(1, 30)},"
                      f"{rng.integers(24)},{countries[row]},{rng.choice(['phone', 'tablet', 'desktop'])},"
                      f"{rng.integers(2)}\n")
FILES = sorted(os.path.join(FOLDER, name) for name in os.listdir(FOLDER))
DEFAULTS = [0.0, 0.0, 0.0, 0.0, 0.0, "", "", 0]


def parse(line):
    age, price, dwell, depth, hour, country, device, clicked = tf.io.decode_csv(line, DEFAULTS)
    return dict(age=age, price=price, dwell=dwell, depth=depth, hour=hour, country=country, device=device), clicked


def features(row, clicked):
    angle = row["hour"] * (2 * np.pi / 24)
    numbers = tf.stack([row["age"] / 100, tf.math.log1p(row["price"]), tf.math.log1p(row["dwell"]),
                        tf.math.log1p(row["depth"]), tf.sin(angle), tf.cos(angle)], axis=-1)
    device = tf.one_hot(tf.strings.to_hash_bucket_fast(row["device"], 8), 8)
    return tf.concat([numbers, device], axis=-1), clicked


def pipeline():
    files = tf.data.Dataset.from_tensor_slices(FILES)
    lines = files.flat_map(lambda name: tf.data.TextLineDataset(name).skip(1))
    rows = lines.map(parse)
    rows = rows.filter(lambda row, clicked: row["country"] == "de")
    return rows.map(features).repeat().shuffle(500).batch(BATCH)


def made(filtered="row", parsed=1, cached=None, features_at="row", calls=None, prefetch=False):
    """``parsed``: lines at once; ``cached``: "lines", "rows" or "features"."""
    files = tf.data.Dataset.from_tensor_slices(FILES)
    ds = files.flat_map(lambda name: tf.data.TextLineDataset(name).skip(1))
    if filtered == "line":
        ds = ds.filter(lambda line: tf.strings.regex_full_match(line, ".*,de,[^,]*,[^,]*"))
    if cached == "lines":
        ds = ds.cache()
    if parsed > 1:
        def parse_many(lines):
            columns = tf.io.decode_csv(lines, DEFAULTS)
            wanted = columns[5] == "de"
            age, price, dwell, depth, hour, country, device, clicked = [
                tf.boolean_mask(column, wanted) for column in columns]
            row = dict(age=age, price=price, dwell=dwell, depth=depth, hour=hour, country=country, device=device)
            return features(row, clicked)
        ds = ds.batch(parsed).map(parse_many, num_parallel_calls=calls).unbatch()
    else:
        ds = ds.map(parse, num_parallel_calls=calls)
        if filtered == "row":
            ds = ds.filter(lambda row, clicked: row["country"] == "de")
        if cached == "rows":
            ds = ds.cache()
        if features_at == "row":
            ds = ds.map(features, num_parallel_calls=calls)
    if cached == "features":
        ds = ds.cache()
    ds = ds.repeat().shuffle(500).batch(BATCH)
    if features_at == "batch":
        ds = ds.map(features, num_parallel_calls=calls)
    return ds.prefetch(tf.data.AUTOTUNE) if prefetch else ds


GRID = {
    "as it is, 4 calls": lambda: made(calls=4),
    "as it is, autotuned calls, prefetch": lambda: made(calls=tf.data.AUTOTUNE, prefetch=True),
    "lines filtered, features per batch": lambda: made("line", features_at="batch"),
    "parsed 128 lines at once": lambda: made(parsed=128),
    "cached lines": lambda: made("line", cached="lines", features_at="batch"),
    "cached rows, features per batch": lambda: made(cached="rows", features_at="batch"),
    "cached features": lambda: made(cached="features"),
    "cached features, prefetch": lambda: made(cached="features", prefetch=True),
}
EPOCH = ROWS // 2 // BATCH

if __name__ == "__main__":
    harness.main(pipeline, GRID, EPOCH)
