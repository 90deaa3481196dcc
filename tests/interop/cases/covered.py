"""Ops that cannot have a case of their own, and the tests that cover them."""
from cases import covered

covered("_Send _Recv _HostSend _HostRecv", "every test")
covered("_Arg _Retval _ArrayToList _ListToArray", "PartitionedCall")
covered("ParallelConcat _ParallelConcatStart _ParallelConcatUpdate",
        "Pack in parallel")
covered("PlaceholderV2", "Placeholder")
covered("_FusedMatMul", "test_trainer")
# Without a kernel in TensorFlow: one is rewritten, the other is broken.
covered("AccumulateNV2 TopK", "AddN and TopKV2")
covered("_SwitchN", "Case, which the master lowers to it")
# Its kernel in TensorFlow asks for an input that its definition lacks.
covered("MutableDenseHashTable", "MutableDenseHashTableV2")
# TensorFlow of today refuses to build the second form.
covered("TensorArrayV2 TensorArrayGradV2 TensorArrayWriteV2 "
        "TensorArrayReadV2 TensorArrayGatherV2 TensorArrayScatterV2 "
        "TensorArrayConcatV2 TensorArraySplitV2 TensorArraySizeV2 "
        "TensorArrayCloseV2", "the third form, which has the same kernels")
# Names of before TensorFlow 1.0, which graphs of today cannot have.
covered("BatchCholesky BatchCholeskyGrad BatchMatrixDeterminant "
        "BatchMatrixInverse BatchMatrixSolve BatchMatrixSolveLs "
        "BatchMatrixTriangularSolve BatchSelfAdjointEig BatchSelfAdjointEigV2 "
        "BatchSvd BatchMatrixBandPart BatchMatrixDiag BatchMatrixDiagPart "
        "BatchMatrixSetDiag SelfAdjointEig",
        "the names without Batch, with the same kernels")
covered("IdentityReader TextLineReader FixedLengthRecordReader "
        "TFRecordReader ReaderReset ReaderSerializeState ReaderRestoreState",
        "cases of their second version, the same kernels: graphs of today's "
        "TensorFlow cannot have these")

covered("Iterator IteratorFromStringHandle IteratorGetNextSync BatchDataset "
        "ParallelMapDataset ParallelInterleaveDatasetV2 "
        "ParallelInterleaveDatasetV3 ShuffleDatasetV3 ModelDataset "
        "FinalizeDataset MaxIntraOpParallelismDataset OptimizeDataset "
        "PrivateThreadPoolDataset AssertNextDataset OptimizeDatasetV2 "
        "PaddedBatchDataset CacheDatasetV2 "
        "TFRecordDatasetV2 FixedLengthRecordDataset RewriteDataset "
        "ParallelInterleaveDataset LegacyParallelInterleaveDatasetV2",
        "cases/datasets.py, under other names of the same kernels")
covered("AudioSummary", "AudioSummaryV2, the same kernel")
# Ops that graphs of today's TensorFlow cannot have any more.
covered("BatchNormWithGlobalNormalization "
        "BatchNormWithGlobalNormalizationGrad",
        "TensorFlow's own nn_batchnorm_test")
covered("RandomPoisson SampleDistortedBoundingBox",
        "their second versions, the same kernels")
