"""Answers of language models in Back Alley, and the move that each gives; None: it is explained and counted."""

from __future__ import annotations

ANSWERS: list[tuple[str, str | None]] = [
    # A move alone, and how it may be spelled
    ("TD", "TD"), ("td", "TD"), ("10♦", "TD"), (" ten of diamonds. ", "TD"), ("**TD**", "TD"), ("`TD`", "TD"),
    ("\"Queen of Hearts\"", "QH"), ("I play the queen of hearts!", "QH"), ("I'll play TD.", "TD"), ("- KH", "KH"),
    ("> KH", "KH"), ("Big Blooper", "BB"), ("3", "3"), ("I bid three", "3"), ("pass", "pass"), ("BOARD!", "board"),
    ("My bid is 4.", "4"), ("The answer is TD", "TD"), ("I'll go with TD.", "TD"), ("Selected move: TD", "TD"),
    ("The move is: TD", "TD"), ("Answer: my move is TD", "TD"), ('{"action": "play", "card": "TD"}', "TD"),
    ("Move：TD", "TD"), ("Move: **TD**, because it is high", "TD"), ("Answer: the best card is weak", None),
    # A mark
    ("Move: TD", "TD"), ("**Move:** TD", "TD"), ("My move = TD", "TD"), ("Final answer: TD.", "TD"), ("Bid: 3", "3"),
    ("Let me think.\nKH loses to the ace.\nMove: 4D", "4D"), ("Move:\n\nTD", "TD"), ("# Hm\nAnswer: **TD**", "TD"),
    ("Move: KH (4D is too low)", "KH"), ("Move: KH because 4D is too low", "KH"), ("Move: KH. It is high.", "KH"),
    ("Move: KH\nMove: KH", "KH"), ("move: ten of diamonds\nI hope this helps.", "TD"), ("<move>TD</move>", "TD"),
    ("I reason.\n<answer> 10♦ </answer>", "TD"), ("So the best is $\\boxed{TD}$.", "TD"),
    # JSON and code blocks
    ('{"move": "TD"}', "TD"), ('{"thought": "KH is bad", "move": "TD"}', "TD"), ('{"bid": 3}', "3"),
    ('```json\n{"reason": "4D loses",\n "move": "TD"}\n```', "TD"), ("```\nTD\n```", "TD"), ("```TD```", None),
    ('{"move": null}', None), ('{"move": "1.0"}', None), ('{"bid": -1}', None), ('{"moves": ["TD", "KH"]}', None),
    ('{"move": ["TD", "KH"]}', None), ('Here you are: {"move": "TD"} Good luck!', "TD"), ("{" * 100_000, None),
    # Thinking aloud
    ("<think>KH? No.\nMove: KH\n</think>\nMove: TD", "TD"), ("<think>4D or KH</think>TD", "TD"),
    ("I lead low.\n\nTD", "TD"), ("KH would lose.\n\nTD", None), ("First TD.\nThen the king of hearts.\nTD", None),
    ("I think TD is best.", None), ("As dealer, ad hoc:\n\nTD", "TD"), ("Looking at the board, my hand is weak.", None),
    ("Looking at the board, my hand is weak.\npass", "pass"), ("I have 3 aces.\n5", "5"),
    # Negation, two moves, refusal, other languages, nothing
    ("I would not bid 3.", None), ("Not TD.", None), ("Move: not TD", None), ("My move is not TD.", None),
    ("TD or KH", None), ("TD\nKH", None), ("Move: TD\nMove: KH", None), ("Move: TD, then KH", None),
    ("Move: TD. No, KH.", None), ("Move: KH? No.\n4D", None), ("TD, KH", None), ("3 4", None), ("1\n2", None),
    ("Ad hoc, I would lead low.", None), ("As you wish.", None), ("I can't play card games.", None),
    ("Move: I don't know", None), ("Answer: none of them\nTD", None), ("Ich spiele TD.", None), ("我出 TD", None),
    ("我的选择是：\nTD", "TD"), ("Je joue le 10 de carreau.", None), ("", None), ("?", None), ("\n" * 16_000, None),
    # Taken back, or left open
    ("Move: 5. No, I bid 3.", None), ("Bid: 3. Or 4.", None), ("Bid: 3 (or 4)", None), ("Move: AC (or KC)", None),
    ("Move: AC. (KC)", None), ("Move: AC. No: kc.", None), ("Move: AC - ks", None), ("Answer: 3 - 4", None),
    ("Move: 3. 5", None), ("Move: pass. No, bid 3", None), ("Move: pass (just kidding: board)", None),
    ("Move: AC\nMove: not AC", None), ("<move>AC</move><move>not AC</move>", None), ("AC\nno, kc.", None),
    ("Move: AC\nFinal answer: no", None), ("Move: AC\nCorrection: KC", None), ("3\nNo, I bid 4.", None),
    ('Move: 5\n{"move": "3"}', None), ('{"move": "AC"}\nMove: KC', None), ('{"move": "AC", "move": "KC"}', None),
    ('x {"action": "AC"} and <move>KC</move>', None), ("Move: 3. I have 5 trumps.", "3"),
    ("Move: 5 (No trumps left)", "5"), ('{"action": "bid", "bid": 3}', "3"), ('{"move": "AC"}\nMove: AC', "AC"),
    ("Move: TD - 3 trumps are left", "TD"),
    # Signs are not dropped
    ("-1", None), ("- 1", None), ("−1", None), ("+1.0", None), ("1.0", None), ("0.5", None), (".5", None),
    ("1 0", None), ("1,0", None), ("1/2", None), ("5%", None), ("#3", None), ("$3", None), ("3-4", None),
    ("Bid: -1", None), ("Bid: 1.0", None), ("1e0", None), ("１", None), ("²", None),
    # A later line that names another move
    ("Bid: 3\nNo, 2.", None), ("Bid: 3. On second thought, 2.", None), ("Bid: 3\nOn second thought, I bid 2.", None),
    ("Bid: 3\n2", None), ("Bid: 3\nActually, 2 is better.", None), ("Bid: 3\nHmm, 2.", None),
    ("Bid: 3 because I'm strong. No, 2.", None), ("Move: AC\nI could also play the king of clubs.", None),
    ("Move: AC\nAlternatively KC.", None), ("Move: AC\nor KC", None), ("Move: pass\nOr board?", None),
    ("Move: pass\nI mean board.", None), ("Bid: 3\nWait, that is wrong.", None), ("Bid: 3\nScratch that.", None),
    ("Bid: 3\nNo.", None), ("AC\nNo, wait.", None), ("<move>AC</move> No, KC.", None),
    ("<move>AC</move>\nKC is better.", None), ('{"move": "AC"} or KC', None), ('{"move": "AC"}\nKC', None),
    ("Bid: 3\nThe bid of 3 is safe.", "3"), ("Bid: 3\nI have 2 aces.", "3"), ("Move: AC\nI lead my ace.", "AC"),
    ("Move: pass\nThe board is too weak.", "pass"), ("AC\nIt is the highest.", "AC"),
    ("<move>AC</move> as it is high", "AC"),
    # A thought that is still open
    ("<think>KH? Then\nMove: KH", None), ("<think>\nI could bid\n3", None), ("<thinking>\n<move>KH</move>", None),
    ("Move: TD\n<think>or rather", None), ("<think>4D?</think>\n<think>\nMove: KH", None), ("[THINK]KH\n\nKH", None),
    ("<reasoning>4D loses</reasoning>\nTD", "TD"), ("<Think>KH</THINK>TD", "TD"), ("I think KH.</think>\nTD", "TD"),
    # Numbers and words that are no answer
    ("I would play high.\nConfidence:\n9", None), ("Bid 4.\n**Confidence:**\n9", None), ("Bid: 3\nConfidence:\n9", "3"),
    ("Sure.\nRounds left:\n5", None), ("My reasons:\n1.", None), ("1.\nLead low.", None), ("First of all\n1)", None),
    ("## Pass", None), ("# Board", None), ("### 3", None), ("# Board\nIt is weak.", None), ("Pass:", None),
    ("**Board:**", None), ("Options:\n- pass (safe)\n- board", None), ("I can do two things\n* board", None),
    ("Pass\nThis is hard.", None), ("3\nThat is a guess.", None), ("Let me see.\n> board", None),
    ("Legal moves:\n- board", None), ("# Pass\n3", "3"), ("Ah!", None), ("Ah!\nI see.", None), ("I see.\nAh!", None),
    ("As,", None), ("Ah…", None), ("As\nyou wish.", None), ("Ah", "AH"), ("Hm.\nas", "AS"), ("`Ad`", "AD"),
    ("AH!", "AH"), ("Move: Ah", "AH"), ("Bid:\n1. Low cards\n2. No ace", None), ("Move:\n1. TD\n2. KH", None),
    ("Move:\n1. TD", "TD"), ("Bid:\n# Board", None), ("Bid:\n3.", "3"),
    ("1. pass\n2. board\n3. bid 5\nChoice: 3", None), ("1. I have aces\n2. It is safe\nBid: 2", "2"), ("3.", "3"),
    # A mark in a sentence that says not to
    ("I would never answer <move>3</move> here.", None), ("Don't play <move>AC</move>.", None),
    ("<move>3</move> would be too bad.", None), ("Instead of <move>AC</move> I play <move>KC</move>.", "KC"),
    ("For example <answer>TD</answer>", None), ("Not $\\boxed{3}$", None), ('I would not say {"move": "TD"}', None),
    ("I can't follow suit, so I play <move>TD</move>.", "TD"), ("I have no hearts. <move>TD</move>", "TD"),
    # Readable
    ("(3)", "3"), ("Bid: (3)", "3"), ("+3", "3"), ("Bid: +3", "3"), ("Move: (TD)", "TD"),
    ("$\\boxed{\\text{TD}}$", "TD"), ("Bid: three (3)", "3"), ("I'll bid 3.\nI have strong spades.", "3"),
]  # fmt: skip
