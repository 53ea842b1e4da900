"""`python -m whosin`: the command."""

from whosin.app.cli.main import run

if __name__ == "__main__":
    run()
