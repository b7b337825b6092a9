"""What changes or makes the thing that runs: settings, models, graphs, sessions. Lines that a test asks for are marked."""

import os
import sys
import time

import numpy as np
import tensorflow as tf

FOLDER = sys.argv[1]
v1 = tf.compat.v1


@tf.function
def twice(x):
    return 2 * x


def main():
    tf.config.run_functions_eagerly(True)  # on
    print("eager", float(twice(tf.constant(2.0))), tf.config.functions_run_eagerly())
    tf.config.run_functions_eagerly(False)  # off
    print("compiled", float(twice(tf.constant(3.0))), tf.config.functions_run_eagerly())
    debugging()
    models()
    sessions()


def debugging():
    tf.debugging.enable_check_numerics()  # checks on
    print("checked", float(tf.constant(2.0) * 3.0))
    tf.debugging.disable_check_numerics()  # checks off
    tf.keras.backend.set_floatx("float64")  # double
    tf.keras.backend.set_floatx("float32")  # single
    tf.data.experimental.enable_debug_mode()  # data
    print("debugged", [int(x) for x in tf.data.Dataset.range(2).map(lambda x: x + 1)])
    sys.modules["tensorflow.python.data.ops.debug_mode"].toggle_debug_mode(False)
    tf.config.experimental.enable_op_determinism()  # repeatable
    sys.modules["tensorflow.python.util._pywrap_determinism"].enable(False)


def models():
    inputs = tf.keras.Input((3,))
    model = tf.keras.Model(inputs, tf.keras.layers.Dense(2)(inputs))
    path = os.path.join(FOLDER, "model.keras")
    model.save(path)
    for _ in range(3):
        kept = tf.keras.models.load_model(path)  # load
        print("same", np.allclose(kept(np.ones((1, 3))), model(np.ones((1, 3)))))
    print("clone", len(tf.keras.models.clone_model(model).weights))  # clone
    module = tf.Module()
    module.twice = tf.function(lambda x: 2 * x, input_signature=[tf.TensorSpec([], tf.float32)])
    tf.saved_model.save(module, os.path.join(FOLDER, "saved"))
    for _ in range(2):
        print("saved", float(tf.saved_model.load(os.path.join(FOLDER, "saved")).twice(3.0)))  # saved
    try:
        tf.saved_model.load(os.path.join(FOLDER, "nothing"))  # missing
    except OSError as error:
        print("missing", type(error).__name__)


def sessions():
    graph = v1.Graph()
    with graph.as_default():
        total = v1.get_variable("total", initializer=0.0)
        saver = v1.train.Saver()
        first = total.assign_add(1.0)
    path = ""
    for number in range(2):
        with v1.Session(graph=graph) as session:  # session
            if number:
                saver.restore(session, path)  # restore
            else:
                session.run(total.initializer)
            print("first", session.run(first))
            path = saver.save(session, os.path.join(FOLDER, "total"))
    print("imported", len(imported(graph.as_graph_def())))
    with graph.as_default(), v1.Session() as session:  # growing
        session.run(total.initializer)
        end = time.monotonic() + 2.0
        while time.monotonic() < end:
            session.run(total.assign_add(1.0))
            time.sleep(0.02)
    print("grown", len(graph.get_operations()) > 60)


def imported(graph_def):
    with v1.Graph().as_default() as graph:
        v1.import_graph_def(graph_def, name="")  # import
        return graph.get_operations()


main()
