"""Proves what was found: findings may be wrong, and the Format that comes out holds.

In comes a Format made of findings. Out comes one that reads the template's own answers, and what was given up, in words.

Open `claims` first: a claim that answers refute gives way to a weaker one. `readback` cuts answers out of renderings, without the
Format's help, and reads them. `evidence` says which renderings show each part.

Never break this rule: less that is true is better than more that is false, and nothing is given up without a word.
"""
