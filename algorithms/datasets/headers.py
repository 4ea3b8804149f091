"""Which column holds what: names of columns that people use in rating files."""

import re
from collections.abc import Sequence

__all__ = ["REQUIRED", "ROLES", "known_columns"]

ROLES = ("user", "item", "rating", "timestamp")
REQUIRED = ROLES[:3]
KNOWN = {
    "user": "user userid uid username reviewer reviewerid customer customerid",
    "item": "item itemid iid movie movieid film filmid song songid track trackid artist artistid book bookid isbn "
    "product productid asin business businessid joke jokeid",
    "rating": "rating ratings stars score overall bookrating",
    "timestamp": "timestamp time ts unixtime unixreviewtime",
}
ROLE_OF = {name: role for role, names in KNOWN.items() for name in names.split()}


def known_columns(names: Sequence[object]) -> dict[str, int]:
    """Find the columns that hold user, item, rating and timestamp by their usual names.

    Case and punctuation do not matter: ``User-ID`` is ``userid``. A bare ``id`` is the item where no
    other column is.

    Parameters
    ----------
    names : sequence
        Names of all columns.

    Returns
    -------
    dict of str to int
        From role to position; without the roles that no column or several columns name.
    """
    plain = [re.sub(r"[^a-z0-9]", "", str(name).lower()) for name in names]
    roles = [ROLE_OF.get(name) for name in plain]
    if "item" not in roles:
        roles = ["item" if name == "id" else role for name, role in zip(plain, roles, strict=True)]
    return {role: roles.index(role) for role in ROLES if roles.count(role) == 1}
