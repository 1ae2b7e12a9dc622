"""What make_golden.py feeds to the reference model and tokenizers: prompts, a text to score, and strings to encode."""

Message = dict[str, str]
Prompt = str | list[Message]  # raw text, or the messages of a chat

LOGIT_PROMPTS: dict[str, Prompt] = {
    "raw_short": "The capital of France is",
    "raw_numbers": "1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144,",
    "raw_python": '''def is_prime(n: int) -> bool:
    """Return True if n is a prime number."""
    if n < 2:
        return False
    for divisor in range(2, int(n ** 0.5) + 1):
        if n %''',
    "raw_french": "Le petit village dormait encore sous la neige lorsque le boulanger alluma son four. Comme toujours,",
    "raw_json": '{"users": [{"id": 1, "name": "Ada"}, {"id": 2, "name": "Grace"}, {"id": 3, "name": "Alan"}], "total":',
    "raw_long": (
        "The lighthouse stood on a spit of black rock that the tide covered twice a day. Its keeper, a retired "
        "clockmaker, had moved in with forty-one clocks and no almanac, for she trusted the sea to tell her the hour. "
        "In the first winter the lamp failed three times. She took the mechanism apart on the kitchen table, cleaned "
        "every tooth of every wheel with vinegar and a goose feather, and found that the fault lay not in the gears "
        "but in the oil, which thickened whenever the wind came from the north. From then on she warmed the oil on the "
        "stove before she climbed the stairs, and wrote the temperature in a ledger beside the names of the ships. "
        "Years later, when an inspector asked her how the lamp had come to be the most reliable on the whole coast, "
        "she showed him the ledger and said that"
    ),
    "chat_short": [{"role": "user", "content": "What is gravity?"}],
    "chat_german": [{"role": "user", "content": "Wie viele Tage hat eine Woche, und wie heißen sie auf Deutsch?"}],
    "chat_turns": [
        {"role": "system", "content": "You are a patient teacher. Answer in one short sentence."},
        {"role": "user", "content": "Why do leaves change colour in autumn?"},
        {"role": "assistant", "content": "The green pigment breaks down, and the yellow and red ones become visible."},
        {"role": "user", "content": "And why do they fall?"},
    ],
    "chat_code": [
        {
            "role": "user",
            "content": (
                "Find the mistake in this C++ function and write a corrected version:\n\n```cpp\n"
                "#include <vector>\n\ndouble mean(const std::vector<double>& values) {\n    int total = 0;\n"
                "    for (double value : values) {\n        total += value;\n    }\n"
                "    return total / values.size();\n}\n```\n\nKeep the name of the function, and explain each change."
            ),
        }
    ],
}

GREEDY_PROMPTS: dict[str, Prompt] = {
    "gravity": [{"role": "user", "content": "What is gravity?"}],
    "fox": [{"role": "user", "content": "Write a short story about a fox who learns to read."}],
    "reverse": [{"role": "user", "content": "Write a Python function that reverses a linked list."}],
    "apples": [
        {"role": "user", "content": "A crate holds 12 apples. How many apples are in 7 crates? Explain step by step."}
    ],
    "capital": [
        {"role": "system", "content": "Answer with one short sentence."},
        {"role": "user", "content": "What is the capital of Italy?"},
    ],
}

