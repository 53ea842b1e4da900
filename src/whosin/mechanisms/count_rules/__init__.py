"""The rules that offices publish counts under, as mechanisms: what is shown for each count."""

from whosin.mechanisms.count_rules.cell_key import CellKey as CellKey
from whosin.mechanisms.count_rules.exact import Exact as Exact
from whosin.mechanisms.count_rules.from_table import FromTable as FromTable
from whosin.mechanisms.count_rules.random_round import RandomRound as RandomRound
from whosin.mechanisms.count_rules.round import Round as Round
from whosin.mechanisms.count_rules.rule import Rule as Rule
from whosin.mechanisms.count_rules.rule_chain import RuleChain as RuleChain
from whosin.mechanisms.count_rules.suppress import SUPPRESSED as SUPPRESSED
from whosin.mechanisms.count_rules.suppress import Suppress as Suppress
