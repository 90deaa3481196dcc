"""More of lookup tables: their other forms, files, errors."""
from cases import X, f32, graph, i32, i64, n0, s, s0


def make(k, op="HashTableV2", kt="string", vt="int64", **kw):
    return getattr(k.raw, op)(key_dtype=kt, value_dtype=vt,
                              shared_name=k.name(), **kw)


def dense(k, empty=n0(-1, "int64"), deleted=n0(-2, "int64"), vt="int64",
          **kw):
    return k.raw.MutableDenseHashTableV2(
        empty_key=k.x(empty), deleted_key=k.x(deleted), value_dtype=vt,
        shared_name=k.name(), **kw)


def find(k, h, keys, default):
    return k.raw.LookupTableFindV2(table_handle=h, keys=k.x(keys),
                                   default_value=k.x(default))


def insert(k, h, keys, values):
    return k.raw.LookupTableInsertV2(table_handle=h, keys=k.x(keys),
                                     values=k.x(values))


def initialize(k, h, keys, values):
    return k.raw.InitializeTableV2(table_handle=h, keys=k.x(keys),
                                   values=k.x(values))


def size(k, h):
    return k.raw.LookupTableSizeV2(table_handle=h)


NONE = n0(-7, "int64")
ABC, VALUES = s("a", "b", "c"), i64([1, 2, 3])


@graph("HashTableV2 InitializeTableV2 LookupTableExportV2")
def static(k):
    h = make(k)
    with k.after(initialize(k, h, s("a"), i64([4]))):
        again = initialize(k, h, s("a"), i64([4]))
    with k.after(again):
        out = k.raw.LookupTableExportV2(table_handle=h, Tkeys="string",
                                        Tvalues="int64")
        return find(k, h, s("a", "z"), NONE), list(out), size(k, h), \
            find(k, h, s0("a"), NONE)


@graph("HashTable InitializeTable LookupTableFind LookupTableSize", "old form")
def old(k):
    h = make(k, "HashTable")
    with k.after(k.raw.InitializeTable(table_handle=h, keys=k.x(ABC),
                                       values=k.x(VALUES))):
        return k.raw.LookupTableFind(
            table_handle=h, keys=k.x(s("b", "z")), default_value=k.x(NONE)), \
            k.raw.LookupTableSize(table_handle=h)


@graph("MutableHashTable LookupTableInsert LookupTableImport "
       "LookupTableExport", "old form")
def old_mutable(k):
    h = make(k, "MutableHashTable")
    with k.after(k.raw.LookupTableInsert(table_handle=h, keys=k.x(ABC),
                                         values=k.x(VALUES))):
        n = k.raw.LookupTableSize(table_handle=h)
    with k.after(n):
        again = k.raw.LookupTableImport(table_handle=h, keys=k.x(s("q")),
                                        values=k.x(i64([9])))
    with k.after(again):
        return n, list(k.raw.LookupTableExport(
            table_handle=h, Tkeys="string", Tvalues="int64"))


@graph("MutableHashTableV2 LookupTableImportV2 LookupTableFindV2", "a default "
       "for each key")
def defaults(k):
    h = make(k, "MutableHashTableV2")
    with k.after(k.raw.LookupTableImportV2(table_handle=h, keys=k.x(ABC),
                                           values=k.x(VALUES))):
        return find(k, h, s("a", "x", "c"), i64([7, 8, 9]))


for form in ("", "V2"):
    @graph("MutableHashTableOfTensors" + form)
    def tensors(k, form=form):
        h = make(k, "MutableHashTableOfTensors" + form, value_shape=[2])
        suffix = form
        put = getattr(k.raw, "LookupTableInsert" + suffix)(
            table_handle=h, keys=k.x(ABC), values=k.x(X(3, 2), "int64"))
        with k.after(put):
            return getattr(k.raw, "LookupTableFind" + suffix)(
                table_handle=h, keys=k.x(s("c", "z")),
                default_value=k.x(i64([8, 9]))), \
                getattr(k.raw, "LookupTableSize" + suffix)(table_handle=h)


@graph("MutableDenseHashTableV2")
def dense_table(k):
    h = dense(k, initial_num_buckets=4, value_shape=[2], vt="float32")
    with k.after(insert(k, h, i64([1, 5, 9]), f32([[1, 2], [3, 4], [5, 6]]))):
        out = k.raw.LookupTableRemoveV2(table_handle=h, keys=k.x(i64([5])))
    with k.after(out):
        more = insert(k, h, i64([9, 12]), f32([[7, 8], [9, 0]]))
    with k.after(more):
        return find(k, h, i64([[1], [5], [9], [12]]), f32(0, -1)), size(k, h)


@graph("MutableDenseHashTableV2", "vectors as keys")
def dense_vectors(k):
    h = dense(k, i64([-1, -1]), i64([-2, -2]))
    with k.after(insert(k, h, i64([[1, 5], [2, 6]]), i64([10, 20]))):
        return find(k, h, i64([[2, 6], [2, 7]]), NONE), size(k, h)


ANONYMOUS = {
    "AnonymousMutableHashTable": {"key_dtype": "string",
                                  "value_dtype": "int64"},
    "AnonymousHashTable": {"key_dtype": "string", "value_dtype": "int64"},
}
for op, args in ANONYMOUS.items():
    @graph(op)
    def anonymous(k, op=op, args=args):
        h = getattr(k.raw, op)(**args)
        with k.after(k.raw.LookupTableImportV2(
                table_handle=h, keys=k.x(ABC), values=k.x(VALUES))):
            return find(k, h, s("b", "z"), NONE), size(k, h)


