"""Calls of the C library, with errors as the program knows them."""
import sys

from muster import _muster

# Without TensorFlow; what is not here is a RuntimeError.
KINDS = {
    3: ValueError,  # INVALID_ARGUMENT
    4: TimeoutError,  # DEADLINE_EXCEEDED
    12: NotImplementedError,  # UNIMPLEMENTED
    14: ConnectionError,  # UNAVAILABLE
}


def error(code, text):
    """The exception of a code: tf.errors', if the program has TensorFlow."""
    errors = sys.modules.get("tensorflow.python.framework.errors_impl")
    if errors:
        return errors.exception_type_from_error_code(code)(None, None, text)
    return KINDS.get(code, RuntimeError)(text)


def call(function, *args):
    try:
        return function(*args)
    except _muster.Error as e:
        raise error(*e.args) from None
