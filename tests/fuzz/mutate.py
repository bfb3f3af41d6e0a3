"""Ways to damage bytes and text, all of them functions of a `random.Random`."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from random import Random
from typing import Any

import zstandard

ODD_BYTES = [
    0,
    1,
    9,
    10,
    11,
    12,
    13,
    26,
    27,
    28,
    31,
    32,
    34,
    35,
    44,
    58,
    0x7F,
    0x80,
    0x85,
    0xA0,
    0xC3,
    0xED,
    0xFE,
    0xFF,
]
ODD_INTEGERS = [
    0, 1, 2, 3, 127, 128, 255, 256, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**40, 2**53 + 1, 2**62,
    2**63 - 1, 2**63, 2**64 - 1,
]  # fmt: skip
ODD_NUMBERS = [
    "0", "-0", "00", "007", "7", "+7", "1.", ".5", "-.5", ".", "-", "+", "e5", "1e5", "1E5", "100000",
    "1e+3", "1e-45", "7e-46", "1e-320", "1e-400", "3.4028234e38", "3.4028236e38", "1e39", "1e308", "1e309",
    "-1e309", "nan", "NaN", "-nan", "+nan", "NULL", "null", "inf", "-inf", "Infinity", "1_0", "0x10", "1e",
    "1e+", "1..2", "1,5", "0.1000000000000000055511151231257827", "１２", "٣", "1e٣", "9007199254740993",
    "18446744073709551615", "18446744073709551614", "9223372036854775808", "-9223372036854775809",
    "12345678901234567890123", "1d5", "1f", "nan(1)", "infinityx", "TRUE", "true", "1e-5e5", "16777217",
    "8388608.5", "1.00000017881393432617187501", "123456789012345678901234567890.5",
]  # fmt: skip
ODD_WORDS = [
    "", " ", "a", "A", "é", "e\u0301", "\x00", "a\x00b", "\x1b[31m", "\u202e", "\u2028", "\u00a0", "\x85",
    "\x1c", "\x1f", "\ufeff", "#", "##", "qid:", "qid:1", "qid:qid:1", "1:1", "1:", ":1", ":", "0:1",
    "99999:1", "100000:1", "100001:1", "18446744073709551617:1", "-1:1", "1:1:1", "docid", "#docid = x",
    "# docid=", "Q0", "12:30", "12:30:00", "2001-01-01", '"', '""', "'", "=1+1", "\\N", "None", "NA", "<NA>",
    "\U0001f600", "x" * 300, "1" * 400,
]  # fmt: skip


def damaged_bytes(random: Random, content: bytes, other: bytes = b"") -> bytes:
    """One to a few blind changes of bytes."""
    out = bytearray(content)
    for _ in range(random.choice((1, 1, 1, 2, 3, 8))):
        random.choice(_BLIND)(random, out, other)
    return bytes(out)


def _flip(random: Random, out: bytearray, other: bytes) -> None:
    if out:
        out[random.randrange(len(out))] ^= 1 << random.randrange(8)


def _set(random: Random, out: bytearray, other: bytes) -> None:
    if out:
        out[random.randrange(len(out))] = random.choice(ODD_BYTES)


def _number(random: Random, out: bytearray, other: bytes) -> None:
    width = random.choice((2, 4, 8))
    if len(out) > width:
        at = random.randrange(len(out) - width)
        out[at : at + width] = (random.choice(ODD_INTEGERS) % 2 ** (8 * width)).to_bytes(width, "little")


def _cut(random: Random, out: bytearray, other: bytes) -> None:
    del out[random.randrange(len(out) + 1) :]


def _remove(random: Random, out: bytearray, other: bytes) -> None:
    at = random.randrange(len(out) + 1)
    del out[at : at + random.choice((1, 2, 8, 64, 1000))]


def _double(random: Random, out: bytearray, other: bytes) -> None:
    at = random.randrange(len(out) + 1)
    out[at:at] = out[at : at + random.choice((1, 8, 64, 1000))]


def _insert(random: Random, out: bytearray, other: bytes) -> None:
    at = random.randrange(len(out) + 1)
    out[at:at] = random.randbytes(random.choice((1, 2, 8, 64)))


def _grow(random: Random, out: bytearray, other: bytes) -> None:
    out += random.choice((b"\0", b"\n", b" ", b"\xff")) * random.choice((1, 63, 64, 4096))


def _splice(random: Random, out: bytearray, other: bytes) -> None:
    if other:
        out[random.randrange(len(out) + 1) :] = other[random.randrange(len(other)) :]


_BLIND: list[Callable[[Random, bytearray, bytes], None]] = [
    _flip, _flip, _set, _set, _number, _cut, _remove, _double, _insert, _grow, _splice,
]  # fmt: skip


def damaged_lines(random: Random, text: str, separators: str = " \t") -> str:
    """One to a few changes that know lines and words."""
    lines = text.split("\n")
    for _ in range(random.choice((1, 1, 2, 4))):
        at = random.randrange(len(lines))
        what = random.randrange(8)
        if what == 0:
            lines.insert(at, random.choice(lines))
        elif what == 1 and len(lines) > 1:
            del lines[at]
        elif what == 2:
            lines.insert(at, random.choice(["", " ", "#", "# x", "\t", "\x0c", "\ufeff", "\x1a"]))
        else:
            lines[at] = _changed_words(random, lines[at], random.choice(separators))
    return "\n".join(lines)


def _changed_words(random: Random, line: str, separator: str) -> str:
    words = line.split(separator)
    at = random.randrange(len(words))
    new = random.choice(ODD_NUMBERS if random.random() < 0.6 else ODD_WORDS)
    what = random.randrange(6)
    if what == 0:
        words.insert(at, new)
    elif what == 1:
        del words[at]
    elif what == 2:
        words[at] += random.choice([new, "\x00", "\r", "\x0b"])
    elif what == 3 and ":" in words[at]:
        left, right = words[at].split(":", 1)
        words[at] = random.choice([f"{left}:{new}", f"{new}:{right}"])
    elif what == 4:
        words[at] = random.choice(words)
    else:
        words[at] = new
    return random.choice([separator, separator, separator, separator * 2, " ", "\t"]).join(words)


def encoded(random: Random, text: str) -> bytes:
    """Text as bytes: mostly UTF-8 with plain line ends, at times not."""
    ends = random.choices(["\n", "\r\n", "\r", "\n\r", "\n\n"], [20, 3, 1, 1, 1])[0]
    codec = random.choices(["utf-8", "utf-8-sig", "utf-16", "latin-1", "cp1252"], [40, 3, 1, 1, 1])[0]
    content = text.replace("\n", ends).encode(codec, "replace" if codec != "utf-8" else "surrogatepass")
    if random.random() < 0.1:
        content = content.rstrip(b"\n")
    return content


def compressed(random: Random, content: bytes) -> tuple[bytes, str]:
    """Content in some form of compression and the suffix of it; at times damaged, twice, or in pieces."""
    form = random.choice(list(_FORMS))
    packed = _FORMS[form](content)
    if random.random() < 0.15:
        half = len(content) // 2
        packed = _FORMS[form](content[:half]) + _FORMS[form](content[half:])
    if random.random() < 0.1:
        packed += bytes(random.choice((1, 4, 8, 9000)))
    if random.random() < 0.2:
        packed = damaged_bytes(random, packed)
    return packed, form


_FORMS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": lambda content: gzip.compress(content, 1, mtime=0),
    ".xz": lambda content: lzma.compress(content, preset=0),
    ".bz2": lambda content: bz2.compress(content, 1),
    ".zst": lambda content: zstandard.ZstdCompressor(level=1).compress(content),
}


def plain(content: bytes) -> bytes:
    """What is inside compressed content, a stream at a time by the libraries' decompressors; ValueError when
    damaged, also behind a stream.
    """
    try:
        if content.startswith(b"\x1f\x8b"):
            return gzip.decompress(content)
        if content.startswith(b"\xfd7zXZ\x00"):
            return _all_streams(content, lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ), padding=4)
        if content.startswith(b"BZh"):
            return _all_streams(content, bz2.BZ2Decompressor)
        if content[:4] == b"\x28\xb5\x2f\xfd" or (content[1:4] == b"\x2a\x4d\x18" and content[0] >> 4 == 5):
            return _all_streams(content, lambda: zstandard.ZstdDecompressor().decompressobj())
    except Exception as error:  # each library has its own
        raise ValueError(f"damaged: {error}") from None
    return content


def _all_streams(content: bytes, new: Callable[[], Any], padding: int = 0) -> bytes:
    out = b""
    while content:
        stream = new()
        out += stream.decompress(content)
        if not stream.eof:
            raise ValueError("cut off")
        content = stream.unused_data
        zeros = (len(content) - len(content.lstrip(b"\0"))) if padding else 0
        if zeros and zeros % padding:
            raise ValueError("odd padding")
        content = content[zeros:]
    return out
