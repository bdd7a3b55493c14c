"""Regular expressions for encoded characters: the parts before and behind the digits."""

from __future__ import annotations

from typing import Final

# Backslashes, encoded or not, and other text before a character's hex digits. All backslashes
# belong to the former: if both parts matched some, a text of many of them would have too many ways
# to match.
BACKSLASH: Final = r"\\(?:(?:x|u00)(?:25){0,3}5[cC])?|%(?:25){0,3}5[cC]"
SLASHES: Final = rf"(?:{BACKSLASH}){{0,8}}"
LEAD: Final = r"(?:%|(?<=[\\cC])(?:x|u0{0,2}))(?:25){0,3}"
SEMICOLON: Final = f"(?:;|{SLASHES}{LEAD}3[bB])"
AMPERSAND: Final = f"(?:&|{LEAD}26)(?:amp{SEMICOLON}){{0,3}}"
HASH: Final = f"(?:#|{SLASHES}{LEAD}23)0*"
BLANK: Final = (
    rf"(?:\xc2\xa0|\s|\+|{SLASHES}(?:(?<=\\)[nrtvf]"
    rf"|{LEAD}(?:20|09|0[aAbBcCdD]|2[bB]|(?:[cC]2{SLASHES}{LEAD})?[aA]0|810{SLASHES}{LEAD}842)"
    rf"|{AMPERSAND}(?:{HASH}(?:32|43|160|9|1[0-3]|[xX]0*(?:2[0bB]|[aA]0|9|[a-dA-D]))"
    rf"|nbsp|Tab|NewLine|plus){SEMICOLON}))"
)
SLASH: Final = (
    rf"(?:[\\/]|(?:%|(?<=[\\cC])(?:x|u00))(?:25){{0,3}}(?:5[cC]|2[fF])"
    rf"|{AMPERSAND}(?:{HASH}(?:92|47|[xX]0*(?:5[cC]|2[fF]))|bsol|sol){SEMICOLON})"
)
