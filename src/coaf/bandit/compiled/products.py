"""Compiled matrix products in register blocks: four rows by eight or sixteen lanes.

Operands are blocks from a given row on, padded to whole lanes and to multiples of four rows.
"""

from coaf.bandit.compiled.lanes import Block, Lanes, compiled, fma, load, splat, store


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
    while c + 16 <= lanes:
        k = 0
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
    if c < lanes:
        k = 0
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
def add_lower(M: Block, m0: int, d: int, Q: Block, a0: int, b0: int, count: int) -> None:
    """M[m0:][:d] += Q[a0:]ᵀ Q[b0:] over `count` rows, in and below the lanes of the diagonal."""
    c = 0
    while c < d:
        k = c
        while k < d:
            r = m0 + k
            s0, s1, s2, s3 = load(M, r, c), load(M, r + 1, c), load(M, r + 2, c), load(M, r + 3, c)
            for j in range(count):
                x = load(Q, b0 + j, c)
                s0 = fma(splat(Q[a0 + j, k]), x, s0)
                s1 = fma(splat(Q[a0 + j, k + 1]), x, s1)
                s2 = fma(splat(Q[a0 + j, k + 2]), x, s2)
                s3 = fma(splat(Q[a0 + j, k + 3]), x, s3)
            _store4(M, r, c, s0, s1, s2, s3)
            k += 4
        c += 8
