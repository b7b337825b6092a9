"""``python -m stepscope``."""

from stepscope.cli.main import main

if __name__ == "__main__":
    main()
