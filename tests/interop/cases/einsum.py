"""Einsum: sums of products over named dimensions."""
from cases import X, each


def einsum(equation, *shapes, **kw):
    """The equation for inputs of those shapes, of every type."""
    kw.setdefault("types", None)
    each("Einsum", "%s %s" % (equation, list(shapes)),
         inputs=[X(*s, seed=i) for i, s in enumerate(shapes)],
         equation=equation, **kw)


for equation, *shapes in (
        ("ij->", (2, 3)), ("ij->ij", (2, 3)), ("ij->ji", (2, 3)),
        ("ii->", (3, 3)), ("ii->i", (3, 3)), ("ij->i", (2, 3)),
        ("ij->j", (2, 3)), ("->", ()), ("i->i", (4,)), ("iij->j", (2, 2, 3)),
        ("ijkl->ljki", (2, 3, 1, 2)), ("aab,bcc->ac", (2, 2, 3), (3, 4, 4)),
        ("iji->ji", (2, 3, 2)), ("ijj,j->i", (2, 3, 3), (3,)),
        ("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk->ki", (2, 3), (3, 4)),
        ("ji,kj->ik", (3, 2), (4, 3)), ("bij,bjk->bik", (2, 2, 3), (2, 3, 4)),
        ("ij,ij->ij", (2, 3), (2, 3)), ("ij,ij->", (2, 3), (2, 3)),
        ("i,j->ij", (2,), (3,)), ("i,i->", (5,), (5,)), (",->", (), ()),
        ("ij,->ij", (2, 3), ()), ("ij,j->i", (2, 3), (3,)),
        ("ij,k->jk", (2, 3), (4,)), ("bhwc,bhd->bwd", (2, 3, 2, 4), (2, 3, 2)),
        ("abc,cde->abde", (2, 1, 3), (3, 2, 2)), ("i->ii", (3,)),
        ("ij->iijj", (2, 3)), ("ij->jii", (2, 3)), ("i,j->ijji", (2,), (3,)),
        ("ij,jk->iik", (2, 3), (3, 2)), ("ij->", (0, 3)), ("ij->i", (2, 0)),
        ("ij,jk->ik", (2, 0), (0, 3)), ("ij,jk->ik", (0, 2), (2, 3)),
        ("bi,bj->bij", (0, 2), (0, 3)),
        # A dimension of 0 goes with any that comes after it.
        ("ij,jk->ik", (2, 0), (3, 4)), ("bij,bkj->bik", (1, 2, 0), (1, 3, 2))):
    einsum(equation, *shapes)
for equation, *shapes in (
        ("...->...", (2, 3)), ("...ij->...ji", (2, 3, 4)), ("i...->...", (3, 2)),
        ("...ii->...i", (2, 3, 3)), ("ij...->...ji", (2, 3, 4, 1)),
        ("...ij,...jk->...ik", (2, 3), (3, 4)),
        ("...ij,...jk->...ik", (5, 2, 3), (3, 4)),
        ("...ij,...jk->...ik", (5, 1, 2, 3), (4, 3, 4)),
        ("...ij,jk->...ik", (2, 2, 3), (3, 4)),
        ("ij...,jk...->ik...", (2, 3, 1), (3, 4, 5)),
        ("b...i,b...i->b...", (2, 3, 4), (2, 3, 4)),
        ("...,...->...", (2, 1), (3,)), ("...i,...->...i", (2, 3), (2,)),
        ("...i->...", (2, 3, 4)), ("...,...i->i...", (3,), (2, 1, 4))):
    einsum(equation, *shapes, types=["float32", "int64", "complex64"])
einsum("ij,jk->ik", (130, 70), (70, 90), types=["float32", "float64"])
einsum("abij,abjk->abik", (3, 4, 20, 30), (3, 4, 30, 10), types=["float32"])
for equation, *shapes in (
        ("ij->i", (2,)), ("ij,jk->ik", (2, 3), (4, 3)), ("ii->", (2, 3)),
        ("...ij->...", (2,)), ("i...,i...->i...", (2, 3), (2, 4))):
    einsum(equation, *shapes, types=["float32"], fails=True)
