"""Ask for a row of memory before it is needed, so that the wait for one overlaps with the wait for others."""

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

__all__ = ["prefetch"]


@intrinsic
def prefetch(typing_context, array, row):
    """Prefetch array[row] (its first cache line) for writing."""

    def generate(context, builder, signature, arguments):
        made = context.make_array(signature.args[0])(context, builder, arguments[0])
        stride = cgutils.unpack_tuple(builder, made.strides)[0]
        byte, int32 = ir.IntType(8), ir.IntType(32)
        start = builder.bitcast(made.data, byte.as_pointer())
        index = context.cast(builder, arguments[1], signature.args[1], types.intp)
        address = builder.gep(start, [builder.mul(index, stride)])
        function_type = ir.FunctionType(ir.VoidType(), [byte.as_pointer(), int32, int32, int32])
        function = cgutils.get_or_insert_function(builder.module, function_type, "llvm.prefetch.p0")
        builder.call(function, [address, int32(1), int32(3), int32(1)])
        return context.get_dummy_value()

    return types.void(array, row), generate
