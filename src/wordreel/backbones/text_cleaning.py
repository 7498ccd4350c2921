"""What CLIP-like models do to text before they tokenize it: repair, unescape, lower case, punctuation.

OpenAI's and open_clip's code repair text with ftfy. `fix_text` does the same without guessing the encoding
of mojibake ("Ã©" stays as it is).
"""

from __future__ import annotations

import html
import re
import string
import unicodedata

from wordreel.backbones.config import TokenizerConfig

ENTITY = re.compile(r"&#?[0-9A-Za-z]{1,24};")
TERMINAL_ESCAPE = re.compile("\x1b\\[[0-9;]*[a-zA-Z]")
LINE_BREAKS = re.compile("\r\n|[\r\u2028\u2029\x85]")
PUNCTUATION = str.maketrans("", "", string.punctuation)

# Letters in one: typographic ligatures, and digraphs of Dutch, Afrikaans and Croatian.
_LIGATURES = "ĳĲŉǱǲǳǄǅǆǇǈǉǊǋǌ\ufb00\ufb01\ufb02\ufb03\ufb04\ufb06"
_CONTROL = (
    *range(0x09),
    0x0B,
    *range(0x0E, 0x20),
    0x7F,
    *range(0x206A, 0x2070),
    0xFEFF,
    *range(0xFFF9, 0xFFFD),
)


def _characters() -> dict[int, str]:
    table = {ord(letter): unicodedata.normalize("NFKC", letter) for letter in _LIGATURES} | {0xFB05: "ſt"}
    table |= {code: unicodedata.normalize("NFKC", chr(code)) for code in range(0xFF01, 0xFFF0)}  # full width
    return table | {0x3000: " "}


# Control characters that Windows uses for others; five of the codes are free.
CP1252 = {
    code: bytes([code]).decode("cp1252")
    for code in range(0x80, 0xA0)
    if code not in (0x81, 0x8D, 0x8F, 0x90, 0x9D)
}
QUOTES = dict.fromkeys((0x02BC, *range(0x2018, 0x201C)), "'") | dict.fromkeys(range(0x201C, 0x2020), '"')
CHARACTERS = _characters()
CONTROL = dict.fromkeys(_CONTROL)


def clean(text: str, config: TokenizerConfig) -> str:
    """The text as the tokenizer's model reads it.

    >>> clean("A&amp;B  isn’t HERE", TokenizerConfig())
    "a&b isn't here"
    >>> clean("A dog, running.", TokenizerConfig(kind="siglip"))
    'a dog running'
    """
    if config.cleaning == "huggingface":
        # The rest happens in the tokenizer's own normalizers.
        return " ".join(text.lower().translate(PUNCTUATION).split()) if config.kind == "siglip" else text
    text = html.unescape(html.unescape(fix_text(text)))
    if config.kind != "clip":
        text = text.replace("_", " ").translate(PUNCTUATION)
    return " ".join(text.lower().split()) if config.kind != "clip" else " ".join(text.split()).lower()


def fix_text(text: str) -> str:
    r"""Plain quotes, whole letters, no control characters, composed accents (NFC).

    >>> fix_text("\uff26\uff55\uff4c\uff4c “ﬁne”\r\n&lt;b&gt;")
    'Full "fine"\n<b>'
    """
    if text.isascii() and text.isprintable() and "&" not in text:
        return text
    unescape, lines = True, []
    for line in re.findall("[^\n]*\n|[^\n]+", text):
        unescape = unescape and "<" not in line  # text with a tag in it is markup, not escaped text
        lines.append(_fix_line(line, unescape))
    return "".join(lines)


def _fix_line(line: str, unescape: bool) -> str:
    while True:
        before = line
        if unescape:
            line = ENTITY.sub(lambda match: html.unescape(match[0]), line)
        line = line.translate(CP1252)
        line = line.translate(CHARACTERS).translate(QUOTES)
        line = LINE_BREAKS.sub("\n", line)
        line = TERMINAL_ESCAPE.sub("", line).translate(CONTROL)
        line = unicodedata.normalize("NFC", line)
        if line == before:
            return line
