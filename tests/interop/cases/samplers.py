"""Candidate samplers, seeded: the same stream as TensorFlow's."""
from cases import each, i64

TRUE = i64([[0, 3], [7, 2], [1, 0]])
for unique in (False, True):
    kw = dict(true_classes=TRUE, num_true=2, num_sampled=5, unique=unique,
              seed=12, seed2=5)
    each("AllCandidateSampler", "unique %s" % unique,
         **dict(kw, num_sampled=9))
    each("AllCandidateSampler", "out of range %s" % unique, fails=True, **kw)
    for op in ("Uniform", "LogUniform", "LearnedUnigram",
               "ThreadUnsafeUnigram"):
        each(op + "CandidateSampler", "unique %s" % unique, range_max=13,
             runs=3, **kw)
    each("UniformCandidateSampler", "power of 2 unique %s" % unique,
         range_max=16, **kw)
    each("FixedUnigramCandidateSampler", "unique %s" % unique, range_max=9,
         unigrams=[3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0], distortion=0.75,
         num_reserved_ids=1, **kw)
each("UniformCandidateSampler", "too few", true_classes=TRUE, num_true=2,
     num_sampled=50, unique=True, range_max=13, fails=True)
each("UniformCandidateSampler", "columns", true_classes=TRUE, num_true=3,
     num_sampled=5, unique=True, range_max=13, fails=True)
each("ComputeAccidentalHits", true_classes=TRUE, num_true=2,
     sampled_candidates=i64([2, 0, 5, 7, 0]))
each("ComputeAccidentalHits", "none", true_classes=TRUE, num_true=2,
     sampled_candidates=i64([12, 10, 15]))