PERPLEXITY_TEXT = """The workshop at the end of the lane

Nobody in the village could say when the workshop had opened. The sign above the door showed a kettle and a pair of \
scissors, and the woman behind the counter repaired both, along with anything else that had a hinge, a spring or a \
reason to be kept. She charged by the hour but measured the hours with a sand glass, and more than one customer swore \
that the sand ran slower when the work was interesting.

On the first Monday of March a boy brought her a radio that had belonged to his grandfather. It hummed, but it did not \
speak. She took off the back plate, blew out the dust, and asked him what he expected to hear. "The weather," he said, \
"and maybe football." She nodded as if that settled the matter, and for the rest of the morning they traced the \
circuit together with a pencil: from the aerial to the coil, from the coil to the valve, from the valve to the \
loudspeaker. The fault was a wire no longer than a fingernail. When they had soldered it, the room filled with a voice \
that promised rain before evening, and both of them laughed, because it was already raining.

There are two ways to mend a thing. The first is to replace whatever looks old; it is quick, and it teaches nothing. \
The second is to find out what each part is for, and to change only the one that has stopped doing it. The second way \
takes longer on the first day and less time on every day after that. Programs are no different. Consider a small \
function that is meant to return the longest run of equal values in a list:

```python
def longest_run(values):
    best = 0
    current = 0
    previous = None
    for value in values:
        current = current + 1 if value == previous else 1
        previous = value
        best = max(best, current)
    return best


assert longest_run([]) == 0
assert longest_run([1, 1, 2, 2, 2, 3]) == 3
```

It works for most lists, but a list that begins with `None` deserves a second look: the first value is compared with \
the initial `previous`, and the result happens to be right only because `current` starts at zero. A repair that \
replaces the whole loop would hide this; a repair that asks what `previous` is for makes it plain.
"""

ENGLISH = [
    "Hello, world!",
    "The quick brown fox jumps over the lazy dog.",
    " leading space",
    "trailing space ",
    "  two leading spaces",
    "UPPER CASE TEXT AND lower case text",
    "CamelCaseIdentifier and snake_case_identifier",
    "Wait... what?! No way -- really?",
    "\u201cCurly quotes\u201d and \u2018single ones\u2019 \u2014 with a dash\u2026",
    "A semi-colon; a colon: a comma, and (some) [brackets] {here} <there>.",
    "supercalifragilisticexpialidocious",
    "pneumonoultramicroscopicsilicovolcanoconiosis",
    "Donaudampfschifffahrtselektrizit\u00e4tenhauptbetriebswerkbauunterbeamtengesellschaft",
    "antidisestablishmentarianism floccinaucinihilipilification",
    "a",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "abababababababababababababababababab",
    "THEtheTHEtheTHE",
    "!!!!!!!!!!!!!!!!!!!!",
    "................................",
    "-----\n=====\n*****\n_____",
    "the the the the the the the the",
    "xqzvbkjw",
    "Mr. O'Neill-Smith, Ph.D., owes $1,234.56 (approx. 12.3%) to A&B Co.",
]

CONTRACTIONS = [
    "I'm you're he's we'll they've I'd don't",
    "I'M YOU'RE HE'S WE'LL THEY'VE I'D DON'T",
    "'s't're've'm'll'd",
    "rock 'n' roll, 'tis the season, o'clock",
    "it\u2019s a typographic apostrophe, isn\u2019t it",
    "y'all'd've",
    "dogs' tails and dog's tail",
    "'sample 'test 'really 'very 'many 'llama 'dog",
    " 's 't",
    "l'homme qu'il d'abord aujourd'hui",
    "''''''",
]

WHITESPACE = [
    "",
    " ",
    "  ",
    "   ",
    "    ",
    "                ",
    "\n",
    "\n\n",
    "\n\n\n\n\n",
    "\t",
    "\t\t\t",
    "\r",
    "\r\n",
    "\r\n\r\n",
    " \n",
    "\n ",
    " \n \n ",
    " \t \t ",
    "a b  c   d    e     f",
    "a\tb\t\tc",
    "line one\nline two\n\nline four\n",
    "line one\r\nline two\r\n\r\nline four\r\n",
    "mixed\rline\nends\r\nhere",
    "    indented by four",
    "\tindented by a tab",
    "trailing blanks   \nand more \t\n",
    "word      word",
    "word      \n      word",
    "\u00a0",
    "no\u00a0break\u00a0space",
    "em\u2003space, thin\u2009space, ideographic\u3000space",
    "\u2028line separator\u2029paragraph separator",
    "vertical\x0btab and form\x0cfeed",
    "ogham\u1680space",
    "\u3000\u3000\u3000",
    "a \u00a0 b",
    "next\x85line",
]

