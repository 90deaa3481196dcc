"""The ops that apply gradients: dense and sparse, ref and resource.

One line an op: its states, then its other arguments in the order in which the
op takes them.  `lo` and `hi` keep a state where the formula has a value.
"""
from cases import V, X, graph, i32, i64

TYPES = ["float32", "float64", "float16", "bfloat16"]
# TensorFlow rounds to 16 bits after each operation, we only at the end: where
# its formula subtracts, it is off by many of its last digits.
TOLERANCE = {"float16": 0.05, "bfloat16": 0.3}


def apply_op(stem, states, args, sparse=True, dense=True, types=None,
             sparse_types=None, label="", **attrs):
    """Cases of Apply*, ResourceApply*, SparseApply*, ResourceSparseApply*.

    states: {name: (lo, hi)}; args: names and values, "grad" where it comes.
    """
    forms = []
    if dense:
        forms += [("Apply", False), ("ResourceApply", False)]
    if sparse:
        forms += [("SparseApply", True), ("ResourceSparseApply", True)]
    for prefix, is_sparse in forms:
        one(prefix + stem, prefix.startswith("Resource"), is_sparse, states,
            args, (sparse_types if is_sparse else None) or types, label,
            attrs)


def one(op, resource, is_sparse, states, args, types, label, attrs):
    row = (4, 3)

    def build(k, dtype, indices, locking):
        refs, kw = {}, dict(attrs)
        for i, (name, (lo, hi)) in enumerate(states.items()):
            spec = X(*row, lo=lo, hi=hi, seed=i)
            refs[name] = (k.var if resource else k.ref)(spec, dtype)
        for name, value in args:
            if value == "grad":
                shape = (len(indices), 3) if is_sparse else row
                kw[name] = k.x(X(*shape, lo=-2, hi=2, seed=9), dtype)
                if is_sparse:
                    kw["indices"] = k.x(indices)
            elif name == "global_step":
                kw[name] = k.x(i64([value])[0])
            else:
                kw[name] = k.x(V(value), dtype)
        done = getattr(k.raw, op)(use_locking=locking, **refs, **kw)
        if resource:
            with k.after(done):
                return [k.read(h, dtype) for h in refs.values()]
        with k.after(done):
            return [k.tf.identity(r) for r in refs.values()] + [
                k.tf.identity(done)]

    which = {"rows": i32([3, 0]), "rows twice": i32([1, 3, 1, 1]),
             "64": i64([2]), "none": i32([])} if is_sparse else {
                 "dense": None}
    for what, indices in which.items():
        @graph(op, " ".join(filter(None, [label, what])),
               types=types or "kernel", tol=TOLERANCE)
        def _(k, dtype, indices=indices):
            return build(k, dtype, indices, True)

    @graph(op, "without lock", types=["float32"])
    def _(k, dtype):
        return build(k, dtype, i32([3, 0]), False)

    @graph(op, "wrong shape", types=["float32"], fails=True)
    def _(k, dtype):
        kw = dict(attrs)
        for i, (name, (lo, hi)) in enumerate(states.items()):
            kw[name] = (k.var if resource else k.ref)(
                X(*row, lo=lo, hi=hi, seed=i), dtype)
        for name, value in args:
            if value == "grad":
                kw[name] = k.x(X(2, 2), dtype)
                if is_sparse:
                    kw["indices"] = k.x(i32([0, 1]))
            elif name == "global_step":
                kw[name] = k.x(i64([value])[0])
            else:
                kw[name] = k.x(V(value), dtype)
        done = getattr(k.raw, op)(**kw)
        with k.after(done):
            return k.x(X(1), dtype) + 0

    if is_sparse:
        @graph(op, "row out of range", types=["float32"], fails=True)
        def _(k, dtype):
            outs = build(k, dtype, i32([1, 4]), True)
            return outs


ANY, POSITIVE = (-2, 2), (0.1, 2)

apply_op("GradientDescent", {"var": ANY},
         [("alpha", 0.1), ("delta", "grad")], sparse=False)
apply_op("ProximalGradientDescent", {"var": ANY},
         [("alpha", 0.1), ("l1", 0.2), ("l2", 0.3), ("delta", "grad")],
         sparse=False)
apply_op("ProximalGradientDescent", {"var": ANY},
         [("alpha", 0.1), ("l1", 0.2), ("l2", 0.3), ("grad", "grad")],
         dense=False)
apply_op("ProximalGradientDescent", {"var": ANY},
         [("alpha", 0.1), ("l1", 0.0), ("l2", 0.3), ("grad", "grad")],
         dense=False, label="no l1")
apply_op("Momentum", {"var": ANY, "accum": ANY},
         [("lr", 0.1), ("grad", "grad"), ("momentum", 0.9)])
apply_op("Momentum", {"var": ANY, "accum": ANY},
         [("lr", 0.1), ("grad", "grad"), ("momentum", 0.9)],
         label="nesterov", use_nesterov=True)
