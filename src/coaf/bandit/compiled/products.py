"""Compiled matrix products in register blocks: four or eight rows by eight or sixteen lanes.

Operands are blocks from a given row on, padded to whole lanes and to multiples of four rows.

Where the machine has registers of eight doubles, large blocks keep them busy; where eight lanes
take two registers of sixteen, they would not fit, and blocks are four by eight. Each sum is added
up in the same order, so the bits are the same.
"""

from llvmlite import binding
from numba import config

from coaf.bandit.compiled.simd import (
    Block,
    Lanes,
    compiled,
    fma,
    load,
    splat,
    store,
    whole_lanes,
)

# Not where code is for any machine (NUMBA_CPU_NAME).
_FEATURES = {} if getattr(config, "CPU_NAME", None) else binding.get_host_cpu_features()
WIDE = bool(_FEATURES.get("avx512f", False))


@compiled
def _store4(out: Block, row: int, column: int, a: Lanes, b: Lanes, c: Lanes, d: Lanes) -> None:
    store(out, row, column, a)
    store(out, row + 1, column, b)
    store(out, row + 2, column, c)
    store(out, row + 3, column, d)


@compiled
def product(
    A: Block, a0: int, rows: int, X: Block, x0: int, inner: int, out: Block, o0: int, lanes: int
) -> None:
    """out[o0:][:rows, :lanes] = A[a0:][:rows, :inner] @ X[x0:][:inner, :lanes], in blocks."""
    c = 0
    while WIDE and c + 16 <= lanes:
        k = 0
        while k + 8 <= rows:
            a = a0 + k
            s0 = splat(0.0)
            s1, s2, s3, s4, s5, s6, s7 = s0, s0, s0, s0, s0, s0, s0
            z0, z1, z2, z3, z4, z5, z6, z7 = s0, s0, s0, s0, s0, s0, s0, s0
            for i in range(inner):
                x, z = load(X, x0 + i, c), load(X, x0 + i, c + 8)
                p = splat(A[a, i])
                s0, z0 = fma(p, x, s0), fma(p, z, z0)
                p = splat(A[a + 1, i])
                s1, z1 = fma(p, x, s1), fma(p, z, z1)
                p = splat(A[a + 2, i])
                s2, z2 = fma(p, x, s2), fma(p, z, z2)
                p = splat(A[a + 3, i])
                s3, z3 = fma(p, x, s3), fma(p, z, z3)
                p = splat(A[a + 4, i])
                s4, z4 = fma(p, x, s4), fma(p, z, z4)
                p = splat(A[a + 5, i])
                s5, z5 = fma(p, x, s5), fma(p, z, z5)
                p = splat(A[a + 6, i])
                s6, z6 = fma(p, x, s6), fma(p, z, z6)
                p = splat(A[a + 7, i])
                s7, z7 = fma(p, x, s7), fma(p, z, z7)
            _store4(out, o0 + k, c, s0, s1, s2, s3)
            _store4(out, o0 + k, c + 8, z0, z1, z2, z3)
            _store4(out, o0 + k + 4, c, s4, s5, s6, s7)
            _store4(out, o0 + k + 4, c + 8, z4, z5, z6, z7)
            k += 8
        while k < rows:
            s0 = splat(0.0)
            s1, s2, s3, z0, z1, z2, z3 = s0, s0, s0, s0, s0, s0, s0
            for i in range(inner):
                x, z = load(X, x0 + i, c), load(X, x0 + i, c + 8)
                p = splat(A[a0 + k, i])
                s0, z0 = fma(p, x, s0), fma(p, z, z0)
                p = splat(A[a0 + k + 1, i])
                s1, z1 = fma(p, x, s1), fma(p, z, z1)
                p = splat(A[a0 + k + 2, i])
                s2, z2 = fma(p, x, s2), fma(p, z, z2)
                p = splat(A[a0 + k + 3, i])
                s3, z3 = fma(p, x, s3), fma(p, z, z3)
            _store4(out, o0 + k, c, s0, s1, s2, s3)
            _store4(out, o0 + k, c + 8, z0, z1, z2, z3)
            k += 4
        c += 16
    while c < lanes:
        k = 0
        while WIDE and k + 8 <= rows:
            s0 = splat(0.0)
            s1, s2, s3, z0, z1, z2, z3 = s0, s0, s0, s0, s0, s0, s0
            for i in range(inner):
                x = load(X, x0 + i, c)
                s0, z0 = fma(splat(A[a0 + k, i]), x, s0), fma(splat(A[a0 + k + 4, i]), x, z0)
                s1, z1 = fma(splat(A[a0 + k + 1, i]), x, s1), fma(splat(A[a0 + k + 5, i]), x, z1)
                s2, z2 = fma(splat(A[a0 + k + 2, i]), x, s2), fma(splat(A[a0 + k + 6, i]), x, z2)
                s3, z3 = fma(splat(A[a0 + k + 3, i]), x, s3), fma(splat(A[a0 + k + 7, i]), x, z3)
            _store4(out, o0 + k, c, s0, s1, s2, s3)
            _store4(out, o0 + k + 4, c, z0, z1, z2, z3)
            k += 8
        while k < rows:
            s0 = splat(0.0)
            s1, s2, s3 = s0, s0, s0
            for i in range(inner):
                x = load(X, x0 + i, c)
                s0 = fma(splat(A[a0 + k, i]), x, s0)
                s1 = fma(splat(A[a0 + k + 1, i]), x, s1)
                s2 = fma(splat(A[a0 + k + 2, i]), x, s2)
                s3 = fma(splat(A[a0 + k + 3, i]), x, s3)
            _store4(out, o0 + k, c, s0, s1, s2, s3)
            k += 4
        c += 8