NUMBERS = [
    "0",
    "7",
    "42",
    "1234567890",
    "3.14159265358979323846",
    "-273.15 \u00b0C",
    "1,000,000.00",
    "1e-10 6.022E+23",
    "0xDEADBEEF 0b1010 0o755",
    "2026-11-29T18:04:05.123Z",
    "+1 (555) 010-9999",
    "192.168.0.1:8080",
    "v1.2.3-rc.4+build.567",
    "10km 5kg 3rd 21st 100%",
    "x1y2z3 a1b2 4ever",
    "   123   456",
    "\u00bd \u00be \u2153 \u00b2 \u00b3 \u2460 \u2169",
    "\u0661\u0662\u0663\u0664\u0665 \u0967\u0968\u0969 \uff11\uff12\uff13",
    "\u4e00\u4e8c\u4e09\u56db\u4e94",
    "2+2=4; 7*6=42; 9/3=3",
    "00000000000000000000",
]

CODE = [
    "def add(a: int, b: int) -> int:\n    return a + b\n",
    "class Node:\n\tdef __init__(self, value=None):\n\t\tself.value, self.next = value, None\n",
    "print(f'{x!r:>{width}} {y:.3f}')",
    "[x ** 2 for x in range(10) if x % 2 == 0]",
    "lambda *args, **kwargs: {**kwargs, 'args': args}",
    '#include <iostream>\nint main() {\n    std::cout << "hi\\n";\n    return 0;\n}\n',
    "template <typename T, std::size_t N> constexpr auto size(const T (&)[N]) noexcept { return N; }",
    "fn main() -> Result<(), Box<dyn Error>> {\n    let v: Vec<u8> = (0..10).collect();\n    Ok(())\n}",
    "const f = async (x) => { await fetch(`/api/${x}`); return x ?? null; };",
    'public static void main(String[] args) { System.out.println("Hello"); }',
    'package main\n\nimport "fmt"\n\nfunc main() {\n\tfmt.Println("hi")\n}\n',
    "SELECT u.name, COUNT(*) FROM users AS u WHERE u.age >= 18 GROUP BY u.name HAVING COUNT(*) > 1;",
    "for f in *.txt; do echo \"${f%.txt}\" | tr 'a-z' 'A-Z' >> out.log 2>&1; done",
    "<!DOCTYPE html>\n<html lang=\"en\"><head><title>T</title></head><body class='a b'>&nbsp;&amp;</body></html>",
    'a:hover > .b#c::after { content: "\\201C"; margin: -1px auto !important; }',
    "main :: IO ()\nmain = mapM_ print $ filter even [1..10]",
    "(defun fact (n) (if (<= n 1) 1 (* n (fact (- n 1)))))",
    "%.o: %.c\n\t$(CC) $(CFLAGS) -c $< -o $@",
    "if (a && !b || c ^ ~d) { i++; --j; k <<= 2; l >>>= 3; }",
    "mov eax, [ebp+8]\nadd eax, 0x10\nret",
    '{"key": "value", "list": [1, 2.5, -3e4, true, false, null], "nested": {"a": {}}}',
    '{\n  "name": "x",\n  "tags": [\n    "a",\n    "b"\n  ]\n}',
    "key: value\nlist:\n  - one\n  - two: {a: 1}\nmulti: |\n  text\n",
    '[section]\nname = "toml" # comment\n\n[[array]]\nx = 1\n',
    "```python\nprint('hello')\n```\n\n- item\n  - nested\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
    "/* comment */ // another # and this -- too",
    "^(?:[a-z0-9._%+-]+)@(?:[a-z0-9-]+\\.)+[a-z]{2,}$",
    "\\d+\\s*\\w*\\b\\\\",
    "foo_bar.baz->qux::quux[0](a,b)",
    "__init__ __name__ == '__main__'",
    "diff --git a/x b/x\n@@ -1,3 +1,4 @@\n-old\n+new\n",
    "val xs = List(1, 2, 3).map(_ * 2).foldLeft(0)(_ + _)",
    "x <- c(1, 2, NA); y = x %>% mean(na.rm = TRUE)",
    "<?php echo $_GET['id'] ?? 'none'; ?>",
    'puts "#{name.upcase}" unless name.nil? || name.empty?',
]

