"""Ops that cannot have a case of their own, and the tests that cover them."""
from cases import covered

covered("_Send _Recv _HostSend _HostRecv", "every test")
covered("_Arg _Retval _ArrayToList _ListToArray", "PartitionedCall")
covered("PlaceholderV2", "Placeholder")
covered("_FusedMatMul", "test_trainer")
# Without a kernel in TensorFlow: one is rewritten, the other is broken.
covered("AccumulateNV2 TopK", "AddN and TopKV2")