@compiled
def accumulate(
    M: Block, m0: int, d: int, A: Block, a0: int, B: Block, b0: int, count: int, lanes: int
) -> None:
    """M[m0:][:d, :lanes] += A[a0:]ᵀ B[b0:], over `count` rows of each."""
    c = 0
    while c < lanes:
        k = 0
        while k < d:
            r = m0 + k
            s0, s1, s2, s3 = load(M, r, c), load(M, r + 1, c), load(M, r + 2, c), load(M, r + 3, c)
            for j in range(count):
                x = load(B, b0 + j, c)
                s0 = fma(splat(A[a0 + j, k]), x, s0)
                s1 = fma(splat(A[a0 + j, k + 1]), x, s1)
                s2 = fma(splat(A[a0 + j, k + 2]), x, s2)
                s3 = fma(splat(A[a0 + j, k + 3]), x, s3)
            _store4(M, r, c, s0, s1, s2, s3)
            k += 4
        c += 8


@compiled
def _add4(M: Block, r: int, c: int, Q: Block, a0: int, k: int, b0: int, count: int) -> None:
    """Four rows of M by eight lanes += Σ a bᵀ over rows of Q."""
    s0, s1, s2, s3 = load(M, r, c), load(M, r + 1, c), load(M, r + 2, c), load(M, r + 3, c)
    for j in range(count):
        b = load(Q, b0 + j, c)
        s0 = fma(splat(Q[a0 + j, k]), b, s0)
        s1 = fma(splat(Q[a0 + j, k + 1]), b, s1)
        s2 = fma(splat(Q[a0 + j, k + 2]), b, s2)
        s3 = fma(splat(Q[a0 + j, k + 3]), b, s3)
    _store4(M, r, c, s0, s1, s2, s3)


@compiled
def add_both(
    M: Block, v0: int, p0: int, d: int, Q: Block, x0: int, u0: int, w0: int, count: int
) -> None:
    """M[v0:] += Σ x xᵀ and M[p0:] += Σ w uᵀ over rows of Q, in and below the diagonal lanes.

    Two sums at once keep a machine of wide registers busy while each waits for its own last term.
    """
    c = 0
    while not WIDE and c < d:
        k = c
        while k < d:
            _add4(M, v0 + k, c, Q, x0, k, x0, count)
            _add4(M, p0 + k, c, Q, w0, k, u0, count)
            k += 4
        c += 8
    while c < d:
        k = c
        while k < d:
            r, q = v0 + k, p0 + k
            s0, s1, s2, s3 = load(M, r, c), load(M, r + 1, c), load(M, r + 2, c), load(M, r + 3, c)
            z0, z1, z2, z3 = load(M, q, c), load(M, q + 1, c), load(M, q + 2, c), load(M, q + 3, c)
            for j in range(count):
                x, u = load(Q, x0 + j, c), load(Q, u0 + j, c)
                s0, z0 = fma(splat(Q[x0 + j, k]), x, s0), fma(splat(Q[w0 + j, k]), u, z0)
                s1, z1 = fma(splat(Q[x0 + j, k + 1]), x, s1), fma(splat(Q[w0 + j, k + 1]), u, z1)
                s2, z2 = fma(splat(Q[x0 + j, k + 2]), x, s2), fma(splat(Q[w0 + j, k + 2]), u, z2)
                s3, z3 = fma(splat(Q[x0 + j, k + 3]), x, s3), fma(splat(Q[w0 + j, k + 3]), u, z3)
            _store4(M, r, c, s0, s1, s2, s3)
            _store4(M, q, c, z0, z1, z2, z3)
            k += 4
        c += 8


@compiled
def add_lower(M: Block, m0: int, d: int, Q: Block, a0: int, b0: int, count: int) -> None:
    """M[m0:] += Σ a bᵀ over `count` rows of Q, in and below the diagonal lanes, for many features.

    Blocks of 4 x 16 read Q half as often as `add_both`, which counts once it outgrows the cache.
    """
    wide = whole_lanes(d)
    c = 0
    while c < d:
        k = c
        while k < d:
            r = m0 + k
            s0, s1, s2, s3 = load(M, r, c), load(M, r + 1, c), load(M, r + 2, c), load(M, r + 3, c)
            e = min(c + 8, wide - 8)  # past the last lanes, the last ones again: not stored
            z0, z1, z2, z3 = load(M, r, e), load(M, r + 1, e), load(M, r + 2, e), load(M, r + 3, e)
            for j in range(count):
                x, z = load(Q, b0 + j, c), load(Q, b0 + j, e)
                p = splat(Q[a0 + j, k])
                s0, z0 = fma(p, x, s0), fma(p, z, z0)
                p = splat(Q[a0 + j, k + 1])
                s1, z1 = fma(p, x, s1), fma(p, z, z1)
                p = splat(Q[a0 + j, k + 2])
                s2, z2 = fma(p, x, s2), fma(p, z, z2)
                p = splat(Q[a0 + j, k + 3])
                s3, z3 = fma(p, x, s3), fma(p, z, z3)
            _store4(M, r, c, s0, s1, s2, s3)
            if e > c:
                _store4(M, r, e, z0, z1, z2, z3)
            k += 4
        c += 16
