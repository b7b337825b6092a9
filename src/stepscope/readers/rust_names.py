"""Names of Rust's symbols: ``_RNvCs8K9WJNlS7Dz_5trace17multiply_matrices`` is ``trace::multiply_matrices``.

Hashes of crates are left out, as `rustc-demangle` does in its short form. A symbol is hostile: depth and length are
bounded, and what does not follow the grammar is left unchanged.

Source: RFC 2603 (symbol mangling v0); for the older scheme, compiler/rustc_symbol_mangling/src/legacy.rs.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_DEPTH = 100
MAX_TEXT = 4096
"""Characters above which a name is left unchanged."""
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_BASIC = dict(zip("abcdefhijlmnopstuvxyz", (
    *("i8", "bool", "char", "f64", "str", "f32", "u8", "isize", "usize", "i32", "u32", "i128", "u128", "_"),
    *("i16", "u16", "()", "...", "i64", "u64", "!"),
), strict=True))  # fmt: skip
_LEGACY = re.compile(r"(?P<path>.+)::h[0-9a-f]{16}")
_ESCAPES = {"SP": "@", "BP": "*", "RF": "&", "LT": "<", "GT": ">", "LP": "(", "RP": ")", "C": ","}
_ESCAPE = re.compile(r"\$(?:(?P<word>SP|BP|RF|LT|GT|LP|RP|C)|u(?P<code>[0-9a-f]{1,6}))\$")


def demangle(symbol: str) -> str:
    """The name of a symbol of mangling v0; anything else is unchanged."""
    if not symbol.startswith("_R") or len(symbol) > MAX_TEXT or not symbol.isascii():
        return symbol
    body, dot, suffix = symbol[2:].partition(".")
    try:
        name = _Symbol(body).name()
    except (ValueError, IndexError):
        return symbol
    return f"{name} ({dot}{suffix})" if dot and not suffix.startswith("llvm.") else name


def without_hash(name: str) -> str:
    """A name of the older scheme, demangled as C++, without its hash and escapes; anything else is unchanged."""
    found = _LEGACY.fullmatch(name)
    if found is None:
        return name
    parts = [part[1:] if part.startswith("_$") else part for part in found["path"].split("::")]
    return _ESCAPE.sub(_unescaped, "::".join(parts)).replace("..", "::")


def _unescaped(found: re.Match[str]) -> str:
    if found["word"]:
        return _ESCAPES[found["word"]]
    code = int(found["code"], 16)
    return chr(code) if code <= sys.maxunicode and chr(code).isprintable() else found[0]


class _Symbol:
    """A symbol and the place up to which it is read. Methods read one part of the grammar and return its text."""

    def __init__(self, body: str) -> None:
        self._body = body
        self._at = 0
        self._depth = 0
        self._length = 0

    def name(self) -> str:
        """The whole symbol.

        Raises:
            ValueError: it does not follow the grammar.
            IndexError: it ends too early.
        """
        if self._body[:1].isdigit():
            raise ValueError("another version")
        name = self._path(in_value=True)
        if self._at < len(self._body):
            self._path(in_value=False)  # the crate that instantiates it
        if self._at != len(self._body):
            raise ValueError("more text")
        return name

    def _next(self) -> str:
        letter = self._body[self._at]
        self._at += 1
        return letter

    def _eat(self, letter: str) -> bool:
        hit = self._body[self._at : self._at + 1] == letter
        self._at += hit
        return hit

    def _number(self) -> int:
        """A number in base 62 that ends in ``_``; ``_`` alone is 0."""
        if self._eat("_"):
            return 0
        value = 0
        while (letter := self._next()) != "_":
            value = value * 62 + _DIGITS.index(letter)
        return value + 1

    def _disambiguator(self) -> int:
        return self._number() + 1 if self._eat("s") else 0

    def _identifier(self) -> tuple[str, int]:
        """An identifier and its number among those of the same name."""
        which = self._disambiguator()
        return self._plain_identifier(), which

    def _plain_identifier(self) -> str:
        is_punycode = self._eat("u")
        digits = self._next()
        if not digits.isdigit():
            raise ValueError("no length")
        while digits != "0" and self._body[self._at : self._at + 1].isdigit():
            digits += self._next()
        self._eat("_")
        text = self._body[self._at : self._at + int(digits)]
        if len(text) != int(digits):
            raise ValueError("too short")
        self._at += len(text)
        if is_punycode:
            before, _, after = text.rpartition("_")
            return (f"{before}-{after}" if before else after).encode().decode("punycode")
        return text

    def _within(self, read: Callable[[], str]) -> str:
        """Read a part one level deeper."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ValueError("too deep")
        text = read()
        self._depth -= 1
        self._length += len(text)
        if self._length > MAX_DEPTH * MAX_TEXT or len(text) > MAX_TEXT:
            raise ValueError("too long")
        return text

    def _again(self, read: Callable[[], str]) -> str:
        """What a back reference names."""
        target, here = self._number(), self._at
        if target >= here - 1:
            raise ValueError("it does not point back")
        self._at = target
        text = self._within(read)
        self._at = here
        return text

    def _path(self, *, in_value: bool) -> str:
        return self._within(lambda: self._path_here(in_value=in_value))

    def _path_here(self, *, in_value: bool) -> str:
        tag = self._next()
        if tag == "C":
            return self._identifier()[0]
        if tag == "N":
            return self._nested(in_value=in_value)
        if tag in "MX":
            self._disambiguator()
            self._path(in_value=False)
            return self._implementation(with_trait=tag == "X")
        if tag == "Y":
            return self._implementation(with_trait=True)
        if tag == "I":
            path = self._path(in_value=in_value)
            return f"{path}{'::' if in_value else ''}<{', '.join(self._until_end(self._generic))}>"
        if tag == "B":
            return self._again(lambda: self._path_here(in_value=in_value))
        raise ValueError("no path")

    def _implementation(self, *, with_trait: bool) -> str:
        kind = self._type()
        return f"<{kind} as {self._path(in_value=False)}>" if with_trait else f"<{kind}>"

    def _nested(self, *, in_value: bool) -> str:
        space = self._next()
        if not space.isalpha():
            raise ValueError("no namespace")
        path = self._path(in_value=in_value)
        name, which = self._identifier()
        if space.islower():
            return f"{path}::{name}" if name else path
        what = {"C": "closure", "S": "shim"}.get(space, space)
        return f"{path}::{{{what}{f':{name}' if name else ''}#{which}}}"

    def _until_end(self, read: Callable[[], str]) -> list[str]:
        found = []
        while not self._eat("E"):
            found.append(read())
        return found

    def _generic(self) -> str:
        if self._eat("L"):
            return self._lifetime()
        return self._constant() if self._eat("K") else self._type()

    def _lifetime(self) -> str:
        number = self._number()
        return f"'{number}" if number else "'_"

    def _binder(self) -> None:
        if self._eat("G"):
            self._number()

    def _type(self) -> str:
        return self._within(self._type_here)

    def _type_here(self) -> str:
        tag = self._next()
        if tag in _BASIC:
            return _BASIC[tag]
        if tag in "AS":
            return self._array(sized=tag == "A")
        if tag in "RQPO":
            return self._pointer(tag)
        if tag == "B":
            return self._again(self._type_here)
        read = {"T": self._tuple, "F": self._signature, "D": self._dyn}.get(tag)
        if read is None:
            self._at -= 1
            return self._path(in_value=False)
        return read()

    def _array(self, *, sized: bool) -> str:
        kind = self._type()
        return f"[{kind}; {self._constant()}]" if sized else f"[{kind}]"

    def _tuple(self) -> str:
        kinds = self._until_end(self._type)
        return f"({', '.join(kinds)}{',' if len(kinds) == 1 else ''})"

    def _pointer(self, tag: str) -> str:
        if tag in "PO":
            return f"*{'const' if tag == 'P' else 'mut'} {self._type()}"
        lifetime = self._lifetime() if self._eat("L") else ""
        said = f"{lifetime} " if lifetime not in ("", "'_") else ""
        return f"&{said}{'mut ' if tag == 'Q' else ''}{self._type()}"

    def _signature(self) -> str:
        self._binder()
        unsafe = "unsafe " if self._eat("U") else ""
        abi = ""
        if self._eat("K"):
            abi = f'extern "{"C" if self._eat("C") else self._plain_identifier().replace("_", "-")}" '
        inputs = ", ".join(self._until_end(self._type))
        output = self._type()
        return f"{unsafe}{abi}fn({inputs}){'' if output == '()' else f' -> {output}'}"

    def _dyn(self) -> str:
        self._binder()
        traits = self._until_end(self._dyn_trait)
        if not self._eat("L"):
            raise ValueError("no lifetime")
        self._lifetime()
        return f"dyn {' + '.join(traits)}"

    def _dyn_trait(self) -> str:
        path = self._path(in_value=False)
        bounds = []
        while self._eat("p"):
            bounds.append(f"{self._plain_identifier()} = {self._type()}")
        return f"{path}<{', '.join(bounds)}>" if bounds else path

    def _constant(self) -> str:
        return self._within(self._constant_here)

    def _constant_here(self) -> str:
        if self._eat("p"):
            return "_"
        if self._eat("B"):
            return self._again(self._constant_here)
        kind = _BASIC.get(self._next(), "")
        sign = "-" if self._eat("n") else ""
        end = self._body.index("_", self._at)
        value = int(self._body[self._at : end] or "0", 16)
        self._at = end + 1
        if kind == "bool":
            return "true" if value else "false"
        if kind[:1] not in ("i", "u"):
            raise ValueError("no such constant")
        return f"{sign}{value}"