apply_op("Adagrad", {"var": ANY, "accum": POSITIVE},
         [("lr", 0.1), ("grad", "grad")])
apply_op("Adagrad", {"var": ANY, "accum": POSITIVE},
         [("lr", 0.1), ("grad", "grad")], label="no slots",
         update_slots=False)
apply_op("AdagradV2", {"var": ANY, "accum": POSITIVE},
         [("lr", 0.1), ("epsilon", 0.01), ("grad", "grad")])
apply_op("AdagradDA", {"var": ANY, "gradient_accumulator": ANY,
                       "gradient_squared_accumulator": POSITIVE},
         [("grad", "grad"), ("lr", 0.1), ("l1", 0.2), ("l2", 0.3),
          ("global_step", 3)])
apply_op("ProximalAdagrad", {"var": ANY, "accum": POSITIVE},
         [("lr", 0.1), ("l1", 0.2), ("l2", 0.3), ("grad", "grad")])
apply_op("Adadelta", {"var": ANY, "accum": POSITIVE,
                      "accum_update": POSITIVE},
         [("lr", 0.1), ("rho", 0.9), ("epsilon", 0.01), ("grad", "grad")])
apply_op("Adam", {"var": ANY, "m": ANY, "v": POSITIVE},
         [("beta1_power", 0.7), ("beta2_power", 0.8), ("lr", 0.1),
          ("beta1", 0.9), ("beta2", 0.99), ("epsilon", 0.01),
          ("grad", "grad")], sparse=False)
apply_op("Adam", {"var": ANY, "m": ANY, "v": POSITIVE},
         [("beta1_power", 0.7), ("beta2_power", 0.8), ("lr", 0.1),
          ("beta1", 0.9), ("beta2", 0.99), ("epsilon", 0.01),
          ("grad", "grad")], sparse=False, label="nesterov",
         use_nesterov=True)
apply_op("AdaMax", {"var": ANY, "m": ANY, "v": POSITIVE},
         [("beta1_power", 0.7), ("lr", 0.1), ("beta1", 0.9),
          ("beta2", 0.99), ("epsilon", 0.01), ("grad", "grad")],
         sparse=False)
apply_op("RMSProp", {"var": ANY, "ms": POSITIVE, "mom": ANY},
         [("lr", 0.1), ("rho", 0.9), ("momentum", 0.5), ("epsilon", 0.01),
          ("grad", "grad")])
apply_op("CenteredRMSProp", {"var": ANY, "mg": (-0.1, 0.1),
                             "ms": (0.5, 2), "mom": ANY},
         [("lr", 0.1), ("rho", 0.9), ("momentum", 0.5), ("epsilon", 0.01),
          ("grad", "grad")])
apply_op("Ftrl", {"var": ANY, "accum": POSITIVE, "linear": ANY},
         [("grad", "grad"), ("lr", 0.1), ("l1", 0.2), ("l2", 0.3),
          ("lr_power", -0.5)])
apply_op("Ftrl", {"var": ANY, "accum": POSITIVE, "linear": ANY},
         [("grad", "grad"), ("lr", 0.1), ("l1", 0.0), ("l2", 0.0),
          ("lr_power", -0.7)], label="power -0.7")
apply_op("FtrlV2", {"var": ANY, "accum": POSITIVE, "linear": ANY},
         [("grad", "grad"), ("lr", 0.1), ("l1", 0.2), ("l2", 0.3),
          ("l2_shrinkage", 0.1), ("lr_power", -0.5)])
apply_op("FtrlV2", {"var": ANY, "accum": POSITIVE, "linear": ANY},
         [("grad", "grad"), ("lr", 0.1), ("l1", 0.2), ("l2", 0.3),
          ("l2_shrinkage", 0.1), ("lr_power", -0.5)],
         label="multiply linear", multiply_linear_by_lr=True)
apply_op("AddSign", {"var": ANY, "m": ANY},
         [("lr", 0.1), ("alpha", 1.1), ("sign_decay", 0.9), ("beta", 0.8),
          ("grad", "grad")], sparse=False)
apply_op("PowerSign", {"var": ANY, "m": ANY},
         [("lr", 0.1), ("logbase", 1.1), ("sign_decay", 0.9), ("beta", 0.8),
          ("grad", "grad")], sparse=False)
for op in ("ResourceApplyKerasMomentum", "ResourceSparseApplyKerasMomentum"):
    for nesterov in (False, True):
        one(op, True, "Sparse" in op, {"var": ANY, "accum": ANY},
            [("lr", 0.1), ("grad", "grad"), ("momentum", 0.9)], None,
            "nesterov" * nesterov, {"use_nesterov": nesterov})
one("ResourceApplyAdamWithAmsgrad", True, False,
    {"var": ANY, "m": ANY, "v": POSITIVE, "vhat": POSITIVE},
    [("beta1_power", 0.7), ("beta2_power", 0.8), ("lr", 0.1),
     ("beta1", 0.9), ("beta2", 0.99), ("epsilon", 0.01), ("grad", "grad")],
    None, "", {})
