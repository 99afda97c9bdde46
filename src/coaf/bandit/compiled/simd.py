"""What `linear.py` is written in: matrices without reference counts, and eight doubles at once.

Two things keep a plain numba loop behind hand-tuned C. LLVM must assume that arrays overlap, so it
keeps accumulators in memory: `load`, `store`, `splat` and `fma` name them as register values
instead (LLVM splits the eight lanes into whatever registers the machine has). And numba counts
references to arrays at every call, which costs more than a small matrix product: `block` makes a
bare view of a C-ordered float array. Its owner must outlive it: arguments do, and what a function
makes itself it must `keep`.
"""

import operator
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.extending import intrinsic, models, overload, register_jitable, register_model

from coaf.bandit.kept.files import remember

WIDTH = 8
_VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)

# A bare matrix and a register, in compiled code; Python never holds one.
Block: TypeAlias = Any
Lanes: TypeAlias = Any

Compilable = TypeVar("Compilable", bound=Callable[..., Any])


def compiled(function: Compilable) -> Compilable:
    """Compile with numba on first use, and keep the result between runs: the one way to do so.

    Scalars keep to IEEE arithmetic, so that Python and compiled code agree to the last bit.
    """
    settings: dict[str, Any] = {"error_model": "numpy", "nogil": True}
    result: Compilable = njit(**settings)(function)
    remember(result)
    return result


def whole_lanes(n: int) -> int:
    """`n` rounded up to whole lanes, in Python as in compiled code."""
    return (n + WIDTH - 1) // WIDTH * WIDTH


register_jitable(whole_lanes)


class _Lanes(types.Type):
    def __init__(self) -> None:
        super().__init__(name="Lanes")


class _Block(types.Type):
    def __init__(self) -> None:
        super().__init__(name="Block")


_lanes, _block = _Lanes(), _Block()


@register_model(_Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)  # type: ignore[no-untyped-call]


@register_model(_Block)
class _BlockModel(models.StructModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        members = [("data", types.CPointer(types.float64)), ("columns", types.intp)]
        super().__init__(manager, kind, members)  # type: ignore[no-untyped-call]


def _operation(build: Callable[..., Any]) -> Any:
    """A numba intrinsic, which to a type checker is a function of anything."""
    return intrinsic(build)


def _struct(context: Any, builder: Any, value: Any = None) -> Any:
    return cgutils.create_struct_proxy(_block)(context, builder, value=value)


def _address(context: Any, builder: Any, args: Any) -> Any:
    block = _struct(context, builder, args[0])
    offset = builder.add(builder.mul(args[1], block.columns), args[2])
    return builder.gep(block.data, [offset])


@_operation
def block(_typing: Any, array: Any) -> Any:
    """A bare view of a C-ordered, two-dimensional float array."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source = context.make_array(signature.args[0])(context, builder, args[0])
        view = _struct(context, builder)
        view.data = source.data
        view.columns = builder.extract_value(source.shape, 1)
        return view._getvalue()

    return _block(array), code


@_operation
def keep(_typing: Any, array: Any) -> Any:
    """Does nothing, but after the last use of a block of `array`: numba would free it earlier."""

    def code(context: Any, _builder: Any, _signature: Any, _args: Any) -> Any:
        return context.get_dummy_value()

    return types.void(array), code


@_operation
def below(_typing: Any, _view: Any, _row: Any, _columns: Any) -> Any:
    """What lies from `row` on, as a block of so many columns."""

    def code(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        view = _struct(context, builder, args[0])
        rest = _struct(context, builder)
        rest.data = builder.gep(view.data, [builder.mul(args[1], view.columns)])
        rest.columns = args[2]
        return rest._getvalue()

    return _block(_block, types.intp, types.intp), code


@_operation
def columns(_typing: Any, _view: Any) -> Any:
    """How many columns a block has."""

    def code(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return _struct(context, builder, args[0]).columns

    return types.intp(_block), code


@_operation
def _get(_typing: Any, _view: Any, _row: Any, _column: Any) -> Any:
    def code(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.load(_address(context, builder, args))

    return types.float64(_block, types.intp, types.intp), code


@_operation
def _set(_typing: Any, _view: Any, _row: Any, _column: Any, _value: Any) -> Any:
    def code(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        builder.store(args[3], _address(context, builder, args))
        return context.get_dummy_value()

    return types.void(_block, types.intp, types.intp, types.float64), code


@overload(operator.getitem)
def _getitem(view: Any, index: Any) -> Any:
    if isinstance(view, _Block):

        def get(view: Any, index: Any) -> Any:
            return _get(view, index[0], index[1])

        return get
    return None


@overload(operator.setitem)
def _setitem(view: Any, index: Any, value: Any) -> Any:
    if isinstance(view, _Block):

        def put(view: Any, index: Any, value: Any) -> Any:
            _set(view, index[0], index[1], value)

        return put
    return None


def _vector_address(context: Any, builder: Any, args: Any) -> Any:
    return builder.bitcast(_address(context, builder, args), _VECTOR.as_pointer())


@_operation
def load(_typing: Any, _view: Any, _row: Any, _column: Any) -> Any:
    """Columns `column` to `column + 8` of a row."""

    def code(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.load(_vector_address(context, builder, args), align=8)

    return _lanes(_block, types.intp, types.intp), code


@_operation
def store(_typing: Any, _view: Any, _row: Any, _column: Any, _value: Any) -> Any:
    """Write eight lanes to columns `column` to `column + 8` of a row."""

    def code(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        builder.store(args[3], _vector_address(context, builder, args), align=8)
        return context.get_dummy_value()

    return types.void(_block, types.intp, types.intp, _lanes), code


@_operation
def splat(_typing: Any, _value: Any) -> Any:
    """The same number in every lane."""

    def code(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        undefined = ir.Constant(_VECTOR, ir.Undefined)
        single = builder.insert_element(undefined, args[0], ir.Constant(ir.IntType(32), 0))
        everywhere = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH)
        return builder.shuffle_vector(single, undefined, everywhere)

    return _lanes(types.float64), code


@_operation
def fma(_typing: Any, _a: Any, _b: Any, _c: Any) -> Any:
    """`a * b + c`, fused where the machine can."""

    def code(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        fused = ("contract",)
        return builder.fadd(builder.fmul(args[0], args[1], flags=fused), args[2], flags=fused)

    return _lanes(_lanes, _lanes, _lanes), code


@_operation
def smaller(_typing: Any, _a: Any, _b: Any) -> Any:
    """The smaller of two, lane by lane."""

    def code(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.select(builder.fcmp_ordered("<", args[0], args[1]), args[0], args[1])

    return _lanes(_lanes, _lanes), code


@_operation
def root(_typing: Any, _a: Any) -> Any:
    """The square root, or 0 of what rounding made negative."""

    def code(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        zero = ir.Constant(_VECTOR, [0.0] * WIDTH)
        safe = builder.select(builder.fcmp_ordered(">", args[0], zero), args[0], zero)
        kind = ir.FunctionType(_VECTOR, [_VECTOR])
        name = f"llvm.sqrt.v{WIDTH}f64"
        function = cgutils.get_or_insert_function(builder.module, kind, name)
        return builder.call(function, [safe])

    return _lanes(_lanes), code
