"""Commands that serve something, or say how it is served: `unrender serve`, `engine-args`, `playground`."""