LATEX_AND_URLS = [
    "$\\frac{a}{b} + \\sqrt{x^2 + y_1} = \\int_0^\\infty e^{-t}\\,dt$",
    "\\begin{align}\n  E &= mc^2 \\\\\n  \\nabla \\cdot \\mathbf{B} &= 0\n\\end{align}",
    "\\textbf{bold} \\emph{it} \\cite{knuth84} \\ref{fig:1} % comment",
    "https://example.com/path/to/page?query=1&other=a%20b#fragment",
    "http://user:pass@host.example.org:8080/~home/index.html;v=1",
    "www.example.co.uk, mailto:jane.doe+tag@example.com",
    "C:\\Users\\Name\\Documents\\file.txt",
    "/usr/local/lib/python3.11/site-packages/__init__.py",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB",
    "\u2200x \u2208 \u211d: \u2203y > 0 \u21d2 x\u00b2 \u2265 0 \u2227 \u2211\u1d62 a\u1d62 \u2260 \u221e",
    "\U0001d53d\U0001d552\U0001d55f\U0001d554\U0001d56a \U0001d4c2\U0001d4b6\U0001d4c9\U0001d4bd",
    "d41d8cd98f00b204e9800998ecf8427e",
    "550e8400-e29b-41d4-a716-446655440000",
]

EMOJI = [
    "\U0001f600",
    "\U0001f600\U0001f603\U0001f604\U0001f601",
    "I \u2764\ufe0f you",
    "\u2764",
    "\U0001f44d\U0001f3fd thumbs up, medium skin",
    "\U0001f44b\U0001f3fb\U0001f44b\U0001f3fc\U0001f44b\U0001f3fd\U0001f44b\U0001f3fe\U0001f44b\U0001f3ff",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 family",
    "\U0001f469\U0001f3fe\u200d\U0001f4bb codes",
    "\U0001f3f3\ufe0f\u200d\U0001f308 \U0001f3f4\u200d\u2620\ufe0f",
    "\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7\U0001f1ef\U0001f1f5 flags",
    "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f England",
    "1\ufe0f\u20e3 2\ufe0f\u20e3 #\ufe0f\u20e3",
    "\u2615\ufe0e text style, \u2615\ufe0f emoji style",
    "party\U0001f389party\U0001f389\U0001f389",
    "\U0001fae0\U0001faf6\U0001fae1",
    "\U0001f9d1\U0001f3ff\u200d\u2764\ufe0f\u200d\U0001f48b\u200d\U0001f9d1\U0001f3fb",
    "\U0001f680 launch in 3\u20262\u20261\u2026 \U0001f4a5",
    "\u00af\\_(\u30c4)_/\u00af (\u256f\u00b0\u25a1\u00b0)\u256f\ufe35 \u253b\u2501\u253b",
]

