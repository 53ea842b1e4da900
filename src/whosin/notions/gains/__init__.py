"""What a guess is worth: gain functions, for leakages (g-leakage; Alvim et al. 2012).

A gain function says for each guess and each world what the guesser gains. `GAINS` lists those that
can be spelled.
"""

from whosin.notions.gains.base import GainFunction as GainFunction
from whosin.notions.gains.matrix import GainMatrix as GainMatrix
from whosin.notions.gains.reading import GAINS as GAINS
from whosin.notions.gains.reading import gain_of as gain_of
from whosin.notions.gains.reading import read_gain as read_gain
from whosin.notions.gains.singling_out import SinglingOut as SinglingOut
from whosin.notions.gains.tries import Tries as Tries
