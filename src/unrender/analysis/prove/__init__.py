"""Proves what was found: makes a Format that holds of findings that may be wrong.

In comes a Format that findings were put into, out comes one that reads the template's own answers, with what was given up in words.

Open `claims` first: a claim that answers refute gives way to a weaker one. `readback` cuts answers out of renderings, without the
Format's help, and reads them. `evidence` says which renderings show each part.

Never break this rule: less that is true is better than more that is false, and nothing is given up without a word.
"""
