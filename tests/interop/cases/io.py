"""Checkpoints, file names, files."""
import os

from cases import PLAIN, V, X, each, f32, graph, i32, n0, s, s0

each("ShardedFilename", basename=s0("/a/b"), shard=n0(3, "int32"),
     num_shards=n0(12, "int32"))
each("ShardedFilespec", basename=s0("/a/b"), num_shards=n0(12, "int32"))


@graph("SaveV2 RestoreV2", types=PLAIN)
def there_and_back(k, dtype):
    path = k.x(s0(k.path("save_" + k.name())))
    save = k.raw.SaveV2(
        prefix=path, tensor_names=k.x(s("a", "b/c", "d")),
        shape_and_slices=k.x(s("", "", "")),
        tensors=[k.x(X(3, 2), dtype), k.x(V(1), dtype), k.x(X(0, 2), dtype)])
    with k.after(save):
        return k.raw.RestoreV2(
            prefix=path, tensor_names=k.x(s("d", "a", "b/c")),
            shape_and_slices=k.x(s("", "", "")), dtypes=[dtype] * 3)


@graph("SaveV2 RestoreV2", "slices", types=["float32", "int64"])
def slices(k, dtype):
    path = k.x(s0(k.path("slice_" + k.name())))
    save = k.raw.SaveV2(
        prefix=path, tensor_names=k.x(s("t", "t", "u")),
        shape_and_slices=k.x(s("5 4 0,2:0,4", "5 4 2,3:0,4", "")),
        tensors=[k.x(X(2, 4), dtype), k.x(X(3, 4), dtype),
                 k.x(X(6), dtype)])
    with k.after(save):
        return k.raw.RestoreV2(
            prefix=path, tensor_names=k.x(s("t", "t", "t", "u", "t")),
            shape_and_slices=k.x(s("", "5 4 0,2:0,4", "5 4 1,3:1,2",
                                   "6 2,2", "5 4 -:3,1")),
            dtypes=[dtype] * 5)


@graph("RestoreV2", "no such tensor", fails=True)
def missing(k):
    path = k.x(s0(k.path("missing_" + k.name())))
    save = k.raw.SaveV2(prefix=path, tensor_names=k.x(s("a")),
                        shape_and_slices=k.x(s("")),
                        tensors=[k.x(f32(1))])
    with k.after(save):
        return k.raw.RestoreV2(prefix=path, tensor_names=k.x(s("zz")),
                               shape_and_slices=k.x(s("")),
                               dtypes=["float32"])


@graph("RestoreV2", "no such file", fails=True)
def no_file(k):
    return k.raw.RestoreV2(
        prefix=k.x(s0(k.path("nothing"))), tensor_names=k.x(s("a")),
        shape_and_slices=k.x(s("")), dtypes=["float32"])


@graph("RestoreV2", "another type", fails=True)
def other_type(k):
    path = k.x(s0(k.path("type_" + k.name())))
    save = k.raw.SaveV2(prefix=path, tensor_names=k.x(s("a")),
                        shape_and_slices=k.x(s("")), tensors=[k.x(f32(1))])
    with k.after(save):
        return k.raw.RestoreV2(prefix=path, tensor_names=k.x(s("a")),
                               shape_and_slices=k.x(s("")),
                               dtypes=["int32"])


@graph("MergeV2Checkpoints", "two shards")
def merge(k):
    base = k.path("merge_" + k.name())
    parts = [base + "_temp/part-0000%d-of-00002" % i for i in range(2)]
    saves = [k.raw.SaveV2(
        prefix=k.x(s0(p)), tensor_names=k.x(s("v%d" % i, "w")),
        shape_and_slices=k.x(s("", "4 2 %d,2:0,2" % (2 * i))),
        tensors=[k.x(f32(i, 1)), k.x(X(2, 2, seed=i), "float32")])
        for i, p in enumerate(parts)]
    with k.after(*saves):
        done = k.raw.MergeV2Checkpoints(checkpoint_prefixes=k.x(s(*parts)),
                                        destination_prefix=k.x(s0(base)))
    with k.after(done):
        return k.raw.RestoreV2(
            prefix=k.x(s0(base)), tensor_names=k.x(s("v0", "v1", "w")),
            shape_and_slices=k.x(s("", "", "")), dtypes=["float32"] * 3)


@graph("Save Restore SaveSlices RestoreSlice", "the old format")
def old(k):
    path = k.path("old_" + k.name())
    save = k.raw.Save(filename=k.x(s0(path)), tensor_names=k.x(s("a", "b")),
                      data=[k.x(X(3, 2), "float32"), k.x(i32([1, 2]))])
    with k.after(save):
        return k.raw.Restore(file_pattern=k.x(s0(path)),
                             tensor_name=k.x(s0("b")), dt="int32")


@graph("WriteFile ReadFile", "there and back")
def files(k):
    path = os.path.join(k.path("files"), "deep", k.name())
    w = k.raw.WriteFile(filename=k.x(s0(path)), contents=k.x(s0("text\0x")))
    with k.after(w):
        return k.raw.ReadFile(filename=k.x(s0(path)))


@graph("ReadFile", "not there", fails=True)
def not_there(k):
    return k.raw.ReadFile(filename=k.x(s0(k.path("none"))))


@graph("MatchingFiles", "a pattern")
def matching(k):
    path = k.path("match_" + k.name())
    ws = [k.raw.WriteFile(filename=k.x(s0(path + e)), contents=k.x(s0("x")))
          for e in (".a", ".b", ".c")]
    with k.after(*ws):
        return k.tf.size(k.raw.MatchingFiles(
            pattern=k.x(s0(path + ".[ab]"))))
