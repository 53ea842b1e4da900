"""`whosin audit`: attack a mechanism, a training, scores or synthetic data, with bounds that hold.

`command` has the options and the exit codes, `claims` what is attacked, and one file each form of
the command: `worlds`, `files`, `training`, `synthetic`.
"""

from whosin.app.cli.audit.command import audit as audit