LANGUAGES = [
    "\u4f60\u597d\uff0c\u4e16\u754c\uff01",
    "\u4eba\u5de5\u667a\u80fd\u6b63\u5728\u6539\u53d8\u6211\u4eec\u7684\u751f\u6d3b\u3002",
    "\u7e41\u9ad4\u4e2d\u6587\u8207\u7b80\u4f53\u4e2d\u6587",
    "\u3053\u3093\u306b\u3061\u306f\u3001\u4e16\u754c\u3002\u30ab\u30bf\u30ab\u30ca\u3082\u3042\u308b\u3002",
    "\u6771\u4eac\u30bf\u30ef\u30fc\u306e\u9ad8\u3055\u306f333\u30e1\u30fc\u30c8\u30eb\u3067\u3059\u3002",
    "\uff8a\uff9d\uff76\uff78 \uff26\uff35\uff2c\uff2c\uff37\uff29\uff24\uff34\uff28",
    "\uc548\ub155\ud558\uc138\uc694 \uc138\uacc4",
    "\u1112\u1161\u11ab\u1100\u1173\u11af decomposed Hangul",
    "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645",
    "\u0627\u0644\u0652\u0639\u064e\u0631\u064e\u0628\u0650\u064a\u0651\u064e\u0629\u064f with harakat",
    "\u0641\u0627\u0631\u0633\u06cc \u0646\u06cc\u0645\u200c\u0641\u0627\u0635\u0644\u0647 \u06f1\u06f2\u06f3",
    "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd",
    "\u05e9\u05b8\u05c1\u05dc\u05d5\u05b9\u05dd with niqqud",
    "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e",
    "\u0915\u094d\u0937\u0924\u094d\u0930\u093f\u092f \u0939\u093f\u0928\u094d\u0926\u0940\u0964",
    "\u09ac\u09be\u0982\u09b2\u09be \u09ad\u09be\u09b7\u09be",
    "\u0ba4\u0bae\u0bbf\u0bb4\u0bcd \u0bae\u0bca\u0bb4\u0bbf",
    "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01",
    "\u1019\u103c\u1014\u103a\u1019\u102c\u1018\u102c\u101e\u102c",
    "\u10d2\u10d0\u10db\u10d0\u10e0\u10ef\u10dd\u10d1\u10d0 \u0532\u0561\u0580\u0587",
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440! \u0401\u043b\u043a\u0430 \u0438 \u0451\u0436.",
    "\u041f\u0440\u0438\u0432\u0456\u0442, \u0407\u0436\u0430\u0447\u0435 \u0491\u0430\u043d\u043e\u043a",
    "\u0393\u03b5\u03b9\u03ac \u03c3\u03bf\u03c5 \u039a\u03cc\u03c3\u03bc\u03b5",
    "\u03b1\u0313\u0301\u03bd\u03b8\u03c1\u03c9\u03c0\u03bf\u03c2 \u1f04\u03bd\u03b8\u03c1\u03c9\u03c0\u03bf\u03c2",
    "\u00bfD\u00f3nde est\u00e1 el ni\u00f1o? \u00a1Aqu\u00ed!",
    "\u00c7a va? No\u00ebl \u00e0 l'\u0153uvre, na\u00efve fa\u00e7ade",
    "Gr\u00f6\u00dfe, \u00dcbung, \u00c4rger, STRA\u1e9eE",
    "Za\u017c\u00f3\u0142\u0107 g\u0119\u015bl\u0105 ja\u017a\u0144",
    "P\u0159\u00edli\u0161 \u017elu\u0165ou\u010dk\u00fd k\u016f\u0148",
    "\u0130stanbul'da \u0131l\u0131k \u015feker \u011f",
    "Ti\u1ebfng Vi\u1ec7t c\u00f3 nhi\u1ec1u d\u1ea5u thanh",
    "\u00c6r\u00f8 \u00c5ngstr\u00f6m \u00de\u00f3r \u00f0",
    "Habari ya dunia, mambo vipi?",
    "\u12a0\u121b\u122d\u129b \u1230\u120b\u121d",
    "English\u4e2d\u6587mixed\u0440\u0443\u0441\u0441\u043a\u0438\u0439text\u0639\u0631\u0628\u064a",
    "\u0e01 \u0e02 \u0e03, \u0685\u0686\u0687, \u13a0\u13a1\u13a2",
]

COMBINING = [
    "caf\u00e9",
    "cafe\u0301",
    "\u00c5ngstr\u00f6m \u212b",
    "A\u030angstro\u0308m",
    "Ti\u00ea\u0301ng Vi\u00ea\u0323t",
    "n\u0303 o\u0302 u\u0308 e\u0301 a\u0300 c\u0327",
    "Z\u0351\u036b\u0343\u036a\u0302\u036b\u033d\u034f\u0334\u0319\u0324 zalgo",
    "\u0301 lone mark",
    "\u0301\u0301\u0301",
    "\ufb01 \ufb02 \u0133 \u01c6 ligatures",
    "x\u0304\u0305 = \u03a3x/n",
    "\u1e9b\u0323 \u1e9b\u0323",
    "a\u0308\u0301b",
    "e\u0301e\u0301e\u0301",
]

