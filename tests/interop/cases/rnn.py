"""Recurrent cells that are one op."""
from cases import X, each, n0

B, I, C, T = 3, 4, 5, 6
KW = dict(types=["float32", "float16"],
          tol={"float32": 1e-4, "float16": 0.02})


def x(*shape):
    return X(*shape, lo=-1, hi=1)


W = dict(w=x(I + C, 4 * C), wci=x(C), wcf=x(C), wco=x(C), b=x(4 * C))
for peep in (False, True):
    label = "peephole %s" % peep
    before = dict(cs_prev=x(B, C), h_prev=x(B, C))
    each("LSTMBlockCell", label, x=x(B, I), **before, **W, use_peephole=peep,
         cell_clip=0.5, **KW)
    made = {k: x(B, C) for k in ("i", "cs", "f", "o", "ci", "co")}
    each("LSTMBlockCellGrad", label, x=x(B, I), **before, **W, **made,
         cs_grad=x(B, C), h_grad=x(B, C), use_peephole=peep, **KW)
    made = {k: x(T, B, C) for k in ("i", "cs", "f", "o", "ci", "co", "h")}
    times = dict(seq_len_max=n0(T, "int64"), x=x(T, B, I))
    for v in ("", "V2"):
        each("BlockLSTM" + v, label, **times, **before, **W,
             use_peephole=peep, **KW)
        each("BlockLSTMGrad" + v, label, **times, **before, **W, **made,
             cs_grad=x(T, B, C), h_grad=x(T, B, C), use_peephole=peep, **KW)
GRU = dict(x=x(B, I), h_prev=x(B, C), w_ru=x(I + C, 2 * C), w_c=x(I + C, C),
           b_ru=x(2 * C), b_c=x(C))
GRU_KW = dict(types=["float32"], tol=1e-4)
each("GRUBlockCell", **GRU, **GRU_KW)
each("GRUBlockCellGrad", **GRU, r=x(B, C), u=x(B, C), c=x(B, C), d_h=x(B, C),
     **GRU_KW)
