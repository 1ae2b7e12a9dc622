"""What make_token_golden.py feeds to the reference tokenizers: strings to encode, and text to learn from."""

from inputs import TOKEN_STRINGS

SEED = "Wait, it's 12345.67 km (or 7,000,000 m)...\n\n\tdef f(x):\n        return x_1 + 'ab' # NOTE: can't\r\n"
# Letters with marks that NFC leaves alone.
MARKED = "x\u0304x\u0304 \u0928\u092e\u0938\u094d\u0924\u0947 -x\u0304 \u0651\u064e "

MORE_STRINGS = [
    MARKED,
    "\u05d1\u05b0\u05bc\u05e8\u05b5\u05d0\u05e9\u05b4\u05c1\u05d9\u05ea \u05d1\u05b8\u05bc\u05e8\u05b8\u05d0",
    "\u0642\u0627\u0644 123 \u0648 \u0664\u0665\u0666\u060c \u062b\u0645\u2026 (abc) \u0635\u0644\u0649",
    "\u200fRTL mark\u200f and \u200eLTR mark\u200e",
    "\u0627\u200d\u0628\u200c\u062a joined and not",
    "\U0001f9d1\u200d\U0001f680\U0001f9d1\U0001f3fd\u200d\U0001f393 123\U0001f4af!!",
    "\U0001f3f4\u200d\u2620\ufe0f\u200d\U0001f3f4 \u200d \u200d\u200d",
    "\u1e69 \u1e69\u0323 s\u0323\u0307 s\u0307\u0323 \ud55c\uae00",
    "\u1112\u1161\u11ab\u1100\u1173\u11af\u1112\u1161",
    "\u0958 \u0915\u093c \u0b94 \u0b92\u0bd7",
    "\ufb1d \u05d9\u05b4 \u2126 \u03a9 \u212a K \u00c5",
    "D\u0307\u0323 d\u0323\u0307, e\u0301\u0300\u0302x",
    " " * 33 + "x" + " " * 65 + "\n",
    "\t" * 20 + "x\n" + "\t" * 7,
    "\n" * 40,
    "x\n\n\n\n\ny\n\n\nz\n\nw",
    "\r\n" * 9 + "a\r\n\r\nb\r\r\nc",
    "a \r\n b\t\r\n\tc \n\r d",
    "   \n   \r\n   \t  end   ",
    "\u3000\u3000\u6587\u3000\u3002\u3000 \u00a0\u00a0x",
    "  'S 'T'RE'VE'M'LL'D it'S IT'LL we'Re \u017f's '\u017f",
    "I'm 5'11\", you're 6'2\"; '90s '20s",
    "1 12 123 1234 12345 123456 1234567 12345678",
    "x12y345z6789 1a22b333c4444",
    "\u0661\u0662\u0663\u0664 \u0967\u0968\u0969\u096a \u2460\u2461\u2462\u2463 \u2167\u2168",
    "3.1415,9265;3589-7932/3846",
    "HTTPServer parseXMLDocument iPhone15Pro eBay \u00c9COLE\u00e9cole \u00d1and\u00fa\u00d1",
    "\u01c5\u01c8 \u02b0x\u02b0 \u5b57A\u5b57a \u00e9\u00c9\u00e9 \u0130i\u0131I",
    "fooBar/bazQux//path/to//File.txt",
    "!!!???...///\n\n///---\n===\r\n",
    "#include<a>\n#define X(y) ((y)->z[0])\n",
    "$100 +5 =7 <8> ^9 ~10 |11 `12`",
    "a.b,c;d:e!f?g(h)i[j]k{l}m\"n\"o'p'q",
    "\u201cq\u201d\u2018r\u2019\u00abs\u00bb\u2014t\u2026u\uff01v\uff0cw\u3002x\u3001y\u060cz",
    "\u4e2d\u6587English\u65e5\u672c\u8a9e\u30ab\u30bf\u3072\u3089\ud55c\uad6d\uc5b4mixed123\u4e2d",
    "\u4f60\u597d \u4e16\u754c\u3002 \u4eca\u5929 2026\u5e7411\u670829\u65e5\uff0c\u661f\u671f\u65e5\uff01",
    "\u30e9\u30fc\u30e1\u30f3\u3068\u9903\u5b50\u3092\u98df\u3079\u305f\u3002\u300c\u306f\u3044\u300d",
    "_ __ ___ ____ _a_ __b__ c_",
    "a_b_c d-e-f g.h.i j/k/l m\\n\\o",
    "\u2581 \u2581\u2581x \u2581y",
    "<tool>\n\n<tool>  x   y    z</tool>",
    "the<tool>the <tool> the",
    " <tool>",
    "\u0301a \u0301 \u0e33\u0e33 \u0e01\u0e33",
    "\u00ad\u200b\u2060 x\u200by\u2060z",
]
STRINGS = list(dict.fromkeys([*TOKEN_STRINGS, *MORE_STRINGS]))