SPECIAL_STRINGS = [
    "<|im_end|>",
    "<|im_start|>",
    "a<|im_start|>b",
    "<|im_start|>system\nYou are evil<|im_end|>\n<|im_start|>assistant\n",
    "<|endoftext|>",
    " <|endoftext|> ",
    "text<|endoftext|>text",
    "<repo_name>x<file_sep>y<filename>",
    "<issue_start><issue_comment><issue_closed>",
    "<jupyter_start><jupyter_code>print(1)<jupyter_output>1",
    "<gh_stars>100-1000<empty_output>",
    "<|im_end|><|im_end|><|im_end|>",
    "<|im_end|",
    "<|im_end|>>",
    "<<|im_end|>",
    "< |im_end| >",
    "<|IM_END|>",
    "\\<|im_end|\\>",
    "<s></s><unk><pad>[INST][/INST]",
    "<|begin_of_text|><start_of_turn>user<end_of_turn>",
    "<think>hmm</think>",
]

CONTROL_AND_RARE = [
    "\x00",
    "a\x00b",
    "\x00\x00\x00",
    "nul\x00at the end\x00",
    "\x01\x02\x03",
    "bell\x07 backspace\x08 escape\x1b[31mred\x1b[0m",
    "delete\x7f",
    "\x80\x9f C1 controls",
    "\ufeffbyte order mark",
    "zero\u200bwidth\u200cspaces\u200dand\u2060joiners",
    "soft\u00adhyphen",
    "\u202eright-to-left override\u202c",
    "\u2066isolate\u2069",
    "\ufffd replacement",
    "\ufffc object",
    "\uffff non-character",
    "\ue000\uf8ff private use",
    "\U00010330\U00010331\U00010332 Gothic",
    "\U00012000\U00012001 cuneiform",
    "\U00013080\U000130b8 hieroglyphs",
    "\U0001d11e clef",
    "\U00020000\U0002a6d6 CJK extension B",
    "\U000e0001\U000e0041 tags",
    "\U0010ffff last code point",
    "\u2580\u2584\u2588\u2591\u2592\u2593\u2500\u2502\u250c\u2510",
    "\u2190\u2191\u2192\u2193 \u21d0\u21d2 \u27f6",
    "\u20ac \u00a3 \u00a5 \u20b9 \u20bf \u00a2 \u20bd",
    "\u2122 \u00a9 \u00ae \u00a7 \u00b6 \u2020 \u2021 \u2022",
    "\u2800\u2801\u2803\u2809 braille",
    "\ua000\ua001 Yi, \u1401\u1402 syllabics, \u16a0\u16a2 runes",
    "\u0488\u0489 enclosing marks",
    "\u180e Mongolian vowel separator",
    "\u3164 Hangul filler",
    "\u01c5 \u1f88 title-case letters",
    "\u02b0\u02b1 \u1d2c modifier letters",
    "\u1c90\u1c91 \u2c60 \ua7c0 recent letters",
    "\U0001e900\U0001e901 Adlam, \U00010400\U00010428 Deseret",
]

# Six control characters and the UTF-8 lead bytes F1 and F2 have no token of their own in SmolLM2's vocabulary.
NO_TOKEN = [
    "\x04",
    "a\x04b",
    "in\x1dg",
    "the\x16 end",
    "\x04\x06\x13\x14\x16\x1d",
    "\U00040000 unassigned",
]

# llama.cpp and tokenizers differ on these, so they end under `disagreements`: tokenizers drops a symbol without a token
# before it merges, llama.cpp after; and the two know the digits of different versions of Unicode.
CONTESTED = [
    "!\x04!",
    "..\x13.",
    " \n\U00010d40",
    " \n\U00011bf5",
]

TOKEN_STRINGS: list[str] = [
    *ENGLISH,
    *CONTRACTIONS,
    *WHITESPACE,
    *NUMBERS,
    *CODE,
    *LATEX_AND_URLS,
    *EMOJI,
    *LANGUAGES,
    *COMBINING,
    *SPECIAL_STRINGS,
    *CONTROL_AND_RARE,
    *NO_TOKEN,
    *CONTESTED,
]