@graph("AnonymousMutableHashTableOfTensors")
def anonymous_tensors(k):
    h = k.raw.AnonymousMutableHashTableOfTensors(
        key_dtype="string", value_dtype="int64", value_shape=[2])
    with k.after(insert(k, h, s("a"), i64([[1, 2]]))):
        return find(k, h, s("b", "a"), i64([8, 9]))


@graph("AnonymousMutableDenseHashTable")
def anonymous_dense(k):
    h = k.raw.AnonymousMutableDenseHashTable(
        empty_key=k.x(n0(-1, "int64")), deleted_key=k.x(n0(-2, "int64")),
        value_dtype="int64")
    with k.after(insert(k, h, i64([1]), i64([5]))):
        return find(k, h, i64([1, 2]), NONE), size(k, h)


FAIL = {
    ("LookupTableFindV2", "not initialised"):
        lambda k: find(k, make(k), s("a"), NONE),
    ("LookupTableFindV2", "wrong default"):
        lambda k: find(k, make(k, "MutableHashTableV2"), ABC, i64([1, 2])),
    ("LookupTableExportV2", "not initialised"):
        lambda k: list(k.raw.LookupTableExportV2(
            table_handle=make(k), Tkeys="string", Tvalues="int64")),
    ("MutableDenseHashTableV2", "the empty key"):
        lambda k: find(k, dense(k), i64([-1]), NONE),
    ("MutableDenseHashTableV2", "the deleted key"):
        lambda k: find(k, dense(k), i64([-2]), NONE),
    ("MutableDenseHashTableV2", "equal keys"):
        lambda k: size(k, dense(k, deleted=n0(-1, "int64"))),
}
for (name, why), what in FAIL.items():
    graph(name, why, fails=True)(what)

WRITES = {
    ("LookupTableInsertV2", "a static one"):
        (make, lambda k, h: insert(k, h, ABC, VALUES)),
    ("LookupTableInsertV2", "wrong shape"):
        (lambda k: make(k, "MutableHashTableV2"),
         lambda k, h: insert(k, h, ABC, i64([1]))),
    ("LookupTableInsertV2", "the empty key"):
        (dense, lambda k, h: insert(k, h, i64([-1]), i64([1]))),
    ("LookupTableRemoveV2", "a static one"):
        (make, lambda k, h: k.raw.LookupTableRemoveV2(table_handle=h,
                                                      keys=k.x(ABC))),
    ("InitializeTableV2", "values of one key"):
        (make, lambda k, h: initialize(k, h, s("a", "a"), i64([1, 2]))),
    ("InitializeTableV2", "other sizes"):
        (make, lambda k, h: initialize(k, h, s("a", "b"), i64([1]))),
    ("InitializeTableV2", "no vector"):
        (make, lambda k, h: initialize(k, h, s0("a"), n0(1, "int64"))),
    ("InitializeTableV2", "wrong types"):
        (make, lambda k, h: initialize(k, h, i64([1]), i64([1]))),
}
for (name, why), (table, write) in WRITES.items():
    @graph(name, why, fails=True)
    def fails(k, table=table, write=write):
        h = table(k)
        with k.after(write(k, h)):
            return size(k, h)

# --- Files ------------------------------------------------------------------


def filled(k, h, text, key, value, op="InitializeTableFromTextFileV2", **kw):
    path = k.path(k.name() + ".txt")
    with open(path, "w") as f:
        f.write(text)
    return getattr(k.raw, op)(table_handle=h, filename=k.x(s0(path)),
                              key_index=key, value_index=value, **kw)


READS = {
    "lines": ("hello\nworld\nfoo bar\n", -2, -1, {}, s("foo bar", "x")),
    "columns": ("a\t1\nb\t2\n", 0, 1, {}, s("b", "z")),
    "a delimiter": ("a,1,x\nb,2,y\n", 2, 1, {"delimiter": ","}, s("y", "b")),
    "some lines": ("a\nb\nc\n", -2, -1, {"vocab_size": 2}, s("b", "c")),
    "an offset": ("a\nb\n", -2, -1, {"offset": 10}, s("a", "b")),
}
for label, (text, key, value, kw, keys) in READS.items():
    @graph("InitializeTableFromTextFileV2", label)
    def reads(k, text=text, key=key, value=value, kw=kw, keys=keys):
        h = make(k)
        with k.after(filled(k, h, text, key, value, **kw)):
            return find(k, h, keys, NONE), size(k, h)


@graph("InitializeTableFromTextFile", "old form")
def old_file(k):
    h = make(k, "HashTable", "int64", "string")
    with k.after(filled(k, h, "a\nb\n", -1, -2,
                        "InitializeTableFromTextFile")):
        return k.raw.LookupTableFind(table_handle=h, keys=k.x(i64([1, 9])),
                                     default_value=k.x(s0("?")))


BROKEN = {
    "too few columns": ("a\t1\nb\n", 0, 1, {}),
    "no number": ("a\tx\n", 0, 1, {}),
    "an empty line": ("a\n\nb\n", -2, -1, {}),
    "double keys": ("a\na\n", -2, -1, {}),
    "too few lines": ("a\n", -2, -1, {"vocab_size": 3}),
    "an empty file": ("", -2, -1, {}),
    "a line number as string": ("a\n", -1, -1, {}),
}
for label, (text, key, value, kw) in BROKEN.items():
    @graph("InitializeTableFromTextFileV2", label, fails=True)
    def breaks(k, text=text, key=key, value=value, kw=kw):
        h = make(k)
        with k.after(filled(k, h, text, key, value, **kw)):
            return size(k, h)


assert i32
