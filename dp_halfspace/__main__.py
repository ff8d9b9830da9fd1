"""Run the comparison of the suite: ``python -m dp_halfspace``."""

from dp_halfspace._cli import main

if __name__ == "__main__":
    raise SystemExit(main())
