"""Numbers in words for people."""


def shown(value: float) -> str:
    """A count for people: whole where it is large.

    Examples
    --------
    >>> shown(54029.7), shown(7.256)
    ('54,030', '7.26')
    """
    return f"{value:,.0f}" if abs(value) >= 100.0 else f"{value:.3g}"
