"""Connectionist temporal classification."""
from cases import X, each, i32, i64

# TensorFlow adds logarithms in float, also for double.
TOL = {"float32": 1e-4, "float64": 1e-6}
LABELS = dict(labels_indices=i64([[0, 0], [0, 1], [0, 2], [1, 0], [2, 0],
                                  [2, 1]]),
              labels_values=i32([1, 1, 3, 0, 2, 1]))
for merge in (False, True):
    for collapse in (False, True):
        each("CTCLoss", "merge %s collapse %s" % (merge, collapse),
             inputs=X(7, 3, 5), sequence_length=i32([7, 4, 6]),
             ctc_merge_repeated=merge,
             preprocess_collapse_repeated=collapse, tol=TOL, **LABELS)
each("CTCLoss", "labels longer than time", inputs=X(7, 3, 5),
     sequence_length=i32([2, 4, 6]), types=["float32"], fails=True, **LABELS)
each("CTCLoss", "longer ones ignored", inputs=X(7, 3, 5),
     sequence_length=i32([2, 0, 6]), tol=TOL,
     ignore_longer_outputs_than_inputs=True, **LABELS)
each("CTCLoss", "sequence too long", inputs=X(7, 3, 5),
     sequence_length=i32([8, 4, 6]), types=["float32"], fails=True, **LABELS)
each("CTCLoss", "lengths missing", inputs=X(7, 3, 5),
     sequence_length=i32([7, 4]), types=["float32"], fails=True, **LABELS)
for merge in (False, True):
    for seed in range(3):
        each("CTCGreedyDecoder", "merge %s %d" % (merge, seed),
             inputs=X(9, 3, 4, seed=seed), sequence_length=i32([9, 4, 6]),
             merge_repeated=merge, tol=TOL)
        for width, paths in ((1, 1), (5, 2), (40, 3)):
            each("CTCBeamSearchDecoder", "merge %s %d %d %d" % (
                merge, seed, width, paths), inputs=X(9, 3, 4, seed=seed),
                sequence_length=i32([9, 4, 6]), merge_repeated=merge,
                beam_width=width, top_paths=paths, tol=TOL)
each("CTCGreedyDecoder", "another blank", inputs=X(9, 3, 4),
     sequence_length=i32([9, 4, 6]), blank_index=0, tol=TOL)
each("CTCGreedyDecoder", "sequence too long", inputs=X(9, 3, 4),
     sequence_length=i32([10, 4, 6]), types=["float32"], fails=True)
