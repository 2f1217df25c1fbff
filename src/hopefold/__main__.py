"""``python -m hopefold``: the same as the command ``hopefold``."""

from hopefold.cli import main

if __name__ == "__main__":
    main()
