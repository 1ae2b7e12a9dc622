"""Interviews about work with the hands: one interviewer, many people, free answers to like questions."""

from collections.abc import Iterator

from picker import Picker

PEOPLE = [
    ("Agnieszka", "bookbinder", "leather"), ("Mateus", "boat builder", "larch"), ("Hilde", "baker", "rye"),
    ("Tariq", "tailor", "wool"), ("Yuki", "knife grinder", "steel"), ("Ferdinand", "organ tuner", "tin"),
    ("Amara", "weaver", "indigo"), ("Pilar", "stonemason", "sandstone"), ("Owen", "thatcher", "reed"),
    ("Leila", "watchmaker", "brass"), ("Sven", "farrier", "iron"), ("Nadia", "glassblower", "quartz sand"),
    ("Bogdan", "cooper", "oak"), ("Ngozi", "potter", "clay"), ("Emile", "piano maker", "spruce"),
    ("Ruth", "saddler", "linen thread"), ("Ivo", "printer", "lead"), ("Mei", "paper maker", "mulberry bark"),
    ("Lars", "rope maker", "hemp"), ("Dolores", "guitar maker", "cedar"), ("Kofi", "carver", "ebony"),
]  # fmt: skip
QUESTIONS = {
    "How did you become a {trade}?": [
        "My aunt was one, and in the holidays there was nothing else to do than to watch her. At fourteen I could do the simple things, and at {age} I had a bench of my own.",
        "By accident. I answered an advertisement for a driver, and on the second day somebody was ill. I have never driven since. That was {years} years ago.",
        "I studied law for {terms} terms. Then I repaired a thing for my landlord, and it was the first time in years that I slept well.",
        "In my village there were two trades, and I was too small for the other one. You may laugh, but that is how it was for most of us before {year}.",
    ],
    "What is the hardest part?": [
        "To stop. With {material} there is a point after which every stroke makes it worse, and nobody can tell you where it lies. I missed it for {years} years.",
        "The price. I need {hours} hours, and people compare it with something that a machine makes in {minutes} minutes.",
        "Buying {material}. Of ten pieces that look good, {few} are. The dealer knows it too, and he is a friendly man, which makes it harder.",
        "My back, if I am honest. I work {hours} hours standing, and I have had the bench raised {few} times.",
    ],
    "Which tool could you not do without?": [
        "A spoon. It was my grandfather's, and I have ground it down to half its width. I use it for {material}, for things it was never made for.",
        "My left thumb. No, truly: I close my eyes and feel the edge. A gauge shows me {few} hundredths, the thumb shows me whether it is right.",
        "The lamp. I bought it in {year}, it has been mended {few} times, and under any other light {material} looks like something else.",
        "The kettle. Half of what I do is waiting until {material} is ready, and one must not hurry it.",
    ],
    "Do you teach others?": [
        "I had {few} apprentices. One is better than I am; I tell everybody, except him.",
        "Not any more. The last one stayed for {minutes} days and filmed everything. I think that she has more customers now than I have.",
        "On Saturdays, children. They spoil a great deal of {material}, and each of them makes one thing that I could not have made.",
        "I would, but who can pay for {years} years of learning? The school in the city closed in {year}.",
    ],
    "What do customers get wrong?": [
        "They think that old means good. I have seen work from {year} that was a disgrace then and still is.",
        "They want it by Friday. I say {few} weeks, they say that they will wait, and on Friday they ring.",
        "Nothing. They know what they want; they only lack the words for it, and so I let them touch {few} samples and watch their hands.",
        "They clean it. Please write this down: {material} wants to be left alone.",
    ],
    "Describe the room that you work in.": [
        "It was a stable until {year}. In summer one can still smell it. The door is {few} metres wide, because of the carts, and I need every bit of that.",
        "Small, with a window to the north. I share it with {few} clocks that nobody has fetched, and with a cat who is fond of {material}.",
        "It is the cellar of the house where I was born. {minutes} steps down, and I know each of them with a load on my shoulder.",
        "Too tidy, my colleagues say. But when you have searched {hours} minutes for a pair of tongs while something is cooling, you become tidy.",
    ],
    "Has the material changed?": [
        "Very much. What they sell as {material} today would have been sent back when I learned. I buy old stock from workshops that close; there were {few} of those last year.",
        "The material, no. The rules for it, yes: I fill in {minutes} pages for each delivery.",
        "It grows faster and is weaker for it. One can work around that, if one knows, with {few} passes in place of one.",
    ],
    "Would you choose it again?": [
        "On Mondays, no. On Fridays I walk past a thing that I made in {year}, and it still does what it should.",
        "Yes, but I would begin earlier and charge more.",
        "I ask myself each winter, when the workshop is at {few} degrees. So far the answer has always been yes by about noon.",
        "There is an order on the table for {hours} pieces. Ask me when they are done.",
    ],
}  # fmt: skip


def sections() -> Iterator[str]:
    pick = Picker(7)
    yield "WORK WITH THE HANDS: interviews, recorded between March and November\n\n"
    for number, (name, trade, material) in enumerate(PEOPLE, 1):
        yield f"Interview {number}: {name}, {trade}\n\n"
        for question, answers in QUESTIONS.items():
            answer = pick.one(answers).format(
                material=material,
                age=pick.number(16, 24),
                years=pick.number(5, 33),
                terms=pick.number(3, 9),
                year=pick.number(1968, 2009),
                hours=pick.number(6, 40),
                minutes=pick.number(4, 25),
                few=pick.number(2, 9),
            )
            yield f"Q: {question.format(trade=trade)}\n{name}: {answer}\n\n"
